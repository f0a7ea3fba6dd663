"""The model repository: folders of models, compiled, checked and followed while they change."""

from privet.serve.repository.build import Build, Builder
from privet.serve.repository.config import Limits, ModelConfig, parse_config, read_config
from privet.serve.repository.files import ModelFolders, Models, SingleModel
from privet.serve.repository.repository import Repository, Row
from privet.serve.repository.version import Asked, Choice, Version, load_version

__all__ = [
    "Asked",
    "Build",
    "Builder",
    "Choice",
    "Limits",
    "ModelConfig",
    "ModelFolders",
    "Models",
    "Repository",
    "Row",
    "SingleModel",
    "Version",
    "load_version",
    "parse_config",
    "read_config",
]
