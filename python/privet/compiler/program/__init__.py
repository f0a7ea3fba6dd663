"""The compiled program: what a model becomes before any suite runs it."""

from typing import TYPE_CHECKING

from privet.lazy import attach

if TYPE_CHECKING:
    from privet.compiler.program.build import build_program
    from privet.compiler.program.public import Program, caveat
    from privet.compiler.program.weights import Weights

__getattr__ = attach(
    __name__,
    {
        "privet.compiler.program.build": ("build_program",),
        "privet.compiler.program.public": ("Program", "caveat"),
        "privet.compiler.program.weights": ("Weights",),
    },
)
