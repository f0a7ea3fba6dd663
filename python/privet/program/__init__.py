"""The compiled program: what a model becomes before any suite runs it."""

from typing import TYPE_CHECKING

from privet.lazy import attach

if TYPE_CHECKING:
    from privet.program.build import build_program
    from privet.program.public import Program, caveat
    from privet.program.weights import Weights

__all__ = ["Program", "Weights", "build_program", "caveat"]

__getattr__ = attach(
    __name__,
    {
        "privet.program.build": ("build_program",),
        "privet.program.public": ("Program", "caveat"),
        "privet.program.weights": ("Weights",),
    },
)
