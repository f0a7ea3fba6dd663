"""The model repository: folders of models, compiled, checked and followed while they change."""

from privet.service.repository.build import Build, Builder
from privet.service.repository.config import ModelConfig, ModelLimits, parse_config, read_config
from privet.service.repository.files import ModelFolders, Models, SingleModel
from privet.service.repository.repository import Repository, VersionRow
from privet.service.repository.version import FETCH, SuiteChoice, Version
