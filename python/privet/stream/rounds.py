"""The rounds of a request at either side, computed by a pool of workers, and what they took.

A worker that is lost takes nothing with it: its part is done again, under Paillier in a fresh order
and over BFV in the one that was prepared, which gives the same bytes. Only when all of a round is
there is anything returned.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privet.compiler.graph.operations import Array
from privet.errors import PeerMisbehaved
from privet.stream.blinding import DataBlinding, ModelBlinding, Rows
from privet.stream.stages import NONE, Indices, Stages, split_into_ranges
from privet.stream.worker_pool import ATTEMPTS, WorkerLost, WorkerPool, raise_first
from privet.suites.costs import PhaseCost

_log = logging.getLogger(__name__)


class LinearRounds:
    """Computes a program's linear stages with a pool that has a worker for each part of each.

    `parts[i]` is how many parts round `i` is computed in.
    """

    def __init__(self, stages: Stages, pool: WorkerPool, parts: Sequence[int]) -> None:
        self.stages = stages
        self.ledger = Ledger()
        self._pool, self._parts = pool, tuple(parts)

    async def prepare(self, key: bytes) -> None:
        """Has all workers make their tables of noise for a new data provider. Raises
        `PeerMisbehaved` if a worker refuses the key."""
        calls = [
            self._pool.call(stage, part, "ready", key)
            for stage, count in enumerate(self._parts)
            for part in range(count)
        ]
        for error in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(error, PeerMisbehaved):
                raise error
            if isinstance(error, BaseException):
                _log.warning("a worker could not make noise ahead: %s", error)

    async def run(
        self, blinding: ModelBlinding, index: int, bases: dict[int, Rows]
    ) -> tuple[bytes, Indices]:
        """A round's value as it is sent, and where the answer's elements come back. Raises
        `WorkerLost` if workers were lost in every attempt; those of the workers."""
        for attempt in range(ATTEMPTS):
            order, returned = blinding.arrange(index)
            try:
                return await self._attempt(blinding, index, bases, order), returned
            except WorkerLost as error:
                _log.warning("round %d is redone: %s", index, error)
                self.ledger.redone += 1
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("there is at least one attempt")

    async def _attempt(
        self, blinding: ModelBlinding, index: int, bases: dict[int, Rows], order: Indices
    ) -> bytes:
        round = self.stages.rounds[index]
        slices = self.stages.slices(index, self._parts[index])
        message = np.empty((round.sent, self.stages.row_bytes), dtype=np.uint8)
        owner = np.zeros(int(np.prod(round.shape)), dtype=np.int64)
        for part, portion in enumerate(slices):
            owner[portion.elements] = part
        present = order != NONE
        if not present.all():
            message[~present] = self.stages.least
        owners = np.where(present, owner[np.where(present, order, 0)], -1)
        places = [np.flatnonzero(owners == part) for part in range(len(slices))]

        async def compute(part: int) -> None:
            if not len(places[part]):
                return
            operands = [
                (need.tobytes(), bases[value][need].tobytes())
                for value, need in zip(round.bases, slices[part].needs, strict=True)
            ]
            operands += blinding.shares(round, slices[part])
            elements = order[places[part]].astype("<u4").tobytes()
            rows, seconds = await self._pool.call(
                index, part, "linear", blinding.key, index, elements, operands
            )
            self.ledger.add_call(index, seconds)
            message[places[part]] = self.stages.rows(rows, len(places[part]))

        results = await asyncio.gather(*map(compute, range(len(slices))), return_exceptions=True)
        raise_first(results)
        return blinding.leaving(index, message).tobytes()


class NonlinearRounds:
    """Computes with a pool whose stage 0 hides inputs and whose stage `1 + i` does round `i`, in
    `parts` parts each; `ledger` records what it took."""

    def __init__(
        self, stages: Stages, pool: WorkerPool, parts: Sequence[int], ledger: Ledger
    ) -> None:
        self._stages, self._pool, self._parts, self._ledger = stages, pool, tuple(parts), ledger

    async def hide(self, blinding: DataBlinding, number: int, values: Array) -> bytes:
        """The rows of an input of the program, by its number. Raises `WorkerLost` if a worker was
        lost in every attempt; those of the workers. Of all methods."""
        flat = values.astype("<i8").ravel()
        calls = [
            (flat[indices].tobytes(), blinding.hiding_input(number, indices))
            for indices in split_into_ranges(len(flat), 1, self._parts[0])
        ]
        return await self._spread(0, "encrypt", calls)

    async def reveal(self, blinding: DataBlinding, index: int, rows: bytes) -> bytes:
        """The values of a round that ends in an output: eight bytes each."""
        return await self._spread(1 + index, "values", self._opened_ranges(blinding, index, rows))

    async def answer(self, blinding: DataBlinding, index: int, rows: bytes) -> bytes:
        """The rows that go back for those that came in a round."""
        unit = self._stages.rounds[index].unit
        units = [slice(at.start // unit, at.stop // unit) for at in self._ranges(index)]
        hiding = [blinding.hiding(index, at) for at in units]
        openings = self._opened_ranges(blinding, index, rows)
        calls = [(*opening, other) for opening, other in zip(openings, hiding, strict=True)]
        return await self._spread(1 + index, "answer", calls)

    def _ranges(self, index: int) -> list[slice]:
        """What each worker of a round gets."""
        round = self._stages.rounds[index]
        return split_into_ranges(round.sent, round.unit, self._parts[1 + index])

    def _opened_ranges(
        self, blinding: DataBlinding, index: int, rows: bytes
    ) -> list[tuple[Any, ...]]:
        size = self._stages.row_bytes
        return [
            (index, rows[at.start * size : at.stop * size], blinding.opening(index, at))
            for at in self._ranges(index)
        ]

    async def _spread(self, stage: int, method: str, calls: Sequence[tuple[Any, ...]]) -> bytes:
        """Has each worker of a stage do one call; again, if some are lost: over BFV that gives
        the same bytes, under the same masks."""

        async def do(part: int) -> bytes:
            for attempt in range(ATTEMPTS):
                try:
                    rows, seconds = await self._pool.call(stage, part, method, *calls[part])
                except WorkerLost as error:
                    _log.warning("a part of stage %d is redone: %s", stage, error)
                    self._ledger.redone += 1
                    if attempt == ATTEMPTS - 1:
                        raise
                else:
                    self._ledger.add_call(stage, seconds)
                    return bytes(rows)
            raise AssertionError("there is at least one attempt")

        results = await asyncio.gather(*map(do, range(len(calls))), return_exceptions=True)
        raise_first(results)
        return b"".join(result for result in results if isinstance(result, bytes))


@dataclass
class Ledger:
    """Counts from the start of a side.

    `seconds[stage]` are the processor seconds of a stage's workers and `calls[stage]` their number;
    `redone` counts rounds that were done again because a worker was lost. `entries` were prepared
    in `offline_seconds` with `offline_bytes` of both sides, for keys and the first setup with it;
    `spoiled` are those that were begun and given up.
    """

    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    redone: int = 0
    entries: int = 0
    spoiled: int = 0
    offline_seconds: float = 0.0
    offline_bytes: int = 0

    def add_call(self, stage: int, seconds: float) -> None:
        """A worker of a stage has ended a call."""
        self.seconds[stage] += seconds
        self.calls[stage] += 1

    def stocked(self, cost: PhaseCost) -> None:
        """A material entry was prepared."""
        self.entries += 1
        self.offline_seconds += cost.seconds
        self.offline_bytes += cost.bytes_client + cost.bytes_server
