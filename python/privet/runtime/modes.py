"""A suite in each of its modes on one model, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privet import suites
from privet.compiler.compile import Compiled
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
class Mode:
    """A suite with options that belong together, and what they promise of the result."""

    name: str
    guarantee: str
    suite: Suite


def modes(suite: Suite, words: str) -> list[Mode]:
    """The modes of a suite that `words` names, with commas between, or all; in the suite's order.
    Raises `Misuse` if a name is unknown, or the suite has an option that a mode would set."""
    variants = suite.variants
    names = list(variants) if words == ALL else words.split(",")
    for name in names:
        if name not in variants:
            possible = ", ".join(variants) or f"none of suite {suite.name}"
            raise Misuse(f"mode {name} is unknown; possible are {possible}, or {ALL}")
    usual = type(suite)()
    for option in {option for _, options in variants.values() for option in options}:
        if getattr(suite, option) != getattr(usual, option):
            raise Misuse(
                f"modes of suite {suite.name} are to be compared: leave out {option}, which picks "
                "one"
            )
    return [
        Mode(name, guarantee, replace(suite, **options))
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
) -> Sequence[tuple[Mode, Run]]:
    """Compiles a model once and runs it in each of the named modes that it allows, on the same
    inputs. Arguments are those of `privet.run`; `options` those of `privet.compile`. Raises what
    `modes` and `privet.run` do."""
    config = suites.as_suite(suite)
    selection = modes(config, words)
    widths = (options.pop(option, None) for option in ("bits", "scale", "weight_scale"))
    options |= vars(config.precision.with_widths(*widths))
    compiled = compile_for(model, inputs, calibration, input_range, batch=batch, **options)
    if inputs is None:
        inputs = trial_inputs(compiled.source, compiled.program, input_range)
    return [
        (mode, run(compiled, inputs, suite=mode.suite, link=link, memory=memory))
        for mode in selection
        if mode is selection[0] or _allows(compiled, mode.suite)
    ]


def _allows(compiled: Compiled, suite: Suite) -> bool:
    """Whether a model can be planned for a suite: not every ring has a prime, for one."""
    try:
        suite.plan(compiled.program)
    except Misuse:
        return False
    return True
