"""The paper's own figures (SwiftSNNI, Table 2), to print beside ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Row:
    """One row of Table 2. `delay`, `wait` and `makespan` in seconds, `rate` and `throughput` in
    requests a second; `delay_noticed` is with 25 % notices. The baseline names no rate."""

    workload: str
    policy: str
    delay: float
    wait: float
    throughput: float
    makespan: float
    rate: float | None = None
    delay_noticed: float | None = None
    speedup: float | None = None


@cache
def rows() -> tuple[Row, ...]:
    text = files("privet.research.simulation").joinpath("data/published.toml").read_text()
    return tuple(Row(**row) for row in tomllib.loads(text)["row"])


def row(workload: str, policy: str, rate: float | None) -> Row | None:
    """The row of a policy (`ms-shark` for the baseline, at no rate), if the paper has it."""
    for it in rows():
        if (it.workload, it.policy, it.rate) == (workload, policy, rate):
            return it
    return None
