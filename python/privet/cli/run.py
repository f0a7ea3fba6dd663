"""`privet run`: a model, both parties on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from privet.cli import options, show
from privet.cli.inputs import read_inputs, read_labels
from privet.cli.modes import names_of, show_modes
from privet.errors import Misuse
from privet.graph import import_model, load_model
from privet.parties import Run
from privet.parties import run as run_locally
from privet.parties.calibration import read_samples
from privet.parties.modes import run_modes


def run(
    model: options.Model,
    input: options.Input = None,
    batch: options.Batch = 1,
    scenario: options.Scenario = "encrypted-data",
    parties: options.Parties = 3,
    flooding: options.Flooding = None,
    cipher: options.Cipher = "paillier",
    key_bits: options.KeyBits = 2048,
    packed: options.Packed = False,
    suite: options.Suite = "gmw",
    security: options.Security = "semi-honest",
    bits: options.Bits = None,
    scale: options.Scale = None,
    rounds: options.Rounds = "auto",
    truncation: options.Truncation = "exact",
    field: options.Field = "ring",
    linear: options.Linear = "offline",
    unprepared: Annotated[
        bool,
        typer.Option("--unprepared", help="Prepare nothing; linear layers must run online."),
    ] = False,
    weights: options.Weights = None,
    correlations: options.Correlations = "parties",
    link: options.Link = None,
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    labels: options.Labels = None,
    memory: options.Memory = None,
    timeout: options.Timeout = 600.0,
    modes: Annotated[
        str | None,
        typer.Option(
            metavar="all|NAME,...",
            help="Run suite gmw in each of these modes that the model allows, and compare them: "
            "`exact` (the default), `one-bit`, `prime`, `one-shot`.",
        ),
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="Also print every step's cost.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run a model privately between two local processes and compare it with the plaintext model.

    Without --input, on random numbers.
    """
    console = show.make_console()
    names = read_labels(labels, model)
    inputs = read_inputs(input, _input_shapes(model), batch) if input else None
    samples = read_samples(calibration) if calibration else None
    if modes is not None:
        whose = (suite, security, truncation, correlations, field, linear)
        usual = ("gmw", "semi-honest", "exact", "parties", "ring", "offline")
        if whose != usual or unprepared:
            raise Misuse("--modes compares modes of suite gmw: leave out the options that pick one")
        runs = run_modes(
            model,
            inputs,
            names_of(modes),
            bits=bits,
            scale=scale,
            calibration=samples,
            input_range=input_range,
            batch=batch,
            rounds=rounds,
            link=link,
            memory=memory,
            weights=weights,
            timeout=timeout,
        )
        show_modes(console, runs, as_json)
        return
    with show.progress(Console(stderr=True), not as_json and console.is_terminal) as progress:
        result = run_locally(
            model,
            inputs,
            suite=suite,
            security=security,
            bits=bits,
            scale=scale,
            rounds=rounds,
            truncation=truncation,
            field=field,
            linear=linear,
            prepared=not unprepared,
            weights=weights,
            correlations=correlations,
            link=link,
            calibration=samples,
            input_range=input_range,
            batch=batch,
            scenario=scenario,
            parties=parties,
            flooding=flooding,
            cipher=cipher,
            key_bits=key_bits,
            packed=packed,
            memory=memory,
            timeout=timeout,
            progress=progress,
        )
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
    _verdict(console, result, chosen=rounds == "auto")
    show.calibration(console, result.calibration)
    show.costs(console, result.offline, result.online, result.batch)
    if result.suite != "stream":
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
        "suite": result.suite,
        "security": result.security,
        "rounds": result.rounds,
        "truncation": result.truncation,
        "field": result.field,
        "linear": result.linear,
        "extension": result.extension,
        "correlations": result.correlations,
        "trust": result.trust,
        **show.weaknesses_fields(result.mode),
        "calibration": result.calibration,
        "program_hash": result.program_hash,
        "batch": result.batch,
        "samples": result.samples,
        "link": show.link_fields(result.link),
        "output": next(iter(outputs.values())) if len(outputs) == 1 else outputs,
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
        "scenario": result.scenario,
        "parties": result.parties,
    }


def _input_shapes(model: Path) -> list[tuple[int, ...]]:
    graph = import_model(load_model(model), name=model.stem)
    return [graph.values[entry.value].shape for entry in graph.inputs]


def _verdict(console: Console, result: Run, chosen: bool) -> None:
    verdict = "[green]agrees[/]" if result.argmax_agrees else "[bold red]disagrees[/]"
    difference = f"largest difference of an output {result.max_abs_error:.2g}"
    if result.suite == "ckks" and result.plan is not None:
        console.print(f"The plaintext model (ONNX Runtime) {verdict}; {difference}.")
        show.homomorphic(console, result.plan, result.program_hash)
        if result.scenario == "encrypted-model":
            console.print("The model under its owner's key; the client evaluated it.")
        if result.scenario == "collective":
            console.print(f"Model and data under the key of {result.parties} members.")
        show.trust(console, result.trust)
        show.weaknesses(console, result.mode)
        return
    console.print(
        f"The plaintext model (ONNX Runtime) {verdict}; {difference}, and "
        f"{result.max_fixed_point_error} units of the last place from the fixed-point reference."
    )
    if result.suite == "stream" and result.plan is not None:
        show.stream(console, result.plan, result.program_hash)
        show.trust(console, result.trust)
        show.weaknesses(console, result.mode)
        return
    rounds = show.rounds(result.rounds, result.link, chosen)
    if result.linear == "online":
        rounds += ", linear layers online"
    if result.field == "prime":
        rounds += ", linear layers modulo a prime"
    made = "material" if result.suite == "fss" else "correlations"
    console.print(
        f"Suite {result.suite} ({result.security}), {rounds}, {result.truncation} truncation, "
        f"{made} by {result.extension or 'a dealer'}, program "
        f"{result.program_hash[:16]}; {'two' if result.dealer is None else 'three'} processes over "
        "TLS on this machine."
    )
    show.trust(console, result.trust)
    show.weaknesses(console, result.mode)
