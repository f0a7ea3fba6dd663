"""Options of `privet serve` for a single model, and the models that it serves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import options as shared
from privet.errors import Misuse
from privet.suites import STATISTICAL

if TYPE_CHECKING:
    from privet.service.repository import Models

PANEL = "For one model; in a repository these are options of config.toml"

Name = Annotated[
    str | None,
    typer.Option(rich_help_panel=PANEL, help="Name that clients ask for; the file's by default."),
]
Suites = Annotated[
    list[str] | None,
    typer.Option(
        rich_help_panel=PANEL,
        metavar="NAME",
        help="Suite to offer, again for more; by default those that make material and can run.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        rich_help_panel=PANEL,
        metavar="NAME=VALUE",
        help="Any other option of config.toml, such as client_side=true; again for more.",
    ),
]
Batch = Annotated[int | None, shared.in_panel(shared.Batch, PANEL)]
Calibration = Annotated[Path | None, shared.in_panel(shared.Calibration, PANEL, exists=True)]
InputRange = Annotated[tuple[float, float] | None, shared.in_panel(shared.InputRange, PANEL)]


def models(
    path: Path,
    *,
    name: str | None,
    suites: list[str] | None,
    flooding: str,
    calibration: Path | None,
    options: list[str] | None,
    **compiled: Any,
) -> Models:
    """The repository in the folder `path`, or the model in that file; `options` (`name=value`) and
    `compiled` are those of its `config.toml`. Raises `Misuse` if a value is impossible, or a
    repository is given what only one model has."""
    # These libraries are for this command alone.
    from privet.service.repository import ModelConfig, ModelFolders, SingleModel, parse_config
    from privet.service.schema import setting

    settings = {word: value for word, value in compiled.items() if value is not None}
    if suites:
        settings["suites"] = suites
    if path.is_dir():
        words = ["suite" if word == "suites" else word for word in settings]
        file_options = {"name": name, "calibration": calibration, "set": options}
        words += [word for word, value in file_options.items() if value]
        if words:
            flags = ", ".join(f"--{word.replace('_', '-')}" for word in words)
            raise Misuse(f"{flags}: in a repository, config.toml says that for each model")
        return ModelFolders(path)
    settings |= dict(setting(ModelConfig, text) for text in options or ())
    if flooding != STATISTICAL:
        settings.setdefault("flooding", flooding)
    return SingleModel(name or path.stem, path, calibration, parse_config(settings, str(path)))
