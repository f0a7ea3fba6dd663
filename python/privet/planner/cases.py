"""What a study runs: models under settings, for batches, over networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from privet import zoo
from privet.errors import Misuse
from privet.planner.network import Network
from privet.planner.record import file_name
from privet.planner.setting import Setting


@dataclass(frozen=True)
class Case:
    """One model under one setting, for a batch, over a network (None: the loopback); `repeats`
    runs, which take about `seconds` together (None: unknown). Ranges are measured on inputs in
    `input_range`; without it on standard normal ones."""

    model: Path
    setting: Setting
    batch: int = 1
    network: Network | None = None
    repeats: int = 1
    seconds: float | None = None
    input_range: tuple[float, float] | None = None

    @property
    def link(self) -> str | None:
        """The network as `privet.run` wants it."""
        if self.network is None:
            return None
        rtt, rate = 1e6 * self.network.rtt, self.network.bits_per_second / 1e6
        return f"{rtt:.0f}us,{rate:.10g}Mbit"

    @property
    def file_name(self) -> str:
        return file_name(self.model.stem, self.setting, self.batch, self.link)

    def __str__(self) -> str:
        text = f"{self.model.stem}, {self.setting.name}, batch {self.batch}"
        return text if self.network is None else f"{text}, {self.network.name}"


def find_models(names: Iterable[str], folder: Path) -> list[Path]:
    """Files of models: paths as they are, names of the zoo built into `folder`. Raises `Misuse` on
    what is neither."""
    paths = []
    for name in names:
        if Path(name).suffix == ".onnx" and Path(name).exists():
            paths.append(Path(name))
        elif name in zoo.names():
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.onnx"
            paths.append(path if path.exists() else zoo.build(name, folder))
        else:
            raise Misuse(f"{name!r} is neither an ONNX file nor a model of `privet zoo list`")
    return paths


def plan_cases(
    models: Iterable[Path],
    selection: Iterable[Setting],
    batches: Iterable[int],
    networks: Iterable[Network | None] = (None,),
    repeats: int = 1,
    seconds: float | None = None,
    input_range: tuple[float, float] | None = None,
) -> list[Case]:
    """All cases, ordered by program."""
    settings, sizes, shapes = list(selection), list(batches), list(networks)
    return [
        Case(model, setting, batch, network, repeats, seconds, input_range)
        for model in models
        for batch in sizes
        for setting in settings
        for network in shapes
    ]


def time_left(cases: Sequence[Case], done_count: int, seconds: float) -> float | None:
    """Seconds that the cases after the first `done_count` will take, which took `seconds`; None if
    nothing tells."""
    has_seconds = all(case.seconds is not None for case in cases)
    weights = [case.seconds if has_seconds and case.seconds is not None else 1.0 for case in cases]
    ahead = sum(weights[done_count:])
    if done_count:
        return ahead * seconds / sum(weights[:done_count])
    return ahead if has_seconds else None
