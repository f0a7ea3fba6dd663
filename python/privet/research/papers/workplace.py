"""Where items run: models of the zoo, built once, and runs, each made once and kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from privet.errors import Misuse
from privet.planner.cases import Case, find_models, plan_cases
from privet.planner.measure import measure
from privet.planner.record import Record, read_record
from privet.planner.setting import settings
from privet.research.papers.datasets import Samples, has, read
from privet.research.papers.training import train
from privet.research.report.standard import STUDY
from privet.runtime import Run, run
from privet.suites import Suite
from privet.zoo.perceptron import WIDTHS

Say = Callable[[str], None]

TIMEOUT = 7200.0

Made = TypeVar("Made")


class Workplace:
    """A folder with models and with records of runs, which are not made a second time.

    `quick` asks for the smallest run that shows a figure, for tests; `say` hears what runs. `data`
    is a folder of the user's with data sets, and with models `NAME.onnx` that are trained on them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        quick: bool = False,
        say: Say = lambda _: None,
        data: Path | None = None,
    ) -> None:
        self.folder, self.quick, self.say, self.data = folder, quick, say, data
        self._kept: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` returned when it was first called for a key."""
        if key not in self._kept:
            self._kept[key] = make()
        made: Made = self._kept[key]
        return made

    @cached_property
    def models(self) -> Path:
        """Where models lie."""
        folder = self.folder / "models"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def model(self, name: str) -> Path:
        """A model of the zoo as a file."""
        (path,) = find_models([name], self.models)
        return path

    def trained(self, name: str) -> Path:
        """A file of the trained models, which lie in a checkout.

        # Errors
        `Misuse` outside of one.
        """
        folder = Path(__file__).parents[4] / "zoo" / "models"
        if not folder.is_dir():
            raise Misuse(f"{name} is a file of a checkout of Privet, in zoo/models")
        return folder / name

    def given(self, name: str, *, train: bool = False, most: int | None = None) -> Samples:
        """Samples of a data set in the user's folder; call it if `given_model` found a model.

        # Errors
        `InputError` if they cannot be read.
        """
        if self.data is None:
            raise Misuse(f"{name} needs a folder with it: --data")
        folder = self.data
        return self.once((name, train, most), lambda: read(folder, name, train=train, most=most))

    def given_model(self, name: str, data: str) -> Path | None:
        """A model of the zoo trained on a data set in the user's folder: `NAME.onnx` in it, or, of
        a perceptron, trained now. None if the data or the model is not there, which is said."""
        if self.data is None or not has(self.data, data):
            return None
        if (path := self.data / f"{name}.onnx").exists():
            return path
        if name not in WIDTHS:
            self.say(f"left out: {name}, as {path} is not there")
            return None
        trained = self.models / f"{name}-trained.onnx"
        if not trained.exists():
            self.say(f"training {name} on {data}")
            train(name, self.given(data, train=True), trained)
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
            self.say(f"{path.stem}, {suite.name}, batch {batch}")
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
        folder = self.folder / "study"
        paths = [self.model(it) for it in models]
        cases = [
            case
            for path in paths
            for case in plan_cases(
                [path], settings(names), batches, input_range=STUDY.input_ranges.get(path.stem)
            )
        ]
        self._measure(cases, folder)
        made = [folder / it.file_name for it in cases]
        return [read_record(path) for path in made if path.exists()]

    def _measure(self, cases: list[Case], folder: Path) -> None:
        def progress(_done: int, _of: int, name: str, _left: float | None) -> None:
            if name:
                self.say(name)

        _, skipped = measure(cases, folder, resume=True, progress=progress)
        for it in skipped:
            self.say(f"left out: {it.case}: {it.reason}")
