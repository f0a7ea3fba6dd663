"""Per layer, for the owner of a model: what its values can reach, have reached, and fit in."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from privet.cli.console import Console
from privet.cli.show import table as cli_table
from privet.compiler.compile import Compiled
from privet.compiler.executor.layer_ranges import LayerRange, Ranges
from privet.suites import Suite

NO_RINGS = (
    "Rings do not apply: the suite computes on approximate reals, and no value wraps. An "
    "activation that is a polynomial in place of a function holds on the interval measured, with "
    "its margin; beyond it answers are wrong without a sign."
)
"""Why there is no ring to fit in."""


def show(console: Console, suite: Suite, compiled: Compiled) -> None:
    """What values of a program may be as a suite computes them."""
    ranges = compiled.ranges(narrow=suite.reach == "narrow")
    if suite.reach == "reals":
        show_reach(console, ranges)
    else:
        show_ranges(console, ranges)


def fields(suite: Suite, compiled: Compiled) -> dict[str, Any]:
    """The same for programs."""
    ranges = compiled.ranges(narrow=suite.reach == "narrow")
    layers: list[dict[str, Any]] = [
        {
            "name": layer.name,
            "operator": layer.operator,
            "can_reach": None if layer.sound is None else _unit(layer) * layer.sound,
            "measured": _unit(layer) * layer.measured,
        }
        for layer in ranges.layers
    ]
    if suite.reach == "reals":
        return {"note": NO_RINGS, "layers": layers}
    for row, layer in zip(layers, ranges.layers, strict=True):
        row |= {"ring_bits": layer.ring_bits, "holds": _unit(layer) * layer.holds}
        row |= {"sound": layer.is_sound}
    sound = {"sound": ranges.is_sound, "sound_bits": ranges.sound_bits}
    return {**sound, "safe_share": float(ranges.safe_share()), "layers": layers}


def show_ranges(console: Console, ranges: Ranges) -> None:
    """The table, and what to do where a layer is not sound."""
    table = cli_table(("layer", "operator"), ("can reach", "measured", "ring", "holds"))
    for layer in ranges.layers:
        style = "" if layer.is_sound else "bold yellow"
        reach = "no bound" if layer.sound is None else _real(layer, layer.sound)
        numbers = (
            _real(layer, layer.measured),
            f"{layer.ring_bits} bits",
            _real(layer, layer.holds),
        )
        table.add_row(layer.name, layer.operator, Text(reach, style=style), *numbers)
    console.print(table)
    if ranges.is_sound:
        console.print("Sound: no input within its bound can leave a ring or a function's table.")
        return
    advice = "With calibration samples like the real inputs this is unlikely."
    if ranges.ways:
        advice += f" For a sound program compile {', or '.join(ranges.ways)}."
    beyond = sum(not layer.is_sound for layer in ranges.layers)
    console.print(
        Text.assemble(
            ("Not sound:", "bold yellow"),
            f" in {beyond} of {len(ranges.layers)} rows an input within its bound, unlike those "
            "measured, could leave the ring or a function's table, and give a wrong answer without "
            f"a sign. {advice}",
        ),
        soft_wrap=True,
    )


def show_reach(console: Console, ranges: Ranges) -> None:
    """The same where no ring wraps."""
    table = cli_table(("layer", "operator"), ("can reach", "measured"))
    for layer in ranges.layers:
        reach = "no bound" if layer.sound is None else _real(layer, layer.sound)
        table.add_row(layer.name, layer.operator, reach, _real(layer, layer.measured))
    console.print(table)
    console.print(NO_RINGS, soft_wrap=True)


def _unit(layer: LayerRange) -> float:
    return 2.0**-layer.scale


def _real(layer: LayerRange, magnitude: int) -> str:
    return f"{magnitude * _unit(layer):.4g}"
