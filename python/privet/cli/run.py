"""`privet run`: a model, every party on this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from privet import suites
from privet.cli import options, show
from privet.cli.console import Console
from privet.cli.inputs import read_inputs, read_labels
from privet.cli.suite_options import Suite
from privet.compiler.client_side import part
from privet.compiler.graph import import_model, load_model
from privet.compiler.graph.input_shapes import InputShapes
from privet.runtime import Run
from privet.runtime import run as run_locally
from privet.runtime.calibration import read_samples
from privet.runtime.modes import RunMode, run_modes


def run(
    model: options.Model,
    input: options.Input = None,
    suite: Suite = suites.DEFAULT,
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    reveal: options.Reveal = "outputs",
    client_side: options.ClientSide = False,
    shape: options.Shapes = None,
    batch: options.Batch = 1,
    link: options.Link = None,
    memory: options.Memory = None,
    modes: Annotated[
        str | None,
        typer.Option(
            metavar="all|NAME,...",
            help="Run these modes of the suite, as far as the model allows, and compare them.",
        ),
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="Also print every step's cost.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run a model privately between two local processes and compare it with the plaintext model.

    Without --input, on random numbers; class names come from MODEL.json beside the model.

    Example: privet run model.onnx --input x.npy --calibration samples.npz
    """
    console = show.make_console()
    names = read_labels(None, model)
    shapes = options.shapes(shape)
    inputs = None
    if input:
        inputs = read_inputs(input, _input_shapes(model, shapes, client_side), batch)
    shared: dict[str, Any] = {
        "suite": suite,
        "batch": batch,
        "link": link,
        "memory": memory,
        "calibration": read_samples(calibration) if calibration else None,
        "input_range": input_range,
        "input_shapes": shapes,
        "reveal": reveal,
        "client_side": client_side,
    }
    if modes is not None:
        show_modes(console, run_modes(model, inputs, modes, **shared), as_json)
        return
    with show.progress(not as_json and console.is_terminal) as progress:
        result = run_locally(model, inputs, progress=progress, **shared)
    if as_json:
        typer.echo(json.dumps(as_object(result)))
        return
    if (
        inputs is not None
        and batch == 1
        and inputs[0].ndim == 4
        and inputs[0].shape[1] == 1
        and inputs[0].shape[3] <= 32
    ):
        show.picture(console, inputs[0])
    show.prediction(console, result.outputs, names, result.probabilities, result.batch)
    _verdict(console, result)
    show.warn_widened(result.widened)
    show.warn_inaccurate(result.accuracy())
    show.calibration(console, result.calibration)
    show.costs(console, result.offline, result.online, result.batch)
    show.memory(console, result.memory)
    if result.dealer is not None:
        show.dealer(console, result.dealer)
    if layers:
        show.layers(console, result.layers)


def as_object(result: Run) -> dict[str, Any]:
    """A run as the object that `--json` prints."""
    outputs = {name: np.asarray(array).tolist() for name, array in result.outputs.items()}
    return {
        "model": result.model,
        **result.config.facts(),
        "extension": result.extension,
        "trust": result.trust,
        **show.weaknesses_fields(result.mode),
        "calibration": result.calibration,
        "program_hash": result.program_hash,
        "batch": result.batch,
        "samples": result.samples,
        "link": show.link_fields(result.link),
        "output": next(iter(outputs.values())) if len(outputs) == 1 else outputs,
        "agrees": result.agrees,
        "argmax_agrees": result.argmax_agrees,
        "max_abs_error": result.max_abs_error,
        "max_fixed_point_error": result.max_fixed_point_error,
        "offline": asdict(result.offline),
        "dealer": asdict(result.dealer) if result.dealer else None,
        "online": asdict(result.online),
        "per_sample": show.per_sample(result.batch, offline=result.offline, online=result.online),
        "memory": {party: asdict(use) for party, use in result.memory.items()},
        "layers": [asdict(layer) for layer in result.layers],
        "plan": result.plan,
    }


def _input_shapes(
    model: Path, shapes: InputShapes, client_side: bool
) -> dict[str, tuple[int, ...]]:
    source = load_model(model)
    if client_side and (front := part(source, shapes)[0]) is not None:
        return {entry.name: entry.shape for entry in front.given}
    graph = import_model(source, name=model.stem, input_shapes=shapes)
    return {entry.name: graph.input_shape(entry) for entry in graph.inputs}


def _verdict(console: Console, result: Run) -> None:
    console.print(_beside_onnx_runtime(result))
    show.account(console, result.account)
    show.trust(console, result.trust)
    show.weaknesses(console, result.mode)


def _beside_onnx_runtime(result: Run) -> Text:
    """How an inference compares with the plaintext model."""
    verdict = ("agrees", "green") if result.agrees else ("disagrees", "bold red")
    sentence = f"; largest difference of an output {result.max_abs_error:.2g}"
    if result.config.exact:
        units = result.max_fixed_point_error
        sentence += f", and {units} units of the last place from the fixed-point reference"
    return Text.assemble("The plaintext model (ONNX Runtime) ", verdict, f"{sentence}.")


def show_modes(console: Console, runs: Sequence[tuple[RunMode, Run | str]], as_json: bool) -> None:
    """Prints what each mode promises and took, and why one did not run."""
    if as_json:
        typer.echo(json.dumps([_mode_object(mode, result) for mode, result in runs]))
        return
    numbers = ("total", "online", "offline", "online", "rounds", "memory", "units off")
    table = show.table(("mode", "guarantee", "OT"), numbers)
    notes: list[Text] = []
    for mode, result in runs:
        if isinstance(result, str):
            notes.append(Text(f"Not run: {mode.name}: {result}"))
            continue
        total = result.offline + result.online
        traffic = [
            phase.bytes_client + phase.bytes_server for phase in (result.offline, result.online)
        ]
        memory = max(use.peak_mb for use in result.memory.values())
        table.add_row(
            mode.name,
            mode.guarantee,
            result.extension,
            f"{total.seconds:.3f} s",
            f"{result.online.seconds:.3f} s",
            *map(show.size, traffic),
            str(result.online.rounds),
            f"{memory:.0f} MB",
            str(result.max_fixed_point_error),
        )
        if result.offline.bytes_setup:
            notes.append(Text(f"{mode.name}: before that, once: {show.setup(result.offline)}."))
        if not result.agrees:
            notes.append(Text.assemble(f"{mode.name}: ", _beside_onnx_runtime(result)))
    console.print(table)
    for note in notes:
        console.print(note, soft_wrap=True)
    (basis,) = {result.calibration for _, result in runs if not isinstance(result, str)}
    show.calibration(console, basis)


def _mode_object(mode: RunMode, result: Run | str) -> dict[str, Any]:
    """The run of a mode as `--json` prints it: as of one alone, or `refused` and why."""
    head = {"mode": mode.name, "guarantee": mode.guarantee}
    return head | ({"refused": result} if isinstance(result, str) else as_object(result))
