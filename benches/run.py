"""Measures Privet and, where installed, its peers on the same tasks in the same run.

    .venv/bin/python -m benches.run              the quick set, below ten minutes
    .venv/bin/python -m benches.run --all        everything, SqueezeNet on peers too
    .venv/bin/python -m benches.run --task m1    some tasks; prints them, leaves the page alone

For each task the contenders take turns, repetition by repetition, so that a machine that slows down
slows all of them down. A run writes `benches/records/DATE-COMMIT.json` and the tables of
`docs/reference/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benches import machine, ours, report, spu
from benches.machine import Load, say
from benches.record import Record, Sample
from benches.tasks import Task, tasks
from privet.errors import PrivetError

REPEAT = 3
# A contender that has taken this long on a task is not asked for another repetition of it.
ENOUGH_SECONDS = {"quick": 45.0, "all": 240.0}
# A peer's run is ended after this long.
LIMIT_SECONDS = {"quick": 150.0, "all": 900.0}
LINK = "loopback, Privet over TLS 1.3, SPU over plain TCP"

Contender = Callable[[int], Sample]


def main(arguments: Sequence[str]) -> int:
    """The command; exit code 1 if Privet itself failed at a task."""
    options = _options(arguments)
    peer = None if options.no_peers else spu.version()
    if peer is None:
        say("SPU is not installed in .venv-spu (`make bench-peers` does it): Privet alone")
    subjects = [task for task in tasks() if _is_chosen(task, options)]
    samples: list[Sample] = []
    start = Load.read()
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        for task in subjects:
            for sample in _measure(task, Path(folder), peer is not None, options):
                samples.append(sample)
                say(_line(sample))
    say(f"{Load.read().clock - start.clock:.0f} s in all\n")
    facts = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **machine.commit(),
        "command": " ".join(["python -m benches.run", *arguments]),
        "repeat": options.repeat,
        "link": LINK,
        "spu": peer,
        "machine": machine.describe(),
    }
    record = Record(facts, tuple(samples))
    say(f"{report.results(record)}\n{report.targets(record)}")
    if not options.task:
        say(f"record: {record.write().relative_to(machine.ROOT)}")
        report.publish(record)
    return int(any(sample.contender in ours.SUITES and sample.failure for sample in samples))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.run", description=__doc__)
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument(
        "--quick", dest="set", action="store_const", const="quick", help="the quick set (default)"
    )
    sets.add_argument("--all", dest="set", action="store_const", const="all", help="every task")
    names = [task.name for task in tasks()]
    parser.add_argument("--task", action="append", choices=names, help="only this task; repeatable")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="repetitions (%(default)s)")
    parser.add_argument("--no-peers", action="store_true", help="Privet alone")
    parser.set_defaults(set="quick")
    return parser.parse_args(arguments)


def _is_chosen(task: Task, options: argparse.Namespace) -> bool:
    if options.task:
        return task.name in options.task
    return task.quick or options.set == "all"


def _measure(
    task: Task, folder: Path, with_peers: bool, options: argparse.Namespace
) -> Iterator[Sample]:
    """All repetitions of a task, the contenders taking turns."""
    say(f"{task.title}")
    sample = task.sample()
    model = task.make(folder)
    limit, enough = LIMIT_SECONDS[options.set], ENOUGH_SECONDS[options.set]
    with_peers = with_peers and task.peers and (task.quick_peers or options.set == "all")
    contenders: dict[str, Contender] = {}
    try:
        compiled = ours.prepare(model, sample)
        for name in ours.SUITES:
            contenders[name] = partial(ours.measure, name, task, compiled, sample)
    except PrivetError as error:
        yield Sample(task.name, ours.NAME, 0, failure=str(error))
    if with_peers:
        try:
            program_folder = spu.prepare(model, sample, folder / f"{task.name}-spu")
            for name in spu.PROTOCOLS:
                contenders[name] = partial(spu.measure, task, name, program_folder, limit)
        except spu.PeerFailure as failure:
            yield from (Sample(task.name, name, 0, failure=str(failure)) for name in spu.PROTOCOLS)
    seconds = dict.fromkeys(contenders, 0.0)
    for repetition in range(options.repeat):
        for name, contender in contenders.items():
            if seconds[name] < enough:
                result = _watched(task, name, contender, repetition)
                duration = (result.seconds or 0.0) + (result.again_seconds or 0.0)
                seconds[name] += float("inf") if result.failure else duration
                yield result


def _watched(task: Task, name: str, contender: Contender, repetition: int) -> Sample:
    """A repetition, and how busy others kept the machine meanwhile."""
    before = Load.read()
    try:
        sample = contender(repetition).checked()
    except PrivetError as error:
        sample = Sample(task.name, name, repetition, failure=str(error))
    return replace(sample, others=Load.read().others_since(before))


def _line(sample: Sample) -> str:
    head = f"  {sample.contender:16}"
    if sample.failure is not None:
        return f"{head} {sample.failure}"
    phases = f" (online {sample.online_seconds:.3f} s)" if sample.online_seconds is not None else ""
    if sample.again_seconds is not None:
        phases = f" (again {sample.again_seconds:.3f} s)"
    return (
        f"{head} {sample.seconds or 0.0:8.3f} s{phases}, {(sample.bytes_sent or 0) / 1e6:.2f} MB, "
        f"{sample.peak_rss_mb or 0.0:.0f} MB of memory, "
        f"others took {100 * (sample.others or 0.0):.0f} %"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
