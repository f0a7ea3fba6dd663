"""Crews: the workers of one organisation's stages."""

from privet.stream.crew.crew import ATTEMPTS, Crew, Part, Recipe, WorkerLost, connect, raise_first
from privet.stream.crew.local import LocalCrew

__all__ = [
    "ATTEMPTS",
    "Crew",
    "LocalCrew",
    "Part",
    "Recipe",
    "WorkerLost",
    "connect",
    "raise_first",
]
