"""Rounds at the data provider: hides inputs, and does on permuted values what is not linear, by a
crew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from privet.graph.operations import Array
from privet.stream.covers import DataCover
from privet.stream.crew import ATTEMPTS, Crew, WorkerLost, raise_first
from privet.stream.ledger import Ledger
from privet.stream.stages import Stages, cut

_log = logging.getLogger(__name__)


class NonlinearRounds:
    """Computes with a crew whose stage 0 hides inputs and whose stage `1 + i` does round `i`, in
    `parts` parts each; `ledger` hears what it took."""

    def __init__(self, stages: Stages, crew: Crew, parts: Sequence[int], ledger: Ledger) -> None:
        self._stages, self._crew, self._parts, self._ledger = stages, crew, tuple(parts), ledger

    async def hide(self, cover: DataCover, number: int, values: Array) -> bytes:
        """The rows of an input of the program, by its number.

        # Errors
        `WorkerLost` if a worker was lost in every attempt; those of the workers. Of all methods.
        """
        flat = values.astype("<i8").ravel()
        pieces = [
            (flat[each].tobytes(), cover.hiding_input(number, each))
            for each in cut(len(flat), 1, self._parts[0])
        ]
        return await self._spread(0, "encrypt", pieces)

    async def reveal(self, cover: DataCover, index: int, rows: bytes) -> bytes:
        """The values of a round that ends in an output: eight bytes each."""
        return await self._spread(1 + index, "values", self._opened(cover, index, rows))

    async def answer(self, cover: DataCover, index: int, rows: bytes) -> bytes:
        """The rows that go back for those that came in a round."""
        unit = self._stages.rounds[index].unit
        units = [slice(at.start // unit, at.stop // unit) for at in self._ranges(index)]
        hiding = [cover.hiding(index, at) for at in units]
        opened = self._opened(cover, index, rows)
        pieces = [(*one, other) for one, other in zip(opened, hiding, strict=True)]
        return await self._spread(1 + index, "answer", pieces)

    def _ranges(self, index: int) -> list[slice]:
        """What each worker of a round gets."""
        it = self._stages.rounds[index]
        return cut(it.sent, it.unit, self._parts[1 + index])

    def _opened(self, cover: DataCover, index: int, rows: bytes) -> list[tuple[Any, ...]]:
        size = self._stages.row_bytes
        return [
            (index, rows[at.start * size : at.stop * size], cover.opening(index, at))
            for at in self._ranges(index)
        ]

    async def _spread(self, stage: int, method: str, pieces: Sequence[tuple[Any, ...]]) -> bytes:
        """Has the workers of a stage do a piece each; again, if some are lost: over BFV that gives
        the same bytes, under the same masks."""

        async def do(part: int) -> bytes:
            for attempt in range(ATTEMPTS):
                try:
                    made, seconds = await self._crew.call(stage, part, method, *pieces[part])
                except WorkerLost as error:
                    _log.warning("a part of stage %d is redone: %s", stage, error)
                    self._ledger.redone += 1
                    if attempt == ATTEMPTS - 1:
                        raise
                else:
                    self._ledger.spent(stage, seconds)
                    return bytes(made)
            raise AssertionError("there is at least one attempt")

        results = await asyncio.gather(*map(do, range(len(pieces))), return_exceptions=True)
        raise_first(results)
        return b"".join(it for it in results if isinstance(it, bytes))
