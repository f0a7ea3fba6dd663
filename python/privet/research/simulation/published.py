"""The paper's own figures (SwiftSNNI, Table 2), to print beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from privet.research.papers.paper import Cell, paper


@dataclass(frozen=True)
class PublishedRow:
    """One row of Table 2. `delay`, `wait` and `makespan` in seconds, `rate` and `throughput` in
    requests a second; `delay_noticed` is with 25 % notices, `busy` the cores in use in %. The
    baseline names no rate."""

    workload: str
    policy: str
    rate: float | None
    delay: float
    delay_noticed: float | None
    wait: float
    throughput: float
    makespan: float
    speedup: float | None
    busy: float | None


@cache
def rows() -> tuple[PublishedRow, ...]:
    printed = paper("swiftsnni").item("table-2").printed
    return tuple(_row(name, *cells) for name, cells in printed.rows.items())


def _row(name: str, *cells: Cell) -> PublishedRow:
    workload, policy, *rate = name.split(", ")
    numbers = (None if cell is None else float(cell) for cell in cells)
    return PublishedRow(
        workload,
        policy,
        float(rate[0].removesuffix("/s")) if rate else None,
        *numbers,  # type: ignore[arg-type]
    )


def row(workload: str, policy: str, rate: float | None) -> PublishedRow | None:
    """The row of a policy (`ms-shark` for the baseline, at no rate), if the paper has it."""
    for entry in rows():
        if (entry.workload, entry.policy, entry.rate) == (workload, policy, rate):
            return entry
    return None
