"""A report's figures, after those of the paper: rows, how to draw them, what to say below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt

from privet.planner.prices import Prices
from privet.planner.record import Record
from privet.research.report import charts, figures, published, tables
from privet.research.report.tables import Row


@dataclass(frozen=True)
class Figure:
    """A figure: its file name, rows, how to draw them, and what to say below."""

    name: str
    rows: list[Row]
    draw: Callable[[Sequence[Row]], alt.TopLevelMixin]
    caption: str


def drawings(records: Sequence[Record], prices: Prices) -> list[Figure]:
    """Figures 1 to 5, 7 and 8 (a) of the paper, as far as there are records for them."""
    found: list[Figure] = []
    for model in tables.swept_subjects(records):
        rows = figures.batch_sweep(records, model)
        text = f"Figure 1: throughput of {model} by batch on WAN_F, predicted. {_paper(1)}"
        found.append(Figure(f"batch-sweep-{model}", rows, charts.batch_sweep, text))
    hungry = figures.hungriest(records)
    if hungry is not None:
        text = (
            f"Figure 2: {figures.JOBS} jobs of {hungry.model} in batches of {hungry.batch} under "
            f"{hungry.setting.name} on WAN_S, by the size of the pool (simulated). {_paper(2)}"
        )
        found.append(Figure("pools", figures.pools(hungry), charts.pools, text))
    for model in tables.drawn_subjects(records):
        found += _parts(records, model, prices)
        found += _regimes(records, model)
    return found


def _paper(number: int) -> str:
    return published.remark(number)


def _parts(records: Sequence[Record], model: str, prices: Prices) -> list[Figure]:
    """Figures 3, 4, 5 and 7, which the paper has for its largest batches."""
    chosen = tables.largest_batches(records, model)
    sizes = sorted({it.batch for it in chosen})
    size = "batch 1" if sizes == [1] else f"each suite's largest batch (up to {sizes[-1]})"
    dollars = f"dollars a sample, prices {prices.name}"
    return [
        Figure(
            f"time-parts-{model}",
            figures.time_parts(chosen),
            charts.shares,
            f"Figure 3: where the time of {model} goes, {size}, predicted.",
        ),
        Figure(
            f"cost-parts-{model}",
            figures.cost_parts(chosen, prices),
            lambda rows: charts.amounts(rows, dollars),
            f"Figure 4: what a sample of {model} costs, {size}, predicted. {_paper(4)}",
        ),
        Figure(
            f"energy-parts-{model}",
            figures.energy_parts(chosen),
            lambda rows: charts.amounts(rows, "joules a sample"),
            f"Figure 5: energy of a sample of {model} by the paper's power table, idle apart, "
            f"{size}, predicted. {_paper(5)}",
        ),
        Figure(
            f"speed-sweep-{model}",
            figures.speed_sweep(chosen),
            charts.speed_sweep,
            f"Figure 7: time of a sample of {model} on WAN_M if computing alone went faster, "
            f"{size}, predicted. {_paper(7)}",
        ),
    ]


def _regimes(records: Sequence[Record], model: str) -> list[Figure]:
    """Figure 8 (a): by network and by speed of computing, for latency and, where batches were
    measured, for throughput, among suites that reveal nothing inside the network; and for latency
    by network among all."""
    single = tables.of_subject(records, model, 1)
    most = tables.largest_batches(records, model)
    found = [*_maps("", "latency (batch 1)", model, tables.tight(single))]
    if any(it.batch > 1 for it in tables.tight(most)):
        goal = "throughput (each suite's largest batch)"
        found += _maps("-throughput", goal, model, tables.tight(most))
    if len(tables.tight(single)) < len(single):
        text = (
            f"Figure 8 (a) with suite stream, whose client sees values in a random order: the best "
            f"latency (batch 1) for {model}, predicted."
        )
        rows = figures.regimes(single)
        found.append(Figure(f"regimes-with-stream-{model}", rows, charts.regimes, text))
    return found


def _maps(end: str, goal: str, model: str, chosen: Sequence[Record]) -> list[Figure]:
    if not chosen:
        return []
    return [
        Figure(
            f"regimes{end}-{model}",
            figures.regimes(chosen),
            charts.regimes,
            f"Figure 8 (a): the suite with the best {goal} for {model}, predicted.",
        ),
        Figure(
            f"computing-regimes{end}-{model}",
            figures.computing_regimes(chosen),
            charts.computing_regimes,
            f"Figure 8 (a) by computing: the suite with the best {goal} for {model} at 70 ms, "
            "predicted.",
        ),
    ]
