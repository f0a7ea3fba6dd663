"""Pieces: what hides one request over BFV, prepared by both sides ahead of it and used once.

A piece has a number, which rises through a session. The model provider's part is the shares of its
layers' products and the order of each round, the data provider's all masks. What a piece gives is
always the same: a round that is redone after a lost worker sends the very bytes that it would have
sent, and never a second order or another value under a mask.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.errors import PeerMisbehaved
from privet.stream.covers import DataCover, Given, ModelCover, ModelSide, Rows
from privet.stream.frames import Kind
from privet.stream.stages import Indices, Round, Slice, Stages

MOST_PIECES = 64
"""Pieces that a data provider may have in stock."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ordered:
    """A round's order, and what the model provider adds to what goes and to what comes back."""

    sent: Indices
    forward: bytes
    places: Indices
    backward: bytes


class PieceCover(ModelCover):
    """The model provider's part of a piece: shares by value, and a round's order for each."""

    def __init__(self, stages: Stages, made: Any) -> None:
        self._stages = stages
        shares, rounds = made
        self._shares: dict[int, Rows] = {
            value: stages.rows(rows, len(rows) // stages.row_bytes) for value, rows in shares
        }
        self._rounds = [
            Ordered(_indices(sent), forward, _indices(places), backward)
            for sent, forward, places, backward in rounds
        ]

    def arrange(self, index: int) -> tuple[Indices, Indices]:
        """The order that was prepared."""
        it = self._rounds[index]
        return it.sent, it.places

    def shares(self, it: Round, part: Slice) -> list[Given]:
        """The shares of the layers' products."""
        return [
            (elements.tobytes(), self._shares[value][elements].tobytes())
            for value, elements in zip(it.shares, part.shares, strict=True)
        ]

    def leaving(self, index: int, message: Rows) -> Rows:
        """With the model provider's part of the shuffle; an output as it is."""
        return self._plus(message, self._rounds[index].forward)

    def returned(self, index: int, rows: Rows, places: Indices) -> Rows:
        """With its part of the shuffle back."""
        return self._plus(rows[places], self._rounds[index].backward)

    def _plus(self, rows: Rows, part: bytes) -> Rows:
        if not part:
            return rows
        return self._stages.rows(self._stages.native.add(rows.tobytes(), part), len(rows))


class MaskedModel(ModelSide):
    """A session's stock at the model provider; `tell` announces a piece to the data provider."""

    def __init__(self, stages: Stages, tell: Callable[[int], None]) -> None:
        self._stages, self._tell = stages, tell
        self._pieces: dict[int, PieceCover] = {}
        self._last = 0

    def deliver(self, number: int, made: Any) -> None:
        """A piece was prepared; one that comes out of turn, or beyond what may be in stock, is
        dropped."""
        if number <= self._last or len(self._pieces) >= MOST_PIECES:
            _log.warning("piece %d is out of turn, or one too many", number)
            return
        self._last = number
        self._pieces[number] = PieceCover(self._stages, made)
        self._tell(number)

    def hear(self, kind: Kind, payload: bytes) -> None:
        """No key goes this way."""
        raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")

    def open(self, piece: int) -> ModelCover:
        """Uses up a piece. They are used in the order of their numbers: those before it that were
        not are dropped."""
        found = self._pieces.pop(piece, None)
        if found is None:
            raise PeerMisbehaved(f"piece {piece} was never made, or is used up")
        self._pieces = {number: it for number, it in self._pieces.items() if number > piece}
        return found


class Masks(DataCover):
    """The data provider's part of a piece: masks of inputs, and of what comes and goes."""

    def __init__(self, piece: int, row_bytes: int, made: Any) -> None:
        self.piece, self._bytes = piece, row_bytes
        self._inputs, self._rounds = made

    def hiding_input(self, number: int, at: slice) -> bytes:
        """Masks of some values of an input."""
        return self._some(self._inputs[number], at)

    def opening(self, index: int, at: slice) -> bytes:
        """Masks of some rows that come."""
        return self._some(self._rounds[index][0], at)

    def hiding(self, index: int, at: slice) -> bytes:
        """Masks of some rows that go back."""
        return self._some(self._rounds[index][1], at)

    def _some(self, rows: bytes, at: slice) -> bytes:
        return rows[at.start * self._bytes : at.stop * self._bytes]


def _indices(raw: bytes) -> Indices:
    return np.frombuffer(raw, dtype="<u4")
