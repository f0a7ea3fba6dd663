"""How far predictions are from runs over links that delay for real."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privet.planner.network import parse_network
from privet.planner.predict import predict
from privet.planner.record import Record
from privet.planner.setting import setting_named
from privet.research.report.standard import STUDY


@dataclass(frozen=True)
class Comparison:
    """A measured run over a link beside its prediction from the loopback; seconds of one phase or
    of `both`."""

    model: str
    setting: str
    batch: int
    link: str
    phase: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error, positive if the prediction is too long."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Errors:
    """Absolute relative errors of `count` comparisons: median and 95th percentile."""

    count: int
    median: float
    percentile_95: float


def compare(records: Iterable[Record]) -> list[Comparison]:
    """Every record over a link beside what the loopback's record of the same case predicts.

    Bytes and rounds must be equal, since the formula leaves no room for others.
    """
    known = list(records)
    plain = {(it.model_sha256, it.setting, it.batch): it for it in known if it.link is None}
    comparisons = []
    for it in known:
        base = plain.get((it.model_sha256, it.setting, it.batch))
        if it.link is None or base is None:
            continue
        guess = predict(base, parse_network(it.link), first=True, dealer_near_server=True)
        for phase, predicted, measured in (
            ("online", guess.online_latency, it.online.seconds),
            ("both", guess.latency, it.offline.seconds + it.online.seconds),
        ):
            comparisons.append(
                Comparison(it.model, it.setting.name, it.batch, it.link, phase, predicted, measured)
            )
    return comparisons


def errors(comparisons: Sequence[Comparison]) -> Errors | None:
    """Median and 95th percentile; None of nothing."""
    sizes = sorted(abs(it.error) for it in comparisons)
    if not sizes:
        return None
    last = sizes[-1]
    high = statistics.quantiles(sizes, n=20, method="inclusive")[-1] if len(sizes) > 1 else last
    return Errors(len(sizes), statistics.median(sizes), high)


def by_suite(comparisons: Sequence[Comparison]) -> list[tuple[str, str, Errors]]:
    """Errors of each suite and phase; the settings that the study tells apart count as suites."""

    def group(run: Comparison) -> str:
        return run.setting if run.setting in STUDY.apart else setting_named(run.setting).config.name

    keys = dict.fromkeys((group(it), it.phase) for it in comparisons)
    by_key = [
        (*key, errors([it for it in comparisons if (group(it), it.phase) == key])) for key in keys
    ]
    return [(suite, phase, it) for suite, phase, it in by_key if it is not None]
