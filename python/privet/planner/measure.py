"""Real runs of models under settings: both parties on this machine, an offline and an online phase.

Runs that already have a record are left out when a study is resumed.
"""

from __future__ import annotations

import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from privet.compiler.compile import Compiled, compile
from privet.errors import Misuse, PrivetError, UnsupportedModel
from privet.planner import machine
from privet.planner.cases import Case, time_left
from privet.planner.machine import EnergyCounters
from privet.planner.record import Record, file_sha256
from privet.runtime import PhaseCost, Run, run
from privet.suites import Costing, Phase, Precision

Progress = Callable[[int, int, str, float | None], None]
"""Called with cases done, cases in all, the next one's name, and seconds left (None: unknown)."""

TIMEOUT = 3600.0


@dataclass(frozen=True)
class Skipped:
    """A case that did not run, and why."""

    case: Case
    reason: str


def measure(
    cases: Sequence[Case],
    folder: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> tuple[list[Record], list[Skipped]]:
    """Runs the cases and writes a record of each into `folder`; the new records, and what could
    not run.

    Times are medians of a case's repeats. With `resume`, cases whose record lies in `folder` are
    left out; without, they are measured again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pending = [
        candidate for candidate in cases if not (resume and (folder / candidate.file_name).exists())
    ]
    records: list[Record] = []
    skipped: list[Skipped] = []
    # Settings of a suite and batch follow one another.
    compiled = lru_cache(maxsize=1)(_compiled)
    start = time.monotonic()
    for index, case in enumerate(pending):
        if progress is not None:
            ahead = time_left(pending, index, time.monotonic() - start)
            progress(index, len(pending), str(case), ahead)
        try:
            record = _measure(case, compiled)
        except (PrivetError, OSError) as error:
            skipped.append(Skipped(case, str(error).splitlines()[0].rstrip(":")))
            continue
        record.write(folder)
        records.append(record)
    if progress is not None:
        progress(len(pending), len(pending), "", 0.0)
    return records, skipped


def _compiled(
    model: Path, precision: Precision, batch: int, input_range: tuple[float, float] | None
) -> Compiled | UnsupportedModel:
    try:
        return compile(model, batch=batch, input_range=input_range, **vars(precision))
    except UnsupportedModel as error:
        return error


def _measure(case: Case, compiler: Callable[..., Compiled | UnsupportedModel]) -> Record:
    batch = case.setting.compiled_batch(case.batch)
    compiled = compiler(case.model, case.setting.config.as_compiled(), batch, case.input_range)
    if isinstance(compiled, UnsupportedModel):
        raise compiled
    case.setting.config.check_supports(compiled.program)
    costing = case.setting.config.cost(compiled.program, case.batch)
    _check_room(costing)
    # Packed samples have a program of their own beside that of the batch, which `run` compiles.
    subject, batch = (case.model, case.batch) if case.setting.packs else (compiled, 1)
    runs, joules = [], []
    for _ in range(case.repeats):
        counters = EnergyCounters()
        runs.append(
            run(
                subject,
                suite=case.setting.config,
                batch=batch,
                link=case.link,
                input_range=case.input_range,
                timeout=TIMEOUT,
            )
        )
        joules.append(counters.joules())
    middle = sorted(runs, key=lambda result: result.online.seconds)[len(runs) // 2]
    readings = [value for value in joules if value is not None]
    offline, online = (_phase(middle, name, runs, costing) for name in ("offline", "online"))
    return Record(
        model=case.model.stem,
        model_sha256=file_sha256(case.model),
        setting=case.setting,
        batch=case.batch,
        offline=offline,
        online=online,
        peak_mb={party: use.peak_mb for party, use in middle.memory.items()} | _dealer_mb(middle),
        material_bytes=dict(costing.material_bytes),
        extension=middle.extension,
        extensions=costing.extensions,
        link=case.link,
        repeats=case.repeats,
        joules=statistics.median(readings) if readings else None,
        max_abs_error=middle.max_abs_error,
        layers=tuple(asdict(layer) for layer in middle.layers),
        machine=machine.describe(),
        commit=machine.commit(Path(__file__).parent),
        command=shlex.join(["privet", *sys.argv[1:]]),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _check_room(costing: Costing) -> None:
    """Refuses a run whose parties would not fit into this machine's memory together, or whose
    material not onto its disk."""
    needs = (
        ("memory", sum(costing.memory_mb.values()), machine.available_mb()),
        ("disk", sum(costing.material_bytes.values()) / 1e6, machine.free_disk_mb()),
    )
    for resource, need, free in needs:
        if free is not None and need > free:
            raise Misuse(
                f"both parties need {need / 1000:.1f} GB of {resource}, "
                f"{free / 1000:.1f} GB are free"
            )


def _dealer_mb(one: Run) -> dict[str, float]:
    return {} if one.dealer is None else {"dealer": one.dealer.peak_rss_mb}


def _phase(one: Run, name: str, runs: Sequence[Run], costing: Costing) -> Phase:
    costs: list[PhaseCost] = [getattr(result, name) for result in runs]
    this: PhaseCost = getattr(one, name)
    processors = [cost.cpu_seconds for cost in costs if cost.cpu_seconds is not None]
    dealer = one.dealer if name == "offline" else None
    phase = Phase(
        seconds=statistics.median(cost.seconds for cost in costs),
        cpu_seconds=statistics.median(processors) if processors else None,
        bytes_client=this.bytes_client,
        bytes_server=this.bytes_server,
        rounds=this.rounds,
        dealer_bytes_client=dealer.bytes_client if dealer else 0,
        dealer_bytes_server=dealer.bytes_server if dealer else 0,
    )
    forecast: Phase = getattr(costing, name)
    return replace(phase, work=forecast.work)
