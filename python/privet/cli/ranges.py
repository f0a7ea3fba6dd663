"""Per layer, for the owner of a model: what its values can reach, have reached, and fit in."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from privet.compile import Compiled
from privet.executor.layer_ranges import LayerRange, Ranges
from privet.suites import Suite


def reach_of(suite: Suite, compiled: Compiled) -> Ranges | None:
    """What values of a program may be in the rings of a suite; None if it computes with reals."""
    return None if suite.reach is None else compiled.ranges(narrow=suite.reach == "narrow")


def show_ranges(console: Console, ranges: Ranges) -> None:
    """The table, and what to do where a layer is not sound."""
    table = Table(box=None, pad_edge=False)
    for title in ("layer", "operator"):
        table.add_column(title)
    for title in ("can reach", "measured", "ring", "holds"):
        table.add_column(title, justify="right")
    for layer in ranges.layers:
        mark = "" if layer.is_sound else "[bold yellow]"
        reach = "no bound" if layer.sound is None else _real(layer, layer.sound)
        numbers = (
            _real(layer, layer.measured),
            f"{layer.ring_bits} bits",
            _real(layer, layer.holds),
        )
        table.add_row(layer.name, layer.operator, mark + reach, *numbers)
    console.print(table)
    if ranges.is_sound:
        console.print("Sound: no input within its bound can leave a ring.")
        return
    beyond = sum(not layer.is_sound for layer in ranges.layers)
    console.print(
        f"[bold yellow]Not sound:[/] in {beyond} of {len(ranges.layers)} rows an input within its "
        f"bound, unlike those measured, could leave the ring, and give a wrong answer without a "
        f"sign. For a sound program compile {ranges.advice}.",
        soft_wrap=True,
    )


def range_fields(ranges: Ranges) -> dict[str, Any]:
    """The same for programs."""
    return {
        "sound": ranges.is_sound,
        "sound_bits": ranges.bits_needed,
        "safe_share": float(ranges.safe_share()),
        "layers": [
            {
                "name": layer.name,
                "operator": layer.operator,
                "can_reach": None if layer.sound is None else _unit(layer) * layer.sound,
                "measured": _unit(layer) * layer.measured,
                "ring_bits": layer.ring_bits,
                "holds": _unit(layer) * layer.holds,
                "sound": layer.is_sound,
            }
            for layer in ranges.layers
        ],
    }


def _unit(layer: LayerRange) -> float:
    return 2.0**-layer.scale


def _real(layer: LayerRange, magnitude: int) -> str:
    return f"{magnitude * _unit(layer):.4g}"
