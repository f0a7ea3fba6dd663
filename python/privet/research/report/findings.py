"""What a study found, in three sentences, each with the figure that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privet.planner.prices import Prices
from privet.planner.record import Record
from privet.research.report import tables
from privet.research.report.tables import Row

NEAR, FAR = "LAN_S", "WAN_S"
"""The networks that stand for all: within a building, and over the sea."""


@dataclass(frozen=True)
class Finding:
    """A sentence, and the name of its figure."""

    text: str
    figure: str


def findings(records: Sequence[Record], prices: Prices) -> list[Finding]:
    """Of the model that most suites ran, among those that reveal nothing but outputs: which is
    fastest, which is cheapest, which wins where."""
    subjects = tables.drawn_subjects(records)
    model = subjects[0] if subjects else ""
    single = tables.tight(tables.of_subject(records, model, 1))
    if not single:
        return []
    rows = tables.predicted(single, prices)
    near_rows, far_rows = (
        [row for row in rows if row["network"] == network] for network in (NEAR, FAR)
    )
    winners = {
        network: _least([row for row in rows if row["network"] == network], "latency")["setting"]
        for network in dict.fromkeys(row["network"] for row in rows)
    }
    return [
        Finding(
            f"{model} takes least time a sample with {_time(near_rows)} on {NEAR}, and with "
            f"{_time(far_rows)} on {FAR}, one at a time and without a leak.",
            f"time-parts-{model}",
        ),
        Finding(
            f"It costs least with {_money(near_rows)} on {NEAR}, and with "
            f"{_money(far_rows)} on {FAR}.",
            f"cost-parts-{model}",
        ),
        Finding(
            f"Of {len({row['setting'] for row in rows})} settings that reveal nothing but outputs, "
            f"{_listed(winners)}.",
            f"regimes-{model}",
        ),
    ]


def _least(rows: Sequence[Row], key: str) -> Row:
    return min(rows, key=lambda row: float(row[key]))


def _time(rows: Sequence[Row]) -> str:
    best = _least(rows, "latency")
    return f"{best['setting']} ({best['latency']:.3g} s, {best['online_latency']:.3g} s online)"


def _money(rows: Sequence[Row]) -> str:
    best, worst = (pick(rows, key=lambda row: row["dollars_per_sample"]) for pick in (min, max))
    times = worst["dollars_per_sample"] / best["dollars_per_sample"]
    return f"{best['setting']} ({times:.3g} times less than with {worst['setting']})"


def _listed(winners: dict[str, str]) -> str:
    """`A is fastest on X and Y; B is fastest on Z`."""
    networks_of: dict[str, list[str]] = {}
    for network, setting in winners.items():
        networks_of.setdefault(setting, []).append(network)
    sentences = [
        f"{setting} is fastest on {_series(places)}" for setting, places in networks_of.items()
    ]
    return "; ".join(sentences)


def _series(names: Sequence[str]) -> str:
    """`A, B and C`."""
    *firsts, last = names
    return f"{', '.join(firsts)} and {last}" if firsts else last
