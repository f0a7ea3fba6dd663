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
class PredictionErrors:
    """Absolute relative errors of `count` comparisons: median and 95th percentile."""

    count: int
    median: float
    percentile_95: float


def compare(records: Iterable[Record]) -> list[Comparison]:
    """Every record over a link beside what the loopback's record of the same case predicts.

    Bytes and rounds must be equal, since the formula leaves no room for others.
    """
    record_list = list(records)
    plain = {
        (entry.model_sha256, entry.setting, entry.batch): entry
        for entry in record_list
        if entry.link is None
    }
    comparisons = []
    for record in record_list:
        base = plain.get((record.model_sha256, record.setting, record.batch))
        if record.link is None or base is None:
            continue
        guess = predict(base, parse_network(record.link), first=True, dealer_near_server=True)
        for phase, predicted, measured in (
            ("online", guess.online_latency, record.online.seconds),
            ("both", guess.latency, record.offline.seconds + record.online.seconds),
        ):
            comparisons.append(
                Comparison(
                    record.model,
                    record.setting.name,
                    record.batch,
                    record.link,
                    phase,
                    predicted,
                    measured,
                )
            )
    return comparisons


def errors(comparisons: Sequence[Comparison]) -> PredictionErrors | None:
    """Median and 95th percentile; None of nothing."""
    sizes = sorted(abs(comparison.error) for comparison in comparisons)
    if not sizes:
        return None
    last = sizes[-1]
    high = statistics.quantiles(sizes, n=20, method="inclusive")[-1] if len(sizes) > 1 else last
    return PredictionErrors(len(sizes), statistics.median(sizes), high)


def by_suite(comparisons: Sequence[Comparison]) -> list[tuple[str, str, PredictionErrors]]:
    """Errors of each suite and phase; the settings that the study tells apart count as suites."""

    def group(run: Comparison) -> str:
        return run.setting if run.setting in STUDY.apart else setting_named(run.setting).config.name

    keys = dict.fromkeys((group(comparison), comparison.phase) for comparison in comparisons)
    by_key = [
        (
            *key,
            errors(
                [
                    comparison
                    for comparison in comparisons
                    if (group(comparison), comparison.phase) == key
                ]
            ),
        )
        for key in keys
    ]
    return [(suite, phase, error) for suite, phase, error in by_key if error is not None]
