"""Options of `privet serve` for a single model, and the models that it serves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
        metavar="gmw|fss|ckks",
        help="Suite to offer, again for more; by default those of `gmw` and `fss` that can run.",
    ),
]
Scenario = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PANEL,
        metavar="encrypted-data|encrypted-model",
        help="In suite ckks: the service evaluates the model on encrypted data, or clients "
        "evaluate the model, which is encrypted under the service's key.",
    ),
]
Bits = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=PANEL,
        help="Width of the ring, 16 to 50 bits; by default 37, in suite ckks 50.",
    ),
]
Scale = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=PANEL,
        help="Fractional bits of inputs and weights, 4 to 20; by default 12, in suite ckks 16 "
        "and 18.",
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=PANEL,
        min=1,
        metavar="N",
        help="Samples to compute at once, in as many rounds as a single one.",
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=PANEL,
        exists=True,
        dir_okay=False,
        help="Samples on which value ranges are measured: .npy or .npz, one sample along the first "
        "axis. Without them, random inputs.",
    ),
]
InputRange = Annotated[
    tuple[float, float] | None,
    typer.Option(
        rich_help_panel=PANEL,
        help="Lowest and highest number of an input, for random calibration inputs.",
    ),
]
Sound = Annotated[
    bool,
    typer.Option(
        "--sound",
        rich_help_panel=PANEL,
        help="Refuse the model unless no input within its bound can leave the ring; results then "
        "need no samples.",
    ),
]
Reveal = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=PANEL,
        metavar="outputs|scores|label",
        help="What clients learn: what the outputs tell anyway; also the scores that the last "
        "steps of the model read, which clients then compute; or labels alone.",
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        rich_help_panel=PANEL,
        metavar="NAME=N,N,...",
        help="Shape of an input whose axes the model leaves open, such as `image=1,3,224,224`; "
        "again for more inputs.",
    ),
]


def models(
    path: Path,
    *,
    name: str | None,
    suites: list[str] | None,
    flooding: str,
    calibration: Path | None,
    **compiled: Any,
) -> Models:
    """The repository in the folder `path`, or the model in that file; `compiled` are options of its
    `config.toml`.

    # Errors
    `Misuse` if a value is impossible, or a repository is given what only one model has.
    """
    # These libraries are for this command alone.
    from privet.service.repository import ModelFolders, SingleModel, parse_config

    given = {word: value for word, value in compiled.items() if value not in (None, False, {})}
    if suites:
        given["suites"] = suites
    if path.is_dir():
        words = [*given, *(["name"] if name else []), *(["calibration"] if calibration else [])]
        if words:
            shown = ", ".join(f"--{word.replace('_', '-')}" for word in words)
            raise Misuse(f"{shown}: in a repository, config.toml says that for each model")
        return ModelFolders(path)
    if flooding != STATISTICAL:
        given["flooding"] = flooding
    return SingleModel(name or path.stem, path, calibration, parse_config(given, str(path)))
