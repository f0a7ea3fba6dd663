"""Charts of a report, as Altair objects, narrow enough for a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from privet.planner.setting import ALL
from privet.research.report.figures import ROUND_TRIPS, SPEEDS
from privet.research.report.tables import Row

WIDTH = 280
HEIGHT = 200

FAMILIES = tuple(dict.fromkeys(setting.family for setting in ALL.values()))
COLOURS = (
    *("#4c78a8", "#72b7b2", "#f58518", "#e45756", "#54a24b"),
    *("#b279a2", "#9d755d", "#eeca3b", "#bab0ac", "#ff9da6"),
)


def _family(rows: Sequence[Row]) -> alt.Color:
    """A family's colour, the same in every figure; the legend has those that the figure shows."""
    shown = {row["family"] for row in rows}
    places = [place for place, name in enumerate(FAMILIES) if name in shown]
    scale = alt.Scale(
        domain=[FAMILIES[place] for place in places],
        range=[COLOURS[place % len(COLOURS)] for place in places],
    )
    legend = alt.Legend(orient="bottom", columns=3)
    return alt.Color("family:N", title=None, scale=scale, legend=legend)


NETWORKS = ("LAN_F", "LAN_S", "WAN_F", "WAN_M", "WAN_S")


def _chart(rows: Sequence[Row]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)), width=WIDTH, height=HEIGHT)


def batch_sweep(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Figure 1."""
    chart: Any = (
        _chart(rows)
        .mark_line(point=True)
        .encode(
            x=alt.X("batch:Q", title="batch", scale=alt.Scale(type="log", base=2)),
            y=alt.Y("times:Q", title="throughput, times that of batch 1"),
            color=alt.Color("setting:N", title=None, legend=alt.Legend(orient="bottom", columns=2)),
            strokeDash=alt.StrokeDash(
                "phase:N",
                title=None,
                legend=alt.Legend(
                    orient="bottom", columns=1, symbolType="stroke", symbolFillColor="transparent"
                ),
            ),
        )
    )
    return chart  # type: ignore[no-any-return]


def pools(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Figure 2."""
    chart: Any = (
        _chart(rows)
        .mark_line()
        .encode(
            x=alt.X("job:Q", title="job"),
            y=alt.Y("seconds:Q", title="seconds from arrival to answer"),
            color=alt.Color(
                "pool:N", title="pool", sort=None, legend=alt.Legend(orient="bottom", columns=2)
            ),
        )
    )
    return chart  # type: ignore[no-any-return]


def amounts(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Each family's whole by network on a logarithmic scale, and its parts below as shares
    (Figures 4 and 5)."""
    whole: Any = (
        _chart(rows)
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("sum(value):Q", title=title, scale=alt.Scale(type="log")),
            y=alt.Y("network:N", title=None, sort=list(NETWORKS)),
            color=_family(rows),
        )
    )
    below: Any = shares(rows)
    both: Any = alt.vconcat(whole, below).resolve_scale(color="independent")
    return both  # type: ignore[no-any-return]


def shares(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Parts as shares of each family's whole, a panel for each network (Figure 3)."""
    chart: Any = (
        alt.Chart(alt.InlineData(values=list(rows)), width=WIDTH - 60)
        .mark_bar()
        .encode(
            y=alt.Y("family:N", title=None, sort=list(FAMILIES)),
            x=alt.X("value:Q", title="share", stack="normalize"),
            color=alt.Color(
                "part:N", title=None, sort=None, legend=alt.Legend(orient="bottom", columns=2)
            ),
            order=alt.Order("part:N"),
            row=alt.Row("network:N", title=None, sort=list(NETWORKS)),
        )
    )
    return chart  # type: ignore[no-any-return]


def speed_sweep(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Figure 7."""
    chart: Any = (
        _chart(rows)
        .mark_line(point=True)
        .encode(
            x=alt.X("speed:Q", title="computing is faster by", scale=alt.Scale(type="log")),
            y=alt.Y("share:Q", title="latency, of the slowest", scale=alt.Scale(type="log")),
            color=_family(rows),
            row=alt.Row("phase:N", title=None),
        )
    )
    return chart  # type: ignore[no-any-return]


def regimes(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Figure 8, by round trip."""
    return _map(rows, "rtt", "round trip", [f"{1000 * rtt:g} ms" for rtt in ROUND_TRIPS])


def computing_regimes(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Figure 8, by speed of computing."""
    speeds = [f"{speed} x" for speed in reversed(SPEEDS)]
    return _map(rows, "speed", "computing is faster by", speeds)


def _map(rows: Sequence[Row], side: str, title: str, sort: list[str]) -> alt.TopLevelMixin:
    rates = list(dict.fromkeys(row["bandwidth"] for row in rows))
    chart: Any = (
        _chart(rows)
        .mark_rect(stroke="white")
        .encode(
            x=alt.X("bandwidth:N", title="bandwidth", sort=rates),
            y=alt.Y(f"{side}:N", title=title, sort=sort),
            color=_family(rows),
            row=alt.Row("phase:N", title=None),
        )
    )
    return chart  # type: ignore[no-any-return]
