"""What suite `stream` says to people of its plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.suites.text import size


def exchanges(plan: Mapping[str, Any], program_hash: str) -> tuple[str, ...]:
    """What an inference takes."""
    bits = plan["key_bits"]
    cipher = "BFV" if bits is None else f"Paillier with keys of {bits} bits"
    sent = size(plan["online_bytes_client"]), size(plan["online_bytes_server"])
    hides, opens = ("masks", "opens") if bits is None else ("encrypts", "decrypts")
    facts = (
        f"Suite stream, {cipher}, {plan['exchanges']} exchanges of permuted values; "
        f"program {program_hash[:16]}.",
        f"The client {hides} {plan['encryptions']:,} values ({sent[0]}) and {opens} "
        f"{plan['decryptions']:,} ({sent[1]}).",
    )
    if bits is not None:
        return facts
    ahead = size(plan["offline_bytes_client"]), size(plan["offline_bytes_server"])
    return (*facts, f"Ahead of time the client sends {ahead[0]} and the server {ahead[1]}.")
