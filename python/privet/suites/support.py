"""Which suites run a program, and what keeps the others from it."""

from __future__ import annotations

from privet.program.public import Program

SMOOTH = {"mul", "polynomial"}
"""Operations that only suite `ckks` computes."""

COMPARING = {"relu", "max_pool2d", "argmax"}
"""Operations that it does not: they compare."""


def supported(program: Program, suite: str) -> bool:
    """Whether a suite has protocols for every operation of a program."""
    missing = COMPARING if suite == "ckks" else SMOOTH
    return not any(operation.op in missing for operation in program.operations)
