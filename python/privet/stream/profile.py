"""How long each stage takes on its threads (PP-Stream, Section IV-C), measured ahead of requests.

Each organisation can measure its own stages: numbers under a key made for the purpose stand for
requests. A stage with `t` threads is done when the slowest of its `t` slices is, so that one slice
after the other on one core tells the time on more cores than this machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from privet import _native
from privet.stream.allocation import Side, Stage
from privet.stream.cipher import Cipher
from privet.stream.stages import Round, Stages, names, split_into_ranges
from privet.stream.workers import LinearWorker, NonlinearWorker
from privet.suites.spawned import compute

SAMPLES = 64
"""Rows made for a measurement; longer tensors repeat them."""


@dataclass(frozen=True)
class StageTimes:
    """A stage by name: `seconds` of its slowest slice by number of threads, and the elements that
    its workers read in all. With whole inputs every worker reads all of its tensor."""

    name: str
    side: Side
    seconds: dict[int, float]
    read: dict[int, int]
    whole: int
    sent: int

    @property
    def stage(self) -> Stage:
        """As the allocation takes it."""
        return Stage(self.name, self.side, self.seconds[1])


def profile(
    public: bytes,
    cipher: Cipher,
    weights: bytes | None = None,
    *,
    threads: Iterable[int] = (1,),
    least: int = 1,
) -> list[StageTimes]:
    """Times of the data provider's stages and, given weights, of the model provider's among them.

    They are in processor seconds of one thread. Over BFV they are online: what a material entry
    costs is measured apart (`privet.research.stream.survey`). Of large models only slices for
    `least` threads or more are measured; with fewer threads a stage is taken to be as much slower
    as it has fewer.
    """
    counts = sorted({1, least, *threads})
    return compute(_measure, public, cipher, weights, counts, least)


def _measure(
    public: bytes,
    cipher: Cipher,
    weights: bytes | None,
    counts: Sequence[int],
    least: int,
) -> list[StageTimes]:
    meter = _Meter(public, cipher, weights, counts, least)
    labels = iter(names(meter.stages.rounds))
    times = [meter.encryption(next(labels)[1])]
    for index, round in enumerate(meter.stages.rounds):
        _, linear = next(labels)
        if weights is not None:
            times.append(meter.linear(index, round, linear))
        times.append(meter.nonlinear(index, round, next(labels)[1]))
    return times


class _Meter:
    """Runs slices of stages, in a process of its own with one thread."""

    def __init__(
        self,
        public: bytes,
        cipher: Cipher,
        weights: bytes | None,
        counts: Sequence[int],
        least: int,
    ) -> None:
        self._data = NonlinearWorker(public, cipher)
        self.stages = Stages(public, cipher)
        self._public = b""
        if not cipher.masked:
            key = _native.StreamKey.generate(cipher.key_bits)
            self._data.open(key.secret())
            self._public = key.public()
        self._model = LinearWorker(public, cipher, weights) if weights is not None else None
        small = np.arange(SAMPLES, dtype="<i8").tobytes()
        self._rows = self.stages.rows(self._data.encrypt(small, self._masks(SAMPLES))[0], SAMPLES)
        self._counts, self._least = counts, least

    def _tensor(self, count: int) -> bytes:
        return self._rows[np.arange(count) % SAMPLES].tobytes()

    def _seconds(self, slice_of: Callable[[int], Callable[[], float]]) -> dict[int, float]:
        """Seconds by number of threads, of slices that `slice_of` makes ready to be run."""
        seconds = {}
        for count in self._counts:
            if count >= self._least:
                seconds[count] = slice_of(count)()
        whole = self._least * seconds[self._least]
        return {count: seconds.get(count, whole / count) for count in self._counts}

    def _masks(self, count: int) -> bytes:
        """Masks of values over BFV: zeros take as long as others."""
        return bytes(count * self.stages.row_bytes) if self.stages.cipher.masked else b""

    def encryption(self, name: str) -> StageTimes:
        """The input's encryption."""
        total = sum(self.stages.inputs.values())

        def slice_of(count: int) -> Callable[[], float]:
            longest = -(-total // count)
            values, masks = np.zeros(longest, "<i8").tobytes(), self._masks(longest)
            return lambda: self._data.encrypt(values, masks)[1]

        seconds = self._seconds(slice_of)
        return StageTimes(name, "data", seconds, dict.fromkeys(seconds, total), total, total)

    def linear(self, index: int, round: Round, name: str) -> StageTimes:
        """A linear stage: the slice with the most to compute and to read."""
        assert self._model is not None
        model = self._model

        def slice_of(count: int) -> Callable[[], float]:
            slices = self.stages.slices(index, count)
            widest = max(slices, key=lambda portion: (len(portion.elements), portion.read))
            reads = (*widest.needs, *widest.shares)
            tensors = [(need.tobytes(), self._tensor(len(need))) for need in reads]
            elements = widest.elements.astype("<u4").tobytes()
            return lambda: model.linear(self._public, index, elements, tensors)[1]

        seconds = self._seconds(slice_of)
        read_bytes = {
            count: sum(portion.read for portion in self.stages.slices(index, count))
            for count in self._counts
        }
        whole = self.stages.slices(index, 1)[0].read
        return StageTimes(name, "model", seconds, read_bytes, whole, round.sent)

    def nonlinear(self, index: int, round: Round, name: str) -> StageTimes:
        """What the data provider does in a round."""

        def slice_of(count: int) -> Callable[[], float]:
            longest = max(
                portion.stop - portion.start
                for portion in split_into_ranges(round.sent, round.unit, count)
            )
            tensor, opening = self._tensor(longest), self._masks(longest)
            hiding = self._masks(longest // round.unit)
            if round.output:
                return lambda: self._data.values(index, tensor, opening)[1]
            return lambda: self._data.answer(index, tensor, opening, hiding)[1]

        seconds = self._seconds(slice_of)
        return StageTimes(
            name, "data", seconds, dict.fromkeys(seconds, round.sent), round.sent, round.returned
        )
