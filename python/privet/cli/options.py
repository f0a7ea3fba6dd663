"""Options that several commands share."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from privet import tracing
from privet.errors import Misuse
from privet.runtime.quantities import YEAR_SECONDS

Model = Annotated[
    Path, typer.Argument(metavar="MODEL.onnx", help="The model.", exists=True, dir_okay=False)
]
Bits = Annotated[
    int | None,
    typer.Option(
        help="Width of the ring, 16 to 50 bits; by default chosen by the ranges of values."
    ),
]
Scale = Annotated[
    int | None,
    typer.Option(
        help="Fractional bits of inputs and weights, 4 to 20; by default chosen by the ranges."
    ),
]
WeightScale = Annotated[
    int | None,
    typer.Option(help="Fractional bits of weights, 4 to 20; by default those of inputs."),
]
Batch = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Samples to compute at once, in as many rounds as a single one."
    ),
]
Link = Annotated[
    str | None,
    typer.Option(
        metavar="lan|wan|RTT,BANDWIDTH",
        help="The link between the parties; runs are delayed like it: `20ms,100Mbit` is 20 ms "
        "there and back and 100 Mbit/s each way.",
    ),
]
Dealer = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Where the dealer listens, for dealt material."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Most resident memory of a party, such as 2GB; a model that cannot fit is refused.",
    ),
]
Input = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="A .npy or image file, or .npz with arrays by the names of inputs, with a sample, or "
        "several along the first axis; give the option again for more samples of a batch.",
        dir_okay=False,
    ),
]
MaxMaterial = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Most material on this side's disk, such as 20GB; clients whose entries do not fit "
        "are asked to come back.",
    ),
]
Accept = Annotated[
    Path | None,
    typer.Option(
        metavar="POLICY.toml",
        help="What this server accepts, from whom, and how many answers it gives.",
        exists=True,
        dir_okay=False,
    ),
]
AnswersPerHour = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Most answers that a client gets in any hour, counted in --state; any number by "
        "default. A batch is as many as it has samples.",
    ),
]
ServerName = Annotated[
    str | None,
    typer.Option(help="Name in the server's certificate, if it is not the host's."),
]
OperatorRole = Annotated[
    str, typer.Option("--role", help="Whose certificate to show: ROLE.pem and ROLE.key.")
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="PRIVET_TOKEN", help="Bearer token, if the service asks for one.", metavar="TOKEN"
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        help="Samples on which value ranges are measured: .npy or .npz, one sample along the first "
        "axis. Without them, random inputs.",
        dir_okay=False,
    ),
]
MODEL_PANEL = "How the model is read"
Reveal = Annotated[
    str,
    typer.Option(
        rich_help_panel=MODEL_PANEL,
        metavar="outputs|scores|label",
        help="What the client learns: what the outputs tell anyway; also the scores that the last "
        "steps of the model read, which the client then computes; or labels alone.",
    ),
]
ClientSide = Annotated[
    bool,
    typer.Option(
        "--client-side",
        rich_help_panel=MODEL_PANEL,
        help="Let the client compute what comes before the first private operation (scaling, "
        "imputing, encoding of categories, texts, too); these constants become public.",
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        rich_help_panel=MODEL_PANEL,
        metavar="NAME=N,N,...",
        help="Shape of an input whose axes the model leaves open, such as `image=1,3,224,224`; "
        "again for more inputs.",
    ),
]
Sound = Annotated[
    bool,
    typer.Option(
        "--sound",
        help="Refuse the model unless no input within its bound can leave the ring; results then "
        "need no samples.",
    ),
]
InputRange = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LOW HIGH",
        help="Lowest and highest number of an input, for random calibration inputs.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="Class names: a line each, or a JSON card with `classes`. By default MODEL.json.",
        dir_okay=False,
    ),
]
Keys = Annotated[Path, typer.Option(help="Directory that `privet keys` wrote.", file_okay=False)]
State = Annotated[
    Path,
    typer.Option(help="Directory that keeps material (secret, used once).", file_okay=False),
]
Timeout = Annotated[
    float, typer.Option(help="Seconds to wait for any one message.", min=0.1, max=YEAR_SECONDS)
]
Revoked = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="SHA-256 fingerprints of certificates that are refused, one a line; read again when "
        "it changes.",
        dir_okay=False,
    ),
]


def _trace(context: typer.Context, target: str | None) -> str | None:
    if not context.resilient_parsing:
        tracing.configure(target, f"privet-{context.info_name}")
    return target


Trace = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="FILE|URL",
        callback=_trace,
        help="Write spans of each prediction to a file, or to an OpenTelemetry collector "
        "(https://HOST:PORT); never a value.",
    ),
]
Records = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="Where records go.", file_okay=False)
]
ControlPlane = Annotated[str, typer.Argument(metavar="HOST:PORT", help="The control plane.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Prices = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Prices of your own (TOML).", exists=True, dir_okay=False),
]
PriceTable = Annotated[str, typer.Option(help="Which table of the price file.")]


def in_panel(option: Any, panel: str, **changes: Any) -> Any:
    """An option of these in a panel of a command's help, with other changes if need be."""
    info = copy(get_args(option)[1])
    vars(info).update(rich_help_panel=panel, **changes)
    return info


def shapes(texts: list[str] | None) -> dict[str, list[int]]:
    """Shapes by input. Raises `Misuse` if one is not of the form `NAME=N,N,...`."""
    shape_of = {}
    for text in texts or []:
        name, sign, sizes = text.rpartition("=")
        if not (sign and name):
            raise Misuse(f"--shape {text!r} is no NAME=N,N,..., such as image=1,3,224,224")
        shape_of[name] = counts(sizes, 1)
    return shape_of


def words(text: str) -> list[str]:
    """Words with commas between."""
    return [word.strip() for word in text.split(",") if word.strip()]


def counts(text: str, least: int) -> list[int]:
    """Numbers with commas between. Raises `Misuse` if there is none, or one is below `least`."""
    try:
        numbers = [int(word) for word in words(text)]
        if not numbers or min(numbers) < least:
            raise ValueError
    except ValueError as error:
        raise Misuse(f"{text!r} are no counts from {least} on, such as 1,8,64") from error
    return numbers
