"""Charts of a report, as Altair objects, and which of them a study gets.

They are narrow enough for a phone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from privet.errors import Misuse
from privet.planner.prices import Prices
from privet.planner.record import Record
from privet.planner.setting import ALL
from privet.research.report import figures, tables
from privet.research.report.figures import ROUND_TRIPS, SPEEDS
from privet.research.report.tables import Row

WIDTH = 280
HEIGHT = 200

FAMILIES = tuple(dict.fromkeys(setting.family for setting in ALL.values()))
COLOURS = (
    *("#4c78a8", "#72b7b2", "#f58518", "#e45756", "#54a24b"),
    *("#b279a2", "#9d755d", "#eeca3b", "#bab0ac", "#ff9da6"),
)


def colours(families: Sequence[str]) -> dict[str, str]:
    """A colour for each family, none twice. Raises `Misuse` if there are more families than
    colours."""
    if len(families) > len(COLOURS):
        raise Misuse(f"{len(families)} families of settings have {len(COLOURS)} colours: add some")
    return dict(zip(families, COLOURS, strict=False))


def _family(rows: Sequence[Row]) -> alt.Color:
    """A family's colour, the same in every figure; the legend has those that the figure shows."""
    families = {row["family"] for row in rows}
    palette = {name: colour for name, colour in colours(FAMILIES).items() if name in families}
    scale = alt.Scale(domain=list(palette), range=list(palette.values()))
    return alt.Color("family:N", title=None, scale=scale, legend=_below(3))


NETWORKS = ("LAN_F", "LAN_S", "WAN_F", "WAN_M", "WAN_S")


def _chart(rows: Sequence[Row]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)), width=WIDTH, height=HEIGHT)


def _below(columns: int) -> alt.Legend:
    """A legend under its chart."""
    return alt.Legend(orient="bottom", columns=columns)


def _encoded(chart: alt.Chart, **channels: Any) -> alt.Chart:
    encoded: alt.Chart = chart.encode(**channels)
    return encoded


def batch_sweep(rows: Sequence[Row]) -> alt.TopLevelMixin:
    return _encoded(
        _chart(rows).mark_line(point=True),
        x=alt.X("batch:Q", title="batch", scale=alt.Scale(type="log", base=2)),
        y=alt.Y("times:Q", title="throughput, times that of batch 1"),
        color=alt.Color("setting:N", title=None, legend=_below(2)),
        strokeDash=alt.StrokeDash(
            "phase:N",
            title=None,
            legend=alt.Legend(
                orient="bottom", columns=1, symbolType="stroke", symbolFillColor="transparent"
            ),
        ),
    )


def pools(rows: Sequence[Row]) -> alt.TopLevelMixin:
    return _encoded(
        _chart(rows).mark_line(),
        x=alt.X("job:Q", title="job"),
        y=alt.Y("seconds:Q", title="seconds from arrival to answer"),
        color=alt.Color("pool:N", title="pool", sort=None, legend=_below(2)),
    )


def amounts(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Each family's whole by network on a logarithmic scale, and its parts below as shares
    (Figures 4 and 5)."""
    whole = _encoded(
        _chart(rows).mark_point(filled=True, size=70),
        x=alt.X("sum(value):Q", title=title, scale=alt.Scale(type="log")),
        y=alt.Y("network:N", title=None, sort=list(NETWORKS)),
        color=_family(rows),
    )
    chart: alt.TopLevelMixin = alt.vconcat(whole, shares(rows)).resolve_scale(color="independent")
    return chart


def shares(rows: Sequence[Row]) -> alt.Chart:
    """Parts as shares of each family's whole, a panel for each network (Figure 3)."""
    return _encoded(
        alt.Chart(alt.InlineData(values=list(rows)), width=WIDTH - 60).mark_bar(),
        y=alt.Y("family:N", title=None, sort=list(FAMILIES)),
        x=alt.X("value:Q", title="share", stack="normalize"),
        color=alt.Color("part:N", title=None, sort=None, legend=_below(2)),
        order=alt.Order("part:N"),
        row=alt.Row("network:N", title=None, sort=list(NETWORKS)),
    )


def speed_sweep(rows: Sequence[Row]) -> alt.TopLevelMixin:
    return _encoded(
        _chart(rows).mark_line(point=True),
        x=alt.X("speed:Q", title="computing is faster by", scale=alt.Scale(type="log")),
        y=alt.Y("share:Q", title="latency, of the slowest", scale=alt.Scale(type="log")),
        color=_family(rows),
        row=alt.Row("phase:N", title=None),
    )


def contexts(rows: Sequence[Row]) -> alt.TopLevelMixin:
    return _encoded(
        _chart(rows).mark_line(point=True),
        x=alt.X("tokens:Q", title="tokens", scale=alt.Scale(type="log", base=2)),
        y=alt.Y("times:Q", title=f"latency, times that of {figures.CONTEXT} tokens"),
        color=_family(rows),
        row=alt.Row("phase:N", title=None),
    )


def regimes(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Figure 8, by round trip."""
    return _map(rows, "rtt", "round trip", [f"{1000 * rtt:g} ms" for rtt in ROUND_TRIPS])


def computing_regimes(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Figure 8, by speed of computing."""
    speeds = [f"{speed} x" for speed in reversed(SPEEDS)]
    return _map(rows, "speed", "computing is faster by", speeds)


def _map(rows: Sequence[Row], side: str, title: str, sort: list[str]) -> alt.TopLevelMixin:
    rates = list(dict.fromkeys(row["bandwidth"] for row in rows))
    return _encoded(
        _chart(rows).mark_rect(stroke="white"),
        x=alt.X("bandwidth:N", title="bandwidth", sort=rates),
        y=alt.Y(f"{side}:N", title=title, sort=sort),
        color=_family(rows),
        row=alt.Row("phase:N", title=None),
    )


@dataclass(frozen=True)
class Figure:
    """A figure: its file name, rows, how to draw them, and what to say below."""

    name: str
    rows: list[Row]
    draw: Callable[[Sequence[Row]], alt.TopLevelMixin]
    caption: str


def drawings(records: Sequence[Record], prices: Prices) -> list[Figure]:
    """Figures 1 to 7 and 8 (a) of the paper, as far as there are records for them."""
    result: list[Figure] = []
    for model in tables.swept_subjects(records):
        rows = figures.batch_sweep(records, model)
        text = f"Figure 1: throughput of {model} by batch on WAN_F, predicted. {tables.remark(1)}"
        result.append(Figure(f"batch-sweep-{model}", rows, batch_sweep, text))
    slowest = figures.slowest_material(records)
    if slowest is not None:
        text = (
            f"Figure 2: {figures.JOBS} jobs of {slowest.model} in batches of {slowest.batch} under "
            f"{slowest.setting.name} on WAN_S, by the size of the pool (simulated). "
            f"{tables.remark(2)}"
        )
        result.append(Figure("pools", figures.pools(slowest), pools, text))
    if rows := figures.contexts(records):
        text = "Figure 6: latency of BERT-Tiny by its tokens on WAN_M, batch 1, predicted. "
        result.append(Figure("contexts", rows, contexts, text + tables.remark(6)))
    for model in tables.drawn_subjects(records):
        result += _parts(records, model, prices)
        result += _regimes(records, model)
    return result


def _parts(records: Sequence[Record], model: str, prices: Prices) -> list[Figure]:
    """Figures 3, 4, 5 and 7, which the paper has for its largest batches."""
    largest = tables.largest_batches(records, model)
    sizes = sorted({record.batch for record in largest})
    size = "batch 1" if sizes == [1] else f"each suite's largest batch (up to {sizes[-1]})"
    dollars = f"dollars a sample, prices {prices.name}"
    return [
        Figure(
            f"time-parts-{model}",
            figures.time_parts(largest),
            shares,
            f"Figure 3: where the time of {model} goes, {size}, predicted.",
        ),
        Figure(
            f"cost-parts-{model}",
            figures.cost_parts(largest, prices),
            lambda rows: amounts(rows, dollars),
            f"Figure 4: what a sample of {model} costs, {size}, predicted. {tables.remark(4)}",
        ),
        Figure(
            f"energy-parts-{model}",
            figures.energy_parts(largest),
            lambda rows: amounts(rows, "joules a sample"),
            f"Figure 5: energy of a sample of {model} by the paper's power table, idle apart, "
            f"{size}, predicted. {tables.remark(5)}",
        ),
        Figure(
            f"speed-sweep-{model}",
            figures.speed_sweep(largest),
            speed_sweep,
            f"Figure 7: time of a sample of {model} on WAN_M if computing alone went faster, "
            f"{size}, predicted. {tables.remark(7)}",
        ),
    ]


def _regimes(records: Sequence[Record], model: str) -> list[Figure]:
    """Figure 8 (a): by network and by speed of computing, for latency and, where batches were
    measured, for throughput, among suites that reveal nothing inside the network; and for latency
    by network among all."""
    single = tables.of_subject(records, model, 1)
    largest = tables.largest_batches(records, model)
    result = [*_maps("", "latency (batch 1)", model, tables.tight(single))]
    if any(record.batch > 1 for record in tables.tight(largest)):
        goal = "throughput (each suite's largest batch)"
        result += _maps("-throughput", goal, model, tables.tight(largest))
    if len(tables.tight(single)) < len(single):
        text = (
            f"Figure 8 (a) with suites whose client sees values in a random order: the best "
            f"latency (batch 1) for {model}, predicted."
        )
        rows = figures.regimes(single)
        result.append(Figure(f"regimes-with-stream-{model}", rows, regimes, text))
    return result


def _maps(end: str, goal: str, model: str, records: Sequence[Record]) -> list[Figure]:
    if not records:
        return []
    return [
        Figure(
            f"regimes{end}-{model}",
            figures.regimes(records),
            regimes,
            f"Figure 8 (a): the suite with the best {goal} for {model}, predicted.",
        ),
        Figure(
            f"computing-regimes{end}-{model}",
            figures.computing_regimes(records),
            computing_regimes,
            f"Figure 8 (a) by computing: the suite with the best {goal} for {model} at 70 ms, "
            "predicted.",
        ),
    ]
