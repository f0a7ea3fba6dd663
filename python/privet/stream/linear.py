"""Rounds at the model provider: linear stages on hidden tensors, permuted on the way back.

A worker that is lost takes nothing with it: its round is done again, under Paillier in a fresh
order and over BFV in the one that was prepared, which gives the same bytes. Only when all of a
round is there is anything returned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import numpy as np

from privet.errors import PeerMisbehaved
from privet.stream.covers import ModelCover, Rows
from privet.stream.crew import ATTEMPTS, Crew, WorkerLost, raise_first
from privet.stream.ledger import Ledger
from privet.stream.stages import NONE, Indices, Round, Stages

_log = logging.getLogger(__name__)


class LinearRounds:
    """Computes a program's linear stages with a crew that has a worker for each part of each.

    `parts[i]` is how many parts round `i` is computed in. With `whole_inputs` workers get all of a
    tensor, not just what their part reads: what tensor partitioning saves.
    """

    def __init__(
        self, stages: Stages, crew: Crew, parts: Sequence[int], *, whole_inputs: bool = False
    ) -> None:
        self.stages = stages
        self.ledger = Ledger()
        self._crew, self._parts, self._whole = crew, tuple(parts), whole_inputs

    async def prepare(self, key: bytes) -> None:
        """Has all workers make their tables of noise for a new data provider.

        # Errors
        `PeerMisbehaved` if a worker refuses the key.
        """
        calls = [
            self._crew.call(stage, part, "ready", key)
            for stage, count in enumerate(self._parts)
            for part in range(count)
        ]
        for error in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(error, PeerMisbehaved):
                raise error
            if isinstance(error, BaseException):
                _log.warning("a worker could not make noise ahead: %s", error)

    async def run(
        self, cover: ModelCover, index: int, bases: dict[int, Rows]
    ) -> tuple[bytes, Indices]:
        """A round's value as it is sent, and where the answer's elements come back.

        # Errors
        `WorkerLost` if workers were lost in every attempt; those of the workers.
        """
        for attempt in range(ATTEMPTS):
            order, returned = cover.arrange(index)
            try:
                return await self._attempt(cover, index, bases, order), returned
            except WorkerLost as error:
                _log.warning("round %d is redone: %s", index, error)
                self.ledger.redone += 1
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("there is at least one attempt")

    async def _attempt(
        self, cover: ModelCover, index: int, bases: dict[int, Rows], order: Indices
    ) -> bytes:
        it = self.stages.rounds[index]
        slices = self.stages.slices(index, self._parts[index])
        message = np.empty((it.sent, self.stages.row_bytes), dtype=np.uint8)
        owner = np.zeros(int(np.prod(it.shape)), dtype=np.int64)
        for part, each in enumerate(slices):
            owner[each.elements] = part
        there = order != NONE
        if not there.all():
            message[~there] = self.stages.least
        owners = np.where(there, owner[np.where(there, order, 0)], -1)
        places = [np.flatnonzero(owners == part) for part in range(len(slices))]

        async def compute(part: int) -> None:
            if not len(places[part]):
                return
            needs = self._needs(it, bases) if self._whole else slices[part].needs
            given = [
                (need.tobytes(), bases[value][need].tobytes())
                for value, need in zip(it.bases, needs, strict=True)
            ]
            given += cover.shares(it, slices[part])
            elements = order[places[part]].astype("<u4").tobytes()
            self.ledger.moved += sum(len(rows) for _, rows in given)
            made, seconds = await self._crew.call(
                index, part, "linear", cover.key, index, elements, given
            )
            self.ledger.spent(index, seconds)
            message[places[part]] = self.stages.rows(made, len(places[part]))

        results = await asyncio.gather(*map(compute, range(len(slices))), return_exceptions=True)
        raise_first(results)
        return cover.leaving(index, message).tobytes()

    def _needs(self, it: Round, bases: dict[int, Rows]) -> list[Indices]:
        """All of every base, as without tensor partitioning."""
        return [np.arange(len(bases[value]), dtype="<u4") for value in it.bases]
