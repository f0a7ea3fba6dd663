"""Crews: the workers of one organisation's stages."""

from privet.stream.crew.crew import Crew, Part, Recipe, WorkerLost, connect
from privet.stream.crew.local import LocalCrew

__all__ = ["Crew", "LocalCrew", "Part", "Recipe", "WorkerLost", "connect"]
