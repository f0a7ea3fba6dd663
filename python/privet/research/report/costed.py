"""How far costs by layers are from runs: what `privet plan` says of a model that was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.planner.costing import cost_settings
from privet.planner.record import Record
from privet.planner.units import UnitCosts
from privet.research.report import tables
from privet.research.report.digest import Cells, number
from privet.research.report.standard import INPUT_RANGES

CHOSEN = (
    ("resnet20", ("fss", "gmw-log", "stream", "stream-bfv")),
    ("squeezenet", ("gmw-log",)),
    ("resnet50", ("fss", "gmw-log", "gmw-dealer-blocks")),
    ("m2", ("stream-bfv",)),
    ("nn20", ("ckks-collective-3",)),
)
"""Models and settings that are compared, if they have a record."""


@dataclass(frozen=True)
class Costed:
    """CPU seconds of both parties, offline and online, by layers and as measured, and seconds by
    the clock."""

    model: str
    setting: str
    costed: tuple[float, float]
    measured: tuple[float, float]
    costed_seconds: tuple[float, float]
    measured_seconds: tuple[float, float]

    def cells(self) -> Cells:
        """For a table."""
        pairs = (self.costed, self.measured, self.costed_seconds, self.measured_seconds)
        return [
            f"{self.model}, `{self.setting}`",
            *(", ".join(number(it) for it in pair) for pair in pairs),
        ]


HEADS = ("", "CPU s costed", "measured", "seconds costed", "measured")


def costed(
    records: Sequence[Record], models: Path, prices: Callable[[], UnitCosts]
) -> list[Costed]:
    """The chosen settings, of models whose files lie in `models`."""
    found: list[Costed] = []
    known = {(it.model, it.setting.name): it for it in tables.plain(records) if it.batch == 1}
    for model, names in CHOSEN:
        wanted = [known[model, name] for name in names if (model, name) in known]
        path = models / f"{model}.onnx"
        if wanted and path.exists():
            found += _compared(wanted, path, prices)
    return found


def _compared(
    wanted: Iterable[Record], path: Path, prices: Callable[[], UnitCosts]
) -> list[Costed]:
    own = {it.setting: it for it in wanted}
    made = cost_settings(path, own, 1, prices, INPUT_RANGES.get(path.stem))
    return [
        Costed(
            path.stem,
            setting.name,
            (it.offline.cpu_seconds or 0.0, it.online.cpu_seconds or 0.0),
            (own[setting].offline.cpu_seconds or 0.0, own[setting].online.cpu_seconds or 0.0),
            (it.offline.seconds, it.online.seconds),
            (own[setting].offline.seconds, own[setting].online.seconds),
        )
        for setting, it in made.items()
        if isinstance(it, Record)
    ]
