"""The tables of docs/reference/study.md, made from records: what a study found, in few figures.

Each is Markdown. `write` puts them between a page's markers, `<!-- NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.planner.costing import cost_settings
from privet.planner.network import PRESETS
from privet.planner.predict import Prediction, predict
from privet.planner.prices import Prices, per_batch
from privet.planner.record import Record
from privet.planner.setting import ALL
from privet.planner.units import UnitCosts
from privet.research.report import figures, tables
from privet.research.report.energy import energy
from privet.research.report.standard import STUDY
from privet.research.report.validate import by_suite, compare

SHOWN = (
    ("mnist-1", ("WAN_S",)),
    ("m1", ("LAN_S", "WAN_S", "WAN_M")),
    ("m2", ("LAN_S", "WAN_S")),
    ("squeezenet", ("LAN_S", "WAN_S")),
    ("resnet20", ("LAN_S", "WAN_S")),
    ("resnet50", ("LAN_S", "WAN_S")),
    ("bert-tiny", ("LAN_S", "WAN_S", "WAN_M")),
)
"""Its models and networks."""

NAMES = {
    "mnist-1": "MNIST-1",
    "m1": "M1",
    "m2": "M2",
    "squeezenet": "SqueezeNet",
    **tables.MODELS,
}

Cells = Sequence[str]


def digest(records: Sequence[Record], prices: Prices) -> dict[str, str]:
    """Tables by name; one without rows is left out."""
    makers: dict[str, Callable[[], tuple[Cells, list[Cells]]]] = {
        "latency": lambda: (_heads(), _latency(records)),
        "rounds": lambda: (
            ("Rounds online", *STUDY.columns),
            [(NAMES[model], *cells) for model, _ in SHOWN if any(cells := _rounds(records, model))],
        ),
        "largest": lambda: (
            ("Largest runs", "setting", "batch", "memory of a party, GB", "material, GB"),
            _largest(records),
        ),
        "validation": lambda: (
            ("Suite", "phase", "runs", "median error", "95th percentile"),
            _validation(records),
        ),
        "batches": lambda: (
            ("Largest batch", "batch", "online, WAN_F", "both", "samples/s, WAN_S", "both"),
            _batches(records),
        ),
        "contexts": lambda: (
            ("BERT-Tiny on WAN_M", "tokens", "online", "times that of 128", "both", "times"),
            _contexts(records),
        ),
        "regimes": lambda: (("Figure 8 (a)", "batch", "phase", "cells won"), _regimes(records)),
        "spending": lambda: (
            ("On WAN_M, batch 1", "J a sample", "idle", "$ a million", "offline transfer"),
            _spending(records, prices),
        ),
    }
    made = {name: make() for name, make in makers.items()}
    return {name: markdown(heads, rows) for name, (heads, rows) in made.items() if rows}


def markdown(heads: Cells, rows: Iterable[Cells]) -> str:
    """A table whose first column is words."""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def write(page: str, made: dict[str, str]) -> str:
    """The page with these tables in place of those between its markers of the same names."""
    for name, table in made.items():
        marker = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        literal = table.replace("\\", "\\\\")
        page = re.sub(marker, rf"\g<1>{literal}\g<2>", page, flags=re.DOTALL)
    return page


def number(value: float) -> str:
    """Two digits, or three where the first are whole."""
    if value >= 100:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:#.2g}"


def _heads() -> Cells:
    return ["Seconds", *(head for it in STUDY.columns for head in (f"`{it}` online", "both"))]


def _latency(records: Sequence[Record]) -> list[Cells]:
    rows: list[Cells] = []
    for model, networks in SHOWN:
        chosen = tables.of_subject(records, model, 1)
        if not chosen:
            continue
        for network in networks:
            cells: list[str] = []
            paper: list[str] = []
            for family in STUDY.columns:
                known = [it for it in chosen if it.setting.family == family]
                cells += _best(known, network)
                paper += _published(family, model, network)
            rows.append((f"{NAMES[model]}, {network}", *cells))
            if any(paper):
                rows.append(("the paper's, on a GPU", *paper))
    return rows


def _best(known: Sequence[Record], network: str) -> list[str]:
    if not known:
        return ["", ""]
    found = [predict(it, PRESETS[network]) for it in known]
    online = min(it.online_latency for it in found)
    both = "" if known[0].setting.makes_once else number(min(it.latency for it in found))
    return [number(online), both]


def _published(family: str, model: str, network: str) -> list[str]:
    setting = next(it for it in ALL.values() if it.family == family)
    figures_shown = [
        tables.figure("latency", model, network, setting, offline=offline)
        for offline in ((False,) if setting.makes_once else (False, True))
    ]
    return [*("" if it is None else f"{it:g}" for it in figures_shown), ""][:2]


def _rounds(records: Sequence[Record], model: str) -> list[str]:
    chosen = tables.of_subject(records, model, 1)
    cells = []
    for family in STUDY.columns:
        counts = sorted({it.online.rounds for it in chosen if it.setting.family == family})
        cells.append(" to ".join(str(it) for it in dict.fromkeys([*counts[:1], *counts[-1:]])))
    return cells


def _largest(records: Sequence[Record]) -> list[Cells]:
    """For each family the run that took most memory or, with material on disk, most of that."""
    found: dict[tuple[str, str, int], Cells] = {}
    for family in dict.fromkeys(it.setting.family for it in records):
        own = [it for it in tables.plain(records) if it.setting.family == family and it.peak_mb]
        sizes: tuple[Callable[[Record], float], ...] = (_peak, _material)
        for most in (max(own, key=size, default=None) for size in sizes):
            if most is None:
                continue
            name = (most.model, most.setting.name, most.batch)
            found[name] = (
                *name[:2],
                str(most.batch),
                f"{_peak(most) / 1e3:.2f}",
                f"{_material(most) / 1e9:.2f}",
            )
    return list(found.values())


def _peak(record: Record) -> float:
    return max(record.peak_mb.values())


def _material(record: Record) -> float:
    return float(sum(record.material_bytes.values()))


def _validation(records: Sequence[Record]) -> list[Cells]:
    return [
        (suite, phase, str(it.count), f"{it.median:.1%}", f"{it.percentile_95:.0%}")
        for suite, phase, it in by_suite(compare(records))
    ]


def _batches(records: Sequence[Record]) -> list[Cells]:
    """Throughput of each setting's largest batch, as a multiple of batch 1 and on WAN_S."""
    rows: list[Cells] = []
    for model in tables.swept_subjects(records):
        swept = figures.batch_sweep(records, model)
        for name in dict.fromkeys(row["setting"] for row in swept):
            own = [row for row in swept if row["setting"] == name]
            most = max(row["batch"] for row in own)
            times = {row["phase"]: row["times"] for row in own if row["batch"] == most}
            (record,) = (
                it for it in tables.of_subject(records, model, most) if it.setting.name == name
            )
            there = predict(record, PRESETS["WAN_S"])
            rows.append(
                (
                    f"{model}, {name}",
                    str(most),
                    *(f"{times[phase]:.1f} times" for phase in ("online", "offline + online")),
                    number(there.online_throughput),
                    number(there.throughput),
                )
            )
    return rows


def _contexts(records: Sequence[Record]) -> list[Cells]:
    """Figure 6: seconds and multiples of each family, both phases of a length in a row."""
    found: dict[tuple[str, int], list[str]] = {}
    for row in figures.contexts(records):
        cells = found.setdefault((row["family"], row["tokens"]), [])
        cells += [number(row["seconds"]), f"{row['times']:.2f}"]
    return [(f"`{family}`", str(tokens), *cells) for (family, tokens), cells in found.items()]


def _regimes(records: Sequence[Record]) -> list[Cells]:
    rows: list[Cells] = []
    for model in tables.drawn_subjects(records):
        single = tables.of_subject(records, model, 1)
        for batch, chosen in (
            ("1", tables.tight(single)),
            ("largest", tables.tight(tables.largest_batches(records, model))),
            ("1, with revealed values", single),
        ):
            maps = {
                "by round trip": figures.regimes(chosen) if chosen else [],
                "by computing": figures.computing_regimes(chosen) if chosen else [],
            }
            for name, cells in maps.items():
                for phase in dict.fromkeys(row["phase"] for row in cells):
                    won = Counter(row["family"] for row in cells if row["phase"] == phase)
                    counts = ", ".join(f"{family} {count}" for family, count in won.most_common())
                    rows.append((f"{model} {name}", batch, phase, counts))
    return rows


def _spending(records: Sequence[Record], prices: Prices) -> list[Cells]:
    rows: list[Cells] = []
    for model, _ in SHOWN:
        chosen = tables.of_subject(records, model, 1)
        known = [it for it in chosen if it.setting.family in STUDY.columns]
        for it in tables.best_of_families(known, PRESETS["WAN_M"]):
            rows.append((f"{model}, {it.record.setting.name}", *_spent(it, prices)))
    return rows


def _spent(it: Prediction, prices: Prices) -> list[str]:
    offline, online = energy(it)
    joules, money = offline + online, per_batch(it, prices)
    return [
        number(joules.joules),
        f"{joules.idle / joules.joules:.0%}",
        number(1e6 * money.dollars),
        f"{money.offline_transfer / money.dollars:.0%}",
    ]


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
    for model, names in STUDY.costed.items():
        wanted = [known[model, name] for name in names if (model, name) in known]
        path = models / f"{model}.onnx"
        if wanted and path.exists():
            found += _compared(wanted, path, prices)
    return found


def _compared(
    wanted: Iterable[Record], path: Path, prices: Callable[[], UnitCosts]
) -> list[Costed]:
    own = {it.setting: it for it in wanted}
    compiling = {"input_range": STUDY.input_ranges.get(path.stem)}
    made = cost_settings(path, own, 1, prices, compiling)
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
