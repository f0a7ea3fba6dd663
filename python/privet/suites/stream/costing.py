"""What suite `stream` takes by formula, the first inference of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privet.suites.costing import Costing, LinkUse, Phase, multiply_adds

if TYPE_CHECKING:
    from privet.compiler.program.public import Program

TRANSFER_BYTES = 16
"""What a party holds over BFV at least for each transfer of a preparation."""

STREAMED = LinkUse(lead=0, exposed=1.0, half_trips=2, in_turns=True)
MASKED = LinkUse(lead=-2, exposed=1.0, half_trips=2)


def cost(program: Program, plan: Mapping[str, Any], *, masks: bool) -> Costing:
    """The costing of a plan's figures; with `masks`, values are hidden by what is made ahead."""
    offline, online = (
        Phase(
            0.0,
            None,
            plan[f"{name}_bytes_client"],
            plan[f"{name}_bytes_server"],
            plan[f"{name}_rounds"],
            work={"run": 1.0, **work},
        )
        for name, work in (
            ("offline", _ahead(plan, masks)),
            ("online", _streaming(program, plan, masks)),
        )
    )
    material = {party: plan[f"material_bytes_{party}"] for party in ("client", "server")}
    memory = {
        party: (TRANSFER_BYTES * plan["transfers"] + size) / 1e6 for party, size in material.items()
    }
    return Costing(offline, online, material, memory)


def _ahead(plan: Mapping[str, Any], masks: bool) -> dict[str, float]:
    """What is made ahead: masks with ciphertexts and transfers, or noise for each value that is
    encrypted or sent back."""
    if masks:
        return {
            "transfers": float(plan["transfers"]),
            "ciphertexts": float(plan["ciphertexts"]),
            "products of ciphertexts": float(plan["products"]),
        }
    return {"noise": float(plan["encryptions"] + plan["decryptions"])}


def _streaming(program: Program, plan: Mapping[str, Any], masks: bool) -> dict[str, float]:
    values = {name: float(plan[name]) for name in ("encryptions", "decryptions")}
    work = {"multiply-adds": float(multiply_adds(program))}
    if masks:
        return {**work, "rounds": float(plan["online_rounds"]), "values": sum(values.values())}
    packed = {"values in slots": plan["samples"] * sum(values.values())}
    return {**work, **values, **(packed if plan["samples"] > 1 else {})}
