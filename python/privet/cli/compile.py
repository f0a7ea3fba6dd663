"""`privet compile`: both halves of a program, for parties that exchange the public one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from privet import suites
from privet.cli import options, ranges, show
from privet.cli.suite_options import Suite
from privet.compiler.compile import PUBLIC_FILE
from privet.runtime.calibration import read_samples


def compile(
    model: options.Model,
    folder: Annotated[Path, typer.Argument(help="Where to write both halves.", file_okay=False)],
    suite: Suite = suites.DEFAULT,
    bits: options.Bits = None,
    scale: options.Scale = None,
    weight_scale: options.WeightScale = None,
    batch: options.Batch = 1,
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    reveal: options.Reveal = "outputs",
    client_side: options.ClientSide = False,
    shape: options.Shapes = None,
    sound: options.Sound = False,
    headroom: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Bits to leave above the point when placing truncations, which is public; by "
            "default what the largest measured value takes.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compile a model into a public half, for everybody, and a private one with its weights."""
    compiled = suites.compile(
        model,
        suite=suite,
        bits=bits,
        scale=scale,
        weight_scale=weight_scale,
        calibration=read_samples(calibration) if calibration else None,
        input_range=input_range,
        reveal=reveal,
        client_side=client_side,
        input_shapes=options.shapes(shape),
        batch=batch,
        sound=sound,
        headroom=headroom,
    )
    suite.check_supports(compiled.program)
    compiled.save(folder)
    public = folder / PUBLIC_FILE
    if as_json:
        document = {
            "program": str(public),
            "program_hash": compiled.program.program_hash,
            "calibration": compiled.program.calibration,
            "ranges": ranges.fields(suite, compiled),
        }
        typer.echo(json.dumps(document))
        return
    console = show.make_console()
    ranges.show(console, suite, compiled)
    show.quantized(console, compiled)
    show.front(console, compiled.program)
    show.warn_widened(compiled.widened)
    show.warn_inaccurate(compiled.accuracy())
    show.warn_uncalibrated(compiled.program.calibration)
    console.print(
        f"Program {compiled.program.program_hash}: {public} is for all parties; the rest of "
        f"{folder} holds the weights and stays with their owner.",
        soft_wrap=True,
    )
