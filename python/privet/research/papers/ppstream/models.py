"""The models of the experiments, compiled, and their stages, measured once for all items."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from privet import zoo
from privet.compiler.compile import Compiled, compile
from privet.research.papers.workplace import Workplace
from privet.research.stream.survey import MaterialCost, measure_material
from privet.stream.allocation import Side, StageServer
from privet.stream.cipher import PAILLIER, Cipher
from privet.stream.profile import StageTimes, profile
from privet.stream.stages import Stages

MODELS = ("breast", "heart", "cardio", "mnist-1", "mnist-2", "mnist-3")
THREADS = (1, 2, 4, 8, 16)
"""Counts that stages are profiled with."""

LARGE = "vgg"
"""How names of models begin that are measured by a sixteenth of each stage, and only simulated."""

LARGE_THREADS = (16, 32)

SERVERS = {"mnist-3": (2, 2), "vgg13-cifar": (6, 3)}
"""Servers of the model provider and of the data provider in the paper's Table III."""

USUAL_SERVERS = (2, 1)
SIDES: tuple[Side, Side] = ("model", "data")


@dataclass
class PreparedModel:
    """A model of the zoo by name: its file, and the folder of its program."""

    name: str
    path: Path
    folder: Path
    compiled: Compiled = field(repr=False)
    cipher: Cipher = PAILLIER

    @cached_property
    def stages(self) -> list[StageTimes]:
        """Its stages with every count of threads."""
        public = self.compiled.program.to_public_bytes()
        if self.large:
            return profile(
                public, self.cipher, self._private, threads=LARGE_THREADS, least=LARGE_THREADS[0]
            )
        return profile(public, self.cipher, self._private, threads=THREADS)

    @property
    def large(self) -> bool:
        """Whether only simulations are in reach."""
        return self.name.startswith(LARGE)

    def servers(self, cores: int) -> list[StageServer] | None:
        """The paper's servers, cores spread evenly over them, but a core at least for each of a
        provider's stages; None if these are too few."""
        counts = SERVERS.get(self.name, USUAL_SERVERS)
        linear = len(self.stages) // 2
        data = max(linear + 1, cores * counts[1] // sum(counts))
        if cores - data < linear:
            return None
        return [
            StageServer(f"{side}-{number + 1}", whole // count + (number < whole % count), side)
            for side, count, whole in zip(SIDES, counts, (cores - data, data), strict=True)
            for number in range(count)
        ]

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of an element on its way."""
        return Stages(self.compiled.program.to_public_bytes(), self.cipher).row_bytes

    @cached_property
    def entry(self) -> MaterialCost | None:
        """What a request costs ahead of time, over BFV."""
        if not self.cipher.masked:
            return None
        return measure_material(self.compiled.program.to_public_bytes(), self._private)

    @property
    def _private(self) -> bytes:
        return self.compiled.weights.to_private_bytes()


def prepare(name: str, folder: Path, cipher: Cipher = PAILLIER) -> PreparedModel:
    """Builds and compiles a model with seeded weights."""
    path = zoo.build(name, folder)
    compiled = compile(path, input_range=(0, 1), smooth="function")
    compiled.save(folder / name)
    return PreparedModel(name, path, folder / name, compiled, cipher)


def measured_models(at: Workplace, *further_names: str) -> list[PreparedModel]:
    """The paper's models that stages are measured of; each is compiled and measured once."""
    names = MODELS[:1] if at.quick else (*MODELS, *further_names)
    return [at.once(("stages", name), partial(prepare, name, at.models)) for name in names]
