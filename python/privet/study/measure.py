"""Real runs of models under settings: both parties on this machine, an offline and an online phase.

Runs that already have a record are left out when a study is resumed.
"""

from __future__ import annotations

import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from privet import suites, zoo
from privet.compile import Compiled, compile
from privet.errors import Misuse, PrivetError, UnsupportedModel
from privet.parties import PhaseCost, Run, run
from privet.study import machine
from privet.study.network import Network
from privet.study.rapl import Counters
from privet.study.record import Phase, Record, file_sha256
from privet.study.setting import Setting
from privet.study.work import Costing, cost

Progress = Callable[[int, int, str, float | None], None]
"""Called with runs done, runs in all, the next one's name, and seconds left (None at first)."""

TIMEOUT = 3600.0


@dataclass(frozen=True)
class Case:
    """One model under one setting, for a batch, over a network (None: the loopback)."""

    model: Path
    setting: Setting
    batch: int = 1
    network: Network | None = None

    @property
    def link(self) -> str | None:
        """The network as `privet.run` wants it."""
        if self.network is None:
            return None
        rtt, rate = 1e6 * self.network.rtt, self.network.bits_per_second / 1e6
        return f"{rtt:.0f}us,{rate:.0f}Mbit"

    @property
    def file_name(self) -> str:
        """The name of its record."""
        empty = Phase(0.0, None, 0, 0, 0)
        it = Record(
            self.model.stem, "", self.setting, self.batch, empty, empty, {}, {}, link=self.link
        )
        return it.file_name

    def __str__(self) -> str:
        text = f"{self.model.stem}, {self.setting.name}, batch {self.batch}"
        return text if self.network is None else f"{text}, {self.network.name}"


@dataclass(frozen=True)
class Skipped:
    """A case that did not run, and why."""

    case: Case
    reason: str


def find_models(names: Iterable[str], folder: Path) -> list[Path]:
    """Files of models: paths as they are, names of the zoo built into `folder`.

    # Errors
    `Misuse` on what is neither.
    """
    found = []
    for name in names:
        if Path(name).suffix == ".onnx" and Path(name).exists():
            found.append(Path(name))
        elif name in zoo.names():
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.onnx"
            found.append(path if path.exists() else zoo.build(name, folder))
        else:
            raise Misuse(f"{name!r} is neither an ONNX file nor a model of `privet zoo list`")
    return found


def measure(
    cases: Sequence[Case],
    folder: Path,
    *,
    repeats: int = 1,
    resume: bool = False,
    progress: Progress | None = None,
) -> tuple[list[Record], list[Skipped]]:
    """Runs the cases and writes a record of each into `folder`; the new records, and what could
    not run.

    With `repeats`, times are medians. With `resume`, cases whose record lies in `folder` are left
    out; without, they are measured again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    left = [it for it in cases if not (resume and (folder / it.file_name).exists())]
    records: list[Record] = []
    skipped: list[Skipped] = []
    compiler = _Compiler()
    begun = time.monotonic()
    for done, case in enumerate(left):
        spent = time.monotonic() - begun
        if progress is not None:
            progress(
                done, len(left), str(case), spent / done * (len(left) - done) if done else None
            )
        try:
            record = _measure(case, compiler, repeats)
        except (PrivetError, OSError) as error:
            skipped.append(Skipped(case, str(error).splitlines()[0].rstrip(":")))
            continue
        record.write(folder)
        records.append(record)
    if progress is not None:
        progress(len(left), len(left), "", 0.0)
    return records, skipped


class _Compiler:
    """Compiles a model once for all settings of a suite and batch, which follow one another."""

    def __init__(self) -> None:
        self._key: tuple[Path, str, int] | None = None
        self._compiled: Compiled | UnsupportedModel | None = None

    def program(self, case: Case) -> Compiled:
        widths = suites.precision(case.setting.suite)
        key = (case.model, str(widths), case.batch)
        if key != self._key:
            self._key = key
            try:
                self._compiled = compile(case.model, batch=case.batch, **vars(widths))
            except UnsupportedModel as error:
                self._compiled = error
        if isinstance(self._compiled, UnsupportedModel):
            raise self._compiled
        if self._compiled is None:
            raise AssertionError("nothing was compiled")
        return self._compiled


def _measure(case: Case, compiler: _Compiler, repeats: int) -> Record:
    compiled = compiler.program(case)
    suites.check_supported(compiled.program, case.setting.suite)
    costing = None if case.setting.members else cost(compiled.program, case.setting)
    _check_memory(costing)
    runs, joules = [], []
    for _ in range(repeats):
        counters = Counters()
        runs.append(run(compiled, link=case.link, timeout=TIMEOUT, **case.setting.options()))
        joules.append(counters.joules())
    middle = sorted(runs, key=lambda it: it.online.seconds)[len(runs) // 2]
    measured = [it for it in joules if it is not None]
    return Record(
        model=case.model.stem,
        model_sha256=file_sha256(case.model),
        setting=case.setting,
        batch=case.batch,
        offline=_phase(middle, "offline", runs, costing),
        online=_phase(middle, "online", runs, costing),
        peak_mb={party: use.peak_mb for party, use in middle.memory.items()} | _dealer_mb(middle),
        material_bytes=dict(costing.material_bytes) if costing else {"client": 0, "server": 0},
        extension=middle.extension,
        extensions=costing.extensions if costing else (),
        link=case.link,
        repeats=repeats,
        joules=statistics.median(measured) if measured else None,
        max_abs_error=middle.max_abs_error,
        layers=tuple(asdict(layer) for layer in middle.layers),
        machine=machine.describe(),
        commit=machine.commit(Path(__file__).parent),
        command=shlex.join(["privet", *sys.argv[1:]]),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _check_memory(costing: Costing | None) -> None:
    """Refuses a run whose parties would not fit into this machine's memory together."""
    needed = sum(costing.memory_mb.values()) if costing else 0.0
    available = machine.available_mb()
    if available is not None and needed > available:
        raise Misuse(
            f"both parties need {needed / 1000:.1f} GB of memory, "
            f"{available / 1000:.1f} GB are free"
        )


def _dealer_mb(one: Run) -> dict[str, float]:
    return {} if one.dealer is None else {"dealer": one.dealer.peak_rss_mb}


def _phase(one: Run, name: str, runs: Sequence[Run], costing: Costing | None) -> Phase:
    costs: list[PhaseCost] = [getattr(it, name) for it in runs]
    this: PhaseCost = getattr(one, name)
    processors = [it.cpu_seconds for it in costs if it.cpu_seconds is not None]
    dealt = one.dealer if name == "offline" else None
    phase = Phase(
        seconds=statistics.median(it.seconds for it in costs),
        cpu_seconds=statistics.median(processors) if processors else None,
        bytes_client=this.bytes_client,
        bytes_server=this.bytes_server,
        rounds=this.rounds,
        dealer_bytes_client=dealt.bytes_client if dealt else 0,
        dealer_bytes_server=dealt.bytes_server if dealt else 0,
    )
    forecast: Phase | None = getattr(costing, name) if costing else None
    return replace(phase, work=forecast.work) if forecast else phase


def plan_cases(
    models: Iterable[Path],
    chosen: Iterable[Setting],
    batches: Iterable[int],
    networks: Iterable[Network | None] = (None,),
) -> list[Case]:
    """All cases, ordered by program; networks only where a link can be shaped."""
    settings, sizes, shapes = list(chosen), list(batches), list(networks)
    return [
        Case(model, setting, batch, network)
        for model in models
        for batch in sizes
        for setting in settings
        for network in shapes
        if network is None or setting.can_shape
    ]
