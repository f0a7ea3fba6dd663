"""The compiled program: what a model becomes before any suite runs it."""

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
