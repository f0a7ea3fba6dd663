"""What suite `ckks` says to people of its plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.suites.text import TextGrid, size


def parameters(plan: Mapping[str, Any], program_hash: str) -> tuple[str, str]:
    """The parameters, and what fits into a ciphertext."""
    settings = plan["parameters"]
    room = f"{plan['batch']} sample{'s' if plan['batch'] > 1 else ''}"
    runs = f", in {plan['groups']} runs" if plan["groups"] > 1 else ""
    loading = plan.get("loading_cpu_seconds")
    load_note = f" The server took {loading:.2f} CPU seconds to load the model." if loading else ""
    return (
        f"Suite ckks, ring of degree 2^{settings['log_n']}, modulus of "
        f"{plan['log_qp']:g} bits (at most {plan['log_qp_limit']:g} are secure), scale 2^"
        f"{settings['scale_bits']}, {settings['depth']} levels; program {program_hash[:16]}.",
        f"{plan['keys']} evaluation keys; room for {room} in a ciphertext{runs}.{load_note}",
    )


def packing(plan: Mapping[str, Any]) -> tuple[TextGrid | str, ...]:
    """How each layer is packed and computed, and what that takes."""
    refreshed = plan["refreshes"] > 0
    counts = ("ciphertexts", "level", "products", "rotations")
    rows = tuple(
        (
            *(layer[key] for key in ("name", "operator", "packing")),
            *(str(layer[key]) for key in counts),
            *((layer["refresh"],) if refreshed else ()),
        )
        for layer in plan["layers"]
    )
    last = ("refreshed",) if refreshed else ()
    facts: list[TextGrid | str] = [TextGrid(("layer", "computes", "packing"), counts, rows, last)]
    if refreshed:
        facts.append(
            f"{plan['refreshes']} ciphertexts are refreshed, each from level {plan['floor']}: "
            "arguments after their linear layer, values after all of their layer."
        )
    return (*facts, _cohort(plan) if "members" in plan else _between_two(plan))


def _between_two(plan: Mapping[str, Any]) -> str:
    """What client and server send, and their memory."""
    sent, back = size(plan["online_bytes_client"]), size(plan["online_bytes_server"])
    if ahead := plan["offline_bytes_server"]:
        traffic = (
            f"The server sends {size(ahead)} of keys and model once, then the client {sent} of "
            f"masked values for {back}"
        )
    else:
        ahead = size(plan["offline_bytes_client"])
        traffic = (
            f"The client sends {ahead} of keys once, then {sent} of data for {back} of results"
        )
    return (
        f"{traffic}; memory {size(plan['memory_bytes_client'])} at the client, "
        f"{size(plan['memory_bytes_server'])} at the server."
    )


def _cohort(plan: Mapping[str, Any]) -> str:
    """What the parties of a cohort send and hold."""
    return (
        f"Each of {plan['members']} members sends {size(plan['member_bytes'])}, the model's owner "
        f"{size(plan['model_bytes'])} more; the client sends {size(plan['online_bytes_client'])} "
        f"for {size(plan['online_bytes_server'])} of results; memory "
        f"{size(plan['memory_bytes_server'])} at the coordinator."
    )
