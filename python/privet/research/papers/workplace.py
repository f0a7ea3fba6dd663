"""Where items run: models of the zoo, built once, and runs, each made once and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from privet.errors import Misuse
from privet.planner import units
from privet.planner.cases import Case, find_models, plan_cases
from privet.planner.costing import cost_settings, widened
from privet.planner.measure import measure
from privet.planner.record import Record, read_record
from privet.planner.setting import Setting, settings
from privet.research.papers.datasets import Samples, has, read
from privet.research.papers.training import train
from privet.research.report.standard import STUDY
from privet.runtime import Run, run
from privet.suites import Suite
from privet.zoo.perceptron import WIDTHS

Report = Callable[[str], None]

TIMEOUT = 7200.0

COSTED = ((1, 2), (16, 32))
"""Batches whose costs others are on a line with: those of few samples, and those from twice as many
on, where layers are large enough to send less for more rounds."""

CHECKOUT = Path(__file__).parents[4]

Made = TypeVar("Made")


@dataclass(frozen=True)
class Peer:
    """An inference by SPU of a version: seconds and bytes of both parties, in all and by SPU's own
    operations."""

    version: str
    seconds: float
    bytes: int
    operations: Mapping[str, tuple[float, int]]

    def part(self, *names: str) -> tuple[float, int]:
        """Seconds and bytes of some operations together."""
        sums = [self.operations[name] for name in names if name in self.operations]
        return sum(pair[0] for pair in sums), sum(pair[1] for pair in sums)


class Workplace:
    """A folder with models and with records of runs, which are not made a second time.

    `quick` asks for the smallest run that shows a figure, for tests; `report` is given what runs.
    `data` is a folder of the user's with data sets, and with models `NAME.onnx` that are trained on
    them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        quick: bool = False,
        report: Report = lambda _: None,
        data: Path | None = None,
    ) -> None:
        self.folder, self.quick, self.report, self.data = folder, quick, report, data
        self._results: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` returned when it was first called for a key."""
        if key not in self._results:
            self._results[key] = make()
        result: Made = self._results[key]
        return result

    @cached_property
    def models(self) -> Path:
        """Where models lie."""
        folder = self.folder / "models"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def study(self) -> Path:
        """Where records of runs lie, as `privet study` makes them."""
        return self.folder / "study"

    def model(self, name: str) -> Path:
        """A model of the zoo as a file."""
        (path,) = find_models([name], self.models)
        return path

    def trained(self, name: str) -> Path:
        """A file of the trained models, which lie in a checkout. Raises `Misuse` outside of one."""
        folder = CHECKOUT / "zoo" / "models"
        if not folder.is_dir():
            raise Misuse(f"{name} is a file of a checkout of Privet, in zoo/models")
        return folder / name

    def peer(self, model: str | Path) -> Peer | None:
        """A model's run by SPU's Cheetah, where a checkout has it installed; None elsewhere, which
        is said."""
        path = model if isinstance(model, Path) else self.model(model)
        return self.once(("peer", path.stem), lambda: self._peer(path))

    def _peer(self, path: Path) -> Peer | None:
        if not (CHECKOUT / ".venv-spu").is_dir():
            self.report("left out: SPU's Cheetah, which `make bench-peers` installs in a checkout")
            return None
        self.report(f"{path.stem}, SPU's Cheetah")
        process = subprocess.run(
            [sys.executable, "-m", "benches.spu", path.resolve()],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode:
            raise Misuse(process.stderr.strip().rpartition("\n")[2])
        reply = json.loads(process.stdout)
        return Peer(reply["version"], reply["seconds"], reply["bytes"], reply["operations"])

    def user_samples(self, name: str, *, train: bool = False, limit: int | None = None) -> Samples:
        """Samples of a data set in the user's folder; call it if `user_model` found a model.
        Raises `InputError` if they cannot be read."""
        if self.data is None:
            raise Misuse(f"{name} needs a folder with it: --data")
        folder = self.data
        return self.once((name, train, limit), lambda: read(folder, name, train=train, limit=limit))

    def user_model(self, name: str, data: str) -> Path | None:
        """A model of the zoo trained on a data set in the user's folder: `NAME.onnx` in it, or, of
        a perceptron, trained now. None if the data or the model is not there, which is said."""
        if self.data is None or not has(self.data, data):
            return None
        if (path := self.data / f"{name}.onnx").exists():
            return path
        if name not in WIDTHS:
            self.report(f"left out: {name}, as {path} is not there")
            return None
        trained = self.models / f"{name}-trained.onnx"
        if not trained.exists():
            self.report(f"training {name} on {data}")
            train(name, self.user_samples(data, train=True), trained)
        return trained

    def run(
        self,
        model: str | Path,
        suite: Suite,
        batch: int = 1,
        memory: str | None = None,
        link: str | None = None,
    ) -> Run:
        """A run of a model, by its name in the zoo or its file, between local processes; `memory`
        and `link` as in `privet.run`."""
        path = model if isinstance(model, Path) else self.model(model)

        def make() -> Run:
            self.report(f"{path.stem}, {suite.name}, batch {batch}")
            ranges = STUDY.input_ranges.get(path.stem)
            return run(
                path,
                suite=suite,
                batch=batch,
                input_range=ranges,
                memory=memory,
                link=link,
                timeout=TIMEOUT,
            )

        return self.once((path.stem, suite, batch, memory, link), make)

    def records(
        self, models: Iterable[str], names: Iterable[str], batches: Iterable[int] = (1,)
    ) -> list[Record]:
        """Records of models under settings, as `privet study` makes them; what does not run on
        this machine or in a setting is left out, and said."""
        paths = [self.model(model) for model in models]
        cases = [
            case
            for path in paths
            for case in plan_cases(
                [path], settings(names), batches, input_range=STUDY.input_ranges.get(path.stem)
            )
        ]
        self._measure(cases)
        files = [self.study / case.file_name for case in cases]
        return [read_record(path) for path in files if path.exists()]

    def costed(
        self, model: str, names: Sequence[str], batch: int, known_records: Sequence[Record] = ()
    ) -> list[Record]:
        """Records by formulas, as `privet plan` makes them, and by what one unit of work cost in
        `known_records` of other models, for a model or batch that does not run here;
        without any, computing takes no time. What cannot be costed is left out, and said."""

        def make(smaller: int) -> dict[str, Record]:
            self.report(f"{model}, batch {smaller}, by its costs")
            selection = settings(names)
            prices = units.fit(known_records) if known_records else _nothing(selection)
            costs = cost_settings(self.model(model), selection, smaller, lambda: prices)
            for setting, cost in costs.items():
                if isinstance(cost, str):
                    self.report(f"left out: {model}, {setting.name}: {cost}")
            return {key.name: record for key, record in costs.items() if isinstance(record, Record)}

        one, two = (
            self.once(
                ("costed", model, tuple(names), size, bool(known_records)),
                lambda count=size: make(count),  # type: ignore[misc]
            )
            for size in COSTED[batch >= 2 * COSTED[1][1]]
        )
        return [widened(one[name], record, batch) for name, record in two.items()]

    def _measure(self, cases: list[Case]) -> None:
        def progress(_index: int, _of: int, name: str, _seconds_left: float | None) -> None:
            if name:
                self.report(name)

        _, skipped = measure(cases, self.study, resume=True, progress=progress)
        for case in skipped:
            self.report(f"left out: {case.case}: {case.reason}")


def _nothing(selection: Iterable[Setting]) -> units.UnitCosts:
    """Unit costs by which all work of these settings is free."""
    free: dict[str, units.Prices] = {
        f"{setting.kind} {phase}": {} for setting in selection for phase in ("offline", "online")
    }
    return units.UnitCosts(free, free, "none", 1)
