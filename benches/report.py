"""A record as Markdown, and into the documentation: `python -m benches.report RECORD.json`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path

from benches import ours
from benches.machine import ROOT
from benches.record import Record, median
from benches.tasks import Task, tasks

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
CHEETAH, SEMI2K = "spu-cheetah", "spu-semi2k"


def results(record: Record) -> str:
    """Where the figures come from, Privet's own figures, and those beside its peers."""
    subjects = [task for task in tasks() if record.of(task.name, ours.NAME)]
    parts = [_source(record), _own_rows(record, subjects), _dealt(record, subjects)]
    if any(sample.contender not in ours.SUITES for sample in record.samples):
        parts.append(_beside(record, subjects))
    else:
        parts.append("SPU was not installed for this run; `make bench-peers` installs it.\n")
    return "\n".join(parts)


def targets(record: Record) -> str:
    """What Privet wants to reach, and by how much it does or does not."""
    rows = []
    for task in tasks():
        goals: list[tuple[str, str, str, float | None]] = []
        if (dealer_targets := task.dealt) is not None:
            for name, target in ((ours.FSS, dealer_targets.fss), (ours.DEALT, dealer_targets.gmw)):
                goals.append((name, f"online, {_SUITE[name]}", "online_seconds", target))
        if (goal := task.target) is not None:
            goals += [
                (ours.NAME, "total", "seconds", goal.total_seconds),
                (ours.NAME, "online", "online_seconds", goal.online_seconds),
                (ours.NAME, "traffic", "bytes_sent", goal.megabytes),
            ]
        for name, figure, field, target in goals:
            if target is not None:
                unit, size = ("MB", 1e6) if field == "bytes_sent" else ("s", 1.0)
                median = record.median(task.name, name, field)
                value = None if median is None else median / size
                rows.append(
                    [task.title, figure, f"{target:g} {unit}", *_verdict(value, target, unit)]
                )
    return _table(
        "| Task | Figure | Target | Measured | Verdict |", "|---|---|---:|---:|---|", rows
    )


def publish(record: Record, page: Path = PAGE) -> None:
    """Puts results and targets into the page.

    # Errors
    As `replace_section`.
    """
    replace_section("results", results(record), page)
    replace_section("targets", targets(record), page)


def replace_section(name: str, body: str, page: Path = PAGE) -> None:
    """Puts `body` into the page, between the markers of `name`.

    # Errors
    `ValueError` if the page has no such markers.
    """
    start, end = f"<!-- bench: {name} -->\n", f"<!-- end of bench: {name} -->"
    before, opening, remainder = page.read_text().partition(start)
    _, closing, after = remainder.partition(end)
    if not (opening and closing):
        raise ValueError(f"{page} has no place for {name}: {start.strip()} .. {end}")
    page.write_text(before + start + body + end + after)


def _source(record: Record) -> str:
    facts = record.about
    machine = facts["machine"]
    busy = sorted(sample.others for sample in record.samples if sample.others is not None)
    peers = "".join(f", SPU {version}" for version in [facts.get("spu")] if version)
    note = " with uncommitted changes" if facts["modified"] else ""
    return (
        f"Commit `{facts['commit']}`{note} on {facts['date']}; {machine['cpu']}, "
        f"{machine['cores']} virtual cores, {machine['memory_gib']} GiB{peers}; {facts['link']}; "
        f"threads: {machine['threads']}. Medians of {facts['repeat']} repetitions, fewer where a "
        f"number stands in brackets. Other processes took {_percent(busy, 0.5)} of both cores "
        f"(median; between {_percent(busy, 0.0)} and {_percent(busy, 1.0)}) while these were "
        f"measured. Made by `{facts['command']}`.\n"
    )


def _percent(ordered: Sequence[float], quantile: float) -> str:
    if not ordered:
        return "an unknown share"
    return f"{100 * ordered[round(quantile * (len(ordered) - 1))]:.0f} %"


OWN = ("load_seconds", "seconds", "offline_seconds", "online_seconds", "bytes_sent", "rounds")
DEALT = ("offline_seconds", "dealer_seconds", "dealt_bytes", "online_seconds", "bytes_sent")
PEERS = ("again_seconds", "bytes_sent", "again_bytes_sent", "peak_rss_mb")
"""Figures of `Sample` in each table."""


def _own_rows(record: Record, subjects: Sequence[Task]) -> str:
    rows = [
        [
            task.title,
            *_medians(record, task, ours.NAME, (*OWN, "peak_rss_mb")),
            f"{max(sample.max_abs_error or 0.0 for sample in record.of(task.name, ours.NAME)):.1g}",
        ]
        for task in subjects
    ]
    head = (
        "| Privet | Load s | Total s | Offline s | Online s | MB | Rounds | Memory MB "
        "| Largest error |"
    )
    return _table(head, "|---|" + "---:|" * 8, rows)


_SUITE = {ours.FSS: "`fss`", ours.DEALT: "`gmw` dealt"}


def _dealt(record: Record, subjects: Sequence[Task]) -> str:
    rows = []
    for task in subjects:
        semi2k = record.of(task.name, SEMI2K)
        best = median(min(sample.seconds or inf, sample.again_seconds or inf) for sample in semi2k)
        for name, suite in _SUITE.items():
            online = record.median(task.name, name, "online_seconds")
            figures = _medians(record, task, name, (*DEALT, "rounds", "peak_rss_mb"))
            rows.append(
                [task.title, suite, *figures, _times(best / online if best and online else None)]
            )
    head = (
        "| With a dealer | Suite | Offline s | of it dealer s | Dealt MB | Online s | MB | Rounds "
        "| Memory MB | SEMI2K* / online |"
    )
    return _table(head, "|---|---|" + "---:|" * 8, rows)


def _beside(record: Record, subjects: Sequence[Task]) -> str:
    rows = []
    for task in subjects:
        names = (ours.NAME, ours.ONE_BIT)
        row = [task.title, *(_medians(record, task, name, ["seconds"])[0] for name in names)]
        for contender in (CHEETAH, SEMI2K):
            row += [
                _time(record, task, contender),
                *_medians(record, task, contender, PEERS),
                *(_times(record.ratio(task.name, contender, name)) for name in names),
            ]
        rows.append(row)
    head = (
        "| Task | Privet s | one-bit s | CHEETAH s | again s | MB | again MB | Memory MB "
        "| CHEETAH / Privet | / one-bit | SEMI2K* s | again s | MB | again MB | Memory MB "
        "| SEMI2K* / Privet | / one-bit |"
    )
    return _table(head, "|---|" + "---:|" * 16, rows)


def _medians(record: Record, task: Task, contender: str, figures: Sequence[str]) -> list[str]:
    """A contender's figures of a task as they are shown: bytes in MB, counts as whole numbers."""
    cells = []
    for name in figures:
        value = record.median(task.name, contender, name)
        if "bytes" in name and value is not None:
            value /= 1e6
        cells.append(_whole(value) if name in ("rounds", "peak_rss_mb") else _number(value))
    return cells


def _time(record: Record, task: Task, contender: str) -> str:
    failure = record.failure(task.name, contender)
    if failure is not None:
        return failure
    (text,) = _medians(record, task, contender, ["seconds"])
    count = len(record.of(task.name, contender))
    return f"{text} [{count}]" if 0 < count < record.about["repeat"] else text


def _verdict(value: float | None, target: float, unit: str) -> list[str]:
    if value is None:
        return ["-", "not measured in this run"]
    text = f"{_number(value)} {unit}"
    if value <= target:
        return [text, f"reached; {target / value:.1f} times under"]
    return [text, f"missed; {value / target:.1f} times over"]


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
