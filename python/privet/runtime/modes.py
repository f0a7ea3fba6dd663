"""A suite in each of its modes on one model, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privet import suites
from privet.compiler.executor.codec import Inputs
from privet.compiler.executor.ranges import Calibration
from privet.compiler.executor.reference import trial_inputs
from privet.compiler.graph import ModelSource
from privet.errors import Misuse
from privet.runtime.client import Link
from privet.runtime.local import Run, compile_for, run
from privet.suites import Suite

ALL = "all"


@dataclass(frozen=True)
class RunMode:
    """A suite with options that belong together, and what they promise of the result."""

    name: str
    guarantee: str
    suite: Suite


def modes(suite: Suite, words: str) -> list[RunMode]:
    """The modes of a suite that `words` names, with commas between, or all; in the suite's order.
    Raises `Misuse` if a name is unknown, or the suite has an option that a mode would set."""
    variants = suite.variants
    if not variants:
        raise Misuse(f"suite {suite.name} has no modes to compare: leave out --modes")
    names = list(variants) if words == ALL else words.split(",")
    for name in names:
        if name not in variants:
            raise Misuse(f"mode {name} is unknown; possible are {', '.join(variants)}, or {ALL}")
    usual = type(suite)()
    for option in {option for _, options in variants.values() for option in options}:
        if getattr(suite, option) != getattr(usual, option):
            raise Misuse(
                f"modes of suite {suite.name} are to be compared: leave out {option}, which picks "
                "one"
            )
    return [
        RunMode(name, guarantee, replace(suite, **options))
        for name, (guarantee, options) in variants.items()
        if name in names
    ]


def run_modes(
    model: ModelSource,
    inputs: Inputs | None = None,
    words: str = ALL,
    *,
    suite: Suite | str = suites.DEFAULT,
    calibration: Calibration | None = None,
    input_range: tuple[float, float] | None = None,
    batch: int = 1,
    link: Link | str | None = None,
    memory: int | str | None = None,
    **options: Any,
) -> Sequence[tuple[RunMode, Run | str]]:
    """Compiles a model once and runs it in each of the named modes, on the same inputs: the runs,
    or why a mode does not allow the model. Arguments are those of `privet.run`; `options` those of
    `privet.compile`. Raises what `modes` and `privet.run` do, and what no mode allows."""
    config = suites.as_suite(suite)
    selection = modes(config, words)
    widths = (options.pop(option, None) for option in ("bits", "scale", "weight_scale"))
    options |= vars(config.as_compiled(*widths))
    compiled = compile_for(model, inputs, calibration, input_range, batch=batch, **options)
    if inputs is None:
        inputs = trial_inputs(compiled.source, compiled.program, input_range)
    obstacles = [mode.suite.obstacle(compiled.program) for mode in selection]
    if obstacles[0] is not None and all(obstacles):
        raise obstacles[0]
    return [
        (
            mode,
            str(obstacle)
            if obstacle is not None
            else run(compiled, inputs, suite=mode.suite, link=link, memory=memory),
        )
        for mode, obstacle in zip(selection, obstacles, strict=True)
    ]
