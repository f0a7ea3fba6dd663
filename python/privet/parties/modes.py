"""Suite `gmw` in each of its modes on one model, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privet import suites
from privet.compile import Compiled
from privet.errors import Misuse
from privet.executor.codec import Inputs
from privet.executor.ranges import Calibration
from privet.executor.reference import random_inputs
from privet.graph import ModelSource
from privet.parties.local import Run, compile_for, run


@dataclass(frozen=True)
class Mode:
    """Options of suite `gmw` that belong together, and what they promise of the result."""

    name: str
    guarantee: str
    options: Mapping[str, Any]


EXACT = Mode("exact", "the default: the fixed-point executor's result, bit for bit", {})

ONE_BIT = Mode(
    "one-bit", "weaker: truncations off by 1 unit now and then", {"truncation": "one-bit"}
)

PRIME = Mode("prime", "as exact; linear layers modulo a prime", {"field": "prime"})

ONE_SHOT = Mode("one-shot", "as exact; linear layers encrypted online", {"linear": "online"})

NAMES = ("exact", "one-bit", "prime", "one-shot")
"""What `modes` knows."""


def modes(compiled: Compiled, names: tuple[str, ...]) -> list[Mode]:
    """The named modes that a model allows, in the order of `NAMES`.

    # Errors
    `Misuse` if a name is unknown.
    """
    for name in names:
        if name not in NAMES:
            raise Misuse(f"mode {name} is unknown; possible are {', '.join(NAMES)}, or all")
    named = [mode for mode in (EXACT, ONE_BIT, PRIME, ONE_SHOT) if mode.name in names]
    return [mode for mode in named if mode is not PRIME or _has_field(compiled)]


def _has_field(compiled: Compiled) -> bool:
    """Whether there is a prime for the ring of a program, with room for its linear layers."""
    try:
        suites.plan(compiled.program.to_public_bytes(), "gmw", "linear", "exact", "prime")
    except Misuse:
        return False
    return True


def run_modes(
    model: ModelSource,
    inputs: Inputs | None = None,
    names: tuple[str, ...] = NAMES,
    *,
    bits: int | None = None,
    scale: int | None = None,
    calibration: Calibration | None = None,
    input_range: tuple[float, float] | None = None,
    batch: int = 1,
    **options: Any,
) -> list[tuple[Mode, Run]]:
    """Compiles a model once and runs it in each of the named modes that it allows, on the same
    inputs. Arguments are those of `privet.run`.

    # Errors
    As `modes` and `privet.run`.
    """
    widths = suites.precision("gmw", bits, scale)
    compiled = compile_for(model, inputs, widths, calibration, input_range, batch)
    if inputs is None:
        inputs = random_inputs(compiled.program, input_range)
    return [
        (mode, run(compiled, inputs, **options, **mode.options)) for mode in modes(compiled, names)
    ]
