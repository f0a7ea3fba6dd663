"""The model repository: folders of models, compiled, checked and followed while they change."""

from privet.serve.repository.build import Build, Builder
from privet.serve.repository.config import Limits, ModelConfig, read_config
from privet.serve.repository.repository import Repository, Row
from privet.serve.repository.version import Asked, Choice, Version, load_version

__all__ = [
    "Asked",
    "Build",
    "Builder",
    "Choice",
    "Limits",
    "ModelConfig",
    "Repository",
    "Row",
    "Version",
    "load_version",
    "read_config",
]
