"""A record as Markdown, and into the documentation: `python -m benches.report RECORD.json`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benches import ours
from benches.machine import ROOT
from benches.record import Record, Sample
from benches.tasks import Task, tasks

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
CHEETAH, SEMI2K = "spu-cheetah", "spu-semi2k"


def results(record: Record) -> str:
    """Where the figures come from, Privet's own figures, and those beside its peers."""
    measured = [task for task in tasks() if record.of(task.name, ours.NAME)]
    parts = [_source(record), _own(record, measured), _dealt(record, measured)]
    if any(sample.contender not in ours.SUITES for sample in record.samples):
        parts.append(_beside(record, measured))
    else:
        parts.append("SPU was not installed for this run; `make bench-peers` installs it.\n")
    return "\n".join(parts)


def targets(record: Record) -> str:
    """What Privet wants to reach, and by how much it does or does not."""
    rows = []
    for task in tasks():
        if task.dealt is not None:
            for name, target in ((ours.FSS, task.dealt.fss), (ours.DEALT, task.dealt.gmw)):
                if target is not None:
                    reached = record.median(task.name, name, _online)
                    figure = f"online, {_SUITE[name]}"
                    rows.append(
                        [task.title, figure, f"{target:g} s", *_verdict(reached, target, "s")]
                    )
        if task.target is None:
            continue
        wanted = (
            ("total", "s", task.target.total_seconds, _seconds),
            ("online", "s", task.target.online_seconds, _online),
            ("traffic", "MB", task.target.megabytes, _megabytes),
        )
        for figure, unit, target, of in wanted:
            if target is not None:
                reached = record.median(task.name, ours.NAME, of)
                rows.append(
                    [task.title, figure, f"{target:g} {unit}", *_verdict(reached, target, unit)]
                )
    return _table(
        "| Task | Figure | Target | Measured | Verdict |", "|---|---|---:|---:|---|", rows
    )


def publish(record: Record, page: Path = PAGE) -> None:
    """Puts results and targets into the page.

    # Errors
    As `put`.
    """
    put("results", results(record), page)
    put("targets", targets(record), page)


def put(name: str, body: str, page: Path = PAGE) -> None:
    """Puts `body` into the page, between the markers of `name`.

    # Errors
    `ValueError` if the page has no such markers.
    """
    start, end = f"<!-- bench: {name} -->\n", f"<!-- end of bench: {name} -->"
    before, found, rest = page.read_text().partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} has no place for {name}: {start.strip()} .. {end}")
    page.write_text(before + start + body + end + after)


def _source(record: Record) -> str:
    about = record.about
    machine = about["machine"]
    busy = sorted(sample.others for sample in record.samples if sample.others is not None)
    peers = "".join(f", SPU {version}" for version in [about.get("spu")] if version)
    modified = " with uncommitted changes" if about["modified"] else ""
    return (
        f"Commit `{about['commit']}`{modified} on {about['date']}; {machine['cpu']}, "
        f"{machine['cores']} virtual cores, {machine['memory_gib']} GiB{peers}; {about['link']}; "
        f"threads: {machine['threads']}. Medians of {about['repeat']} repetitions, fewer where a "
        f"number stands in brackets. Other processes took {_percent(busy, 0.5)} of both cores "
        f"(median; between {_percent(busy, 0.0)} and {_percent(busy, 1.0)}) while these were "
        f"measured. Made by `{about['command']}`.\n"
    )


def _percent(ordered: Sequence[float], quantile: float) -> str:
    if not ordered:
        return "an unknown share"
    return f"{100 * ordered[round(quantile * (len(ordered) - 1))]:.0f} %"


def _own(record: Record, measured: Sequence[Task]) -> str:
    rows = [
        [
            task.title,
            *(
                _number(record.median(task.name, ours.NAME, figure))
                for figure in (_load, _seconds, _offline, _online, _megabytes)
            ),
            _whole(record.median(task.name, ours.NAME, lambda sample: sample.rounds)),
            _whole(record.median(task.name, ours.NAME, _memory)),
            f"{max(sample.max_abs_error or 0.0 for sample in record.of(task.name, ours.NAME)):.1g}",
        ]
        for task in measured
    ]
    head = (
        "| Privet | Load s | Total s | Offline s | Online s | MB | Rounds | Memory MB "
        "| Largest error |"
    )
    return _table(head, "|---|" + "---:|" * 8, rows)


_SUITE = {ours.FSS: "`fss`", ours.DEALT: "`gmw` dealt"}


def _dealt(record: Record, measured: Sequence[Task]) -> str:
    rows = []
    for task in measured:
        semi2k = record.median(task.name, SEMI2K, _best)
        for name, suite in _SUITE.items():
            online = record.median(task.name, name, _online)
            ratio = semi2k / online if semi2k and online else None
            figures = (_offline, _dealer, _dealt_megabytes, _online, _megabytes)
            rows.append(
                [
                    task.title,
                    suite,
                    *(_number(record.median(task.name, name, figure)) for figure in figures),
                    _whole(record.median(task.name, name, lambda sample: sample.rounds)),
                    _whole(record.median(task.name, name, _memory)),
                    _times(ratio),
                ]
            )
    head = (
        "| With a dealer | Suite | Offline s | of it dealer s | Dealt MB | Online s | MB | Rounds "
        "| Memory MB | SEMI2K* / online |"
    )
    return _table(head, "|---|---|" + "---:|" * 8, rows)


def _beside(record: Record, measured: Sequence[Task]) -> str:
    rows = []
    for task in measured:
        row = [
            task.title,
            *(_number(record.median(task.name, it, _seconds)) for it in (ours.NAME, ours.ONE_BIT)),
        ]
        for contender in (CHEETAH, SEMI2K):
            row += [
                _time(record, task.name, contender),
                _number(record.median(task.name, contender, lambda sample: sample.again_seconds)),
                _number(record.median(task.name, contender, _megabytes)),
                _number(record.median(task.name, contender, _again_megabytes)),
                _whole(record.median(task.name, contender, _memory)),
                *(
                    _times(record.ratio(task.name, contender, it))
                    for it in (ours.NAME, ours.ONE_BIT)
                ),
            ]
        rows.append(row)
    head = (
        "| Task | Privet s | one-bit s | CHEETAH s | again s | MB | again MB | Memory MB "
        "| CHEETAH / Privet | / one-bit | SEMI2K* s | again s | MB | again MB | Memory MB "
        "| SEMI2K* / Privet | / one-bit |"
    )
    return _table(head, "|---|" + "---:|" * 16, rows)


def _time(record: Record, task: str, contender: str) -> str:
    failure = record.failure(task, contender)
    if failure is not None:
        return failure
    shown = _number(record.median(task, contender, _seconds))
    count = len(record.of(task, contender))
    return f"{shown} [{count}]" if 0 < count < record.about["repeat"] else shown


def _verdict(reached: float | None, target: float, unit: str) -> list[str]:
    if reached is None:
        return ["-", "not measured in this run"]
    shown = f"{_number(reached)} {unit}"
    if reached <= target:
        return [shown, f"reached; {target / reached:.1f} times under"]
    return [shown, f"missed; {reached / target:.1f} times over"]


def _seconds(sample: Sample) -> float | None:
    return sample.seconds


def _load(sample: Sample) -> float | None:
    return sample.load_seconds


def _offline(sample: Sample) -> float | None:
    return sample.offline_seconds


def _online(sample: Sample) -> float | None:
    return sample.online_seconds


def _dealer(sample: Sample) -> float | None:
    return sample.dealer_seconds


def _dealt_megabytes(sample: Sample) -> float | None:
    return None if sample.dealt_bytes is None else sample.dealt_bytes / 1e6


def _best(sample: Sample) -> float | None:
    """The faster of two runs of a peer."""
    known = [seconds for seconds in (sample.seconds, sample.again_seconds) if seconds is not None]
    return min(known, default=None)


def _megabytes(sample: Sample) -> float | None:
    return None if sample.bytes_sent is None else sample.bytes_sent / 1e6


def _again_megabytes(sample: Sample) -> float | None:
    return None if sample.again_bytes_sent is None else sample.again_bytes_sent / 1e6


def _memory(sample: Sample) -> float | None:
    return sample.peak_rss_mb


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.1 else f"{value:.3f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}x"


def _table(head: str, rule: str, rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([head, rule, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


if __name__ == "__main__":
    publish(Record.read(Path(sys.argv[1])))
