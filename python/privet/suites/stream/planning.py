"""Plans of suite `stream`: linear layers on hidden values, the rest in the clear but permuted."""

from __future__ import annotations

import json
from typing import Any

from privet._native import StreamPlan

STREAM_TRUST = (
    "values are revealed up to order: the client sees the numbers of every tensor before an "
    "activation, in a random order, and may learn of the weights by them"
)
"""What a result of this suite rests on beyond the two parties' following the protocol."""

KEY_BITS = (2048, 3072)
"""Sizes of Paillier keys."""

CIPHERS = ("paillier", "bfv")
"""What hides values from the model provider; the first as in PP-Stream, the second recommended."""


def plan_stream(
    public: bytes, cipher: str = CIPHERS[0], key_bits: int = KEY_BITS[0], samples: int = 1
) -> dict[str, Any]:
    """What one inference of a program on `samples` side by side takes: exchanges, values and bytes.

    # Errors
    `Misuse` if a layer does not run in this suite, there are no such cipher and keys, or a
    plaintext has no room for the samples.
    """
    plan: dict[str, Any] = json.loads(StreamPlan(public, cipher, key_bits, samples).forecast())
    return plan
