"""The compiled program: what a model becomes before any suite runs it."""

from typing import TYPE_CHECKING

from privet.lazy import attach

if TYPE_CHECKING:
    from privet.program.build import build_program
    from privet.program.public import (
        Program,
        ProgramInput,
        ProgramOperation,
        ProgramOutput,
        ProgramValue,
        caveat,
    )
    from privet.program.weights import Weights

__all__ = [
    "Program",
    "ProgramInput",
    "ProgramOperation",
    "ProgramOutput",
    "ProgramValue",
    "Weights",
    "build_program",
    "caveat",
]

__getattr__ = attach(
    __name__,
    {
        "privet.program.build": ("build_program",),
        "privet.program.public": (
            "Program",
            "ProgramInput",
            "ProgramOperation",
            "ProgramOutput",
            "ProgramValue",
            "caveat",
        ),
        "privet.program.weights": ("Weights",),
    },
)
