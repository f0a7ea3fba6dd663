"""`privet generate`: a decoder token after token, every party on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from privet import suites
from privet.cli import options, show
from privet.cli.inputs import read_labels
from privet.cli.suite_options import Suite
from privet.errors import Misuse
from privet.runtime.calibration import load_arrays, read_samples
from privet.runtime.generate import Sampling, TokenStep
from privet.runtime.generate import generate as generate_locally
from privet.suites.costs import PhaseCost


def generate(
    model: options.Model,
    prompt: Annotated[
        str,
        typer.Option(
            help="The text to go on with, if MODEL.json beside the model has `classes` of single "
            "characters; else tokens, with commas between."
        ),
    ],
    tokens: Annotated[int, typer.Option(min=1, metavar="N", help="How many to generate.")] = 32,
    suite: Suite = suites.DEFAULT,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="0 takes the likeliest token, more draws at random.")
    ] = 0.0,
    top_k: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Draw among the N likeliest alone.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Draw the same tokens again.")] = None,
    bits: options.Bits = None,
    calibration: options.Calibration = None,
    link: options.Link = None,
    as_json: options.AsJson = False,
) -> None:
    """Generate tokens privately, between two local processes, with keys and values kept shared.

    Example: privet generate model.onnx --prompt "The list " --tokens 32 --calibration tokens.npy
    """
    characters = read_labels(None, model)
    token_ids = _tokens(prompt, characters)
    console = show.make_console()
    steps: list[TokenStep] = []
    if not as_json:
        console.print(prompt, end="")
    for step in generate_locally(
        model,
        token_ids,
        tokens,
        suite=suite,
        sampling=Sampling(temperature, top_k, seed),
        calibration=_samples(calibration),
        bits=bits,
        link=link,
    ):
        steps.append(step)
        if not (as_json or step.is_prompt):
            console.print(_text([step.token], characters), end="")
    new_tokens = [step.token for step in steps if not step.is_prompt]
    offline = [step.offline for step in steps if step.offline is not None]
    online = [step.online for step in steps]
    if as_json:
        document = {
            "tokens": new_tokens,
            "text": _text(new_tokens, characters),
            "steps": len(steps),
            "offline": _each(offline),
            "online": _each(online),
        }
        typer.echo(json.dumps(document))
        return
    console.print()
    table = show.table([""], ["seconds", "client sends", "server sends", "dealer sends", "rounds"])
    for name, costs in (("offline", offline), ("online", online)):
        average = _each(costs)
        sizes = (
            show.size(round(average[f"bytes_{party}"])) for party in ("client", "server", "dealer")
        )
        table.add_row(
            f"{name}, a token", f"{average['seconds']:.3f}", *sizes, f"{average['rounds']:.0f}"
        )
    console.print(table)


def _each(costs: list[PhaseCost]) -> dict[str, Any]:
    """The mean over steps, each of which costs the same."""
    fields = ("seconds", "bytes_client", "bytes_server", "bytes_dealer", "rounds")
    return {name: float(np.mean([getattr(cost, name) for cost in costs] or [0])) for name in fields}


def _tokens(prompt: str, characters: list[str]) -> list[int]:
    if not characters:
        return options.counts(prompt, 0)
    places = {character: place for place, character in enumerate(characters)}
    unknown = sorted(set(prompt) - set(places))
    if unknown or not prompt:
        raise Misuse(f"the model knows no {unknown}" if unknown else "the prompt is empty")
    return [places[character] for character in prompt]


def _text(tokens: list[int], characters: list[str]) -> str:
    if not characters:
        return "".join(f",{token}" for token in tokens)
    return "".join(characters[token] for token in tokens)


def _samples(path: Path | None) -> Any:
    """Token sequences of a .npy file, sessions of an .npz."""
    if path is None:
        return None
    return load_arrays(path)[""] if path.suffix == ".npy" else read_samples(path)
