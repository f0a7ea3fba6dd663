"""Plans of suite `stream`: linear layers on hidden values, the rest in the clear but permuted."""

from __future__ import annotations

STREAM_TRUST = (
    "values are revealed up to order: the client sees the numbers of every tensor before an "
    "activation, in a random order, and may learn of the weights by them"
)
"""What a result of this suite rests on beyond the two parties' following the protocol."""

KEY_BITS = (2048, 3072)
"""Sizes of Paillier keys."""

CIPHERS = ("paillier", "bfv")
"""What hides values from the model provider; the first as in PP-Stream, the second recommended."""
