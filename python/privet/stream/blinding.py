"""What hides a request's values and orders, at either side: one interface for both ciphers.

Under Paillier a session has a key, and whatever hides a request is made as it goes. Over BFV a
request uses up material that both sides prepared ahead of it, used once. Material has a number,
which rises through a session. The model provider's part is the shares of its layers' products and
the order of each round, the data provider's all masks. What it gives is always the same: a round
that is redone after a lost worker sends the very bytes that it would have sent, and never a second
order or another value under a mask.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import _native
from privet.errors import PeerMisbehaved, PrivetError
from privet.stream.frames import FrameKind
from privet.stream.stages import Indices, Round, Stages, StageSlice, indices

Rows = npt.NDArray[np.uint8]
Given = tuple[bytes, bytes]
"""Elements of a tensor and their rows, as a worker gets them."""


class ModelBlinding(ABC):
    """A request at the model provider: the orders of its rounds."""

    key: bytes = b""
    """What workers make noise under."""

    @abstractmethod
    def arrange(self, index: int) -> tuple[Indices, Indices]:
        """The element at each place that a round sends (`stages.NONE` for none), and the place of
        each that comes back. Asked again when a round is redone."""

    def shares(self, round: Round, part: StageSlice) -> list[Given]:
        """What a worker adds in a part of a round."""
        return []

    def leaving(self, index: int, message: Rows) -> Rows:
        """What a round sends, as it may be seen."""
        return message

    def returned(self, index: int, rows: Rows, places: Indices) -> Rows:
        """An answer in the tensor's own order."""
        return rows[places]


class ModelSide(ABC):
    """A session at the model provider."""

    @abstractmethod
    def on_frame(self, kind: FrameKind, payload: bytes) -> None:
        """A frame that is about hiding. Raises `PeerMisbehaved` if it is not due."""

    @abstractmethod
    def open(self, entry: int) -> ModelBlinding:
        """Blinds a new request, by the entry that it names. Raises `PeerMisbehaved` if that cannot
        be."""


class DataBlinding:
    """A request at the data provider: its masks as rows, none where a key hides and opens."""

    entry = 0

    def hiding_input(self, number: int, at: slice) -> bytes:
        """For some values of an input, counted in the program's order."""
        return b""

    def opening(self, index: int, at: slice) -> bytes:
        """For some rows of what comes in a round."""
        return b""

    def hiding(self, index: int, at: slice) -> bytes:
        """For some rows of what goes back."""
        return b""


class DataSide(ABC):
    """A session at the data provider."""

    @property
    def secret(self) -> tuple[str, bytes] | None:
        """What every worker is handed, and by which call."""
        return None

    @abstractmethod
    async def start(self, send: Callable[[FrameKind, bytes], Awaitable[object]]) -> None:
        """Begins; `send` sends frames of the session."""

    @abstractmethod
    def on_frame(self, kind: FrameKind, payload: bytes) -> None:
        """A frame that is about hiding. Raises `PeerMisbehaved` if it is not due."""

    @abstractmethod
    async def take(self) -> DataBlinding:
        """Blinds a new request. Raises `PrivetError` if there is nothing to blind it with any
        more."""

    @abstractmethod
    def ended(self, error: PrivetError) -> None:
        """The session is over."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of what the session had."""


class KeyBlinding(ModelBlinding):
    """Under a data provider's key: fresh orders, and fresh noise by the workers."""

    def __init__(self, stages: Stages, key: bytes) -> None:
        self._stages, self.key = stages, key

    def arrange(self, index: int) -> tuple[Indices, Indices]:
        """A fresh order each time it is asked for."""
        return self._stages.arrange(index)


class KeyedModel(ModelSide):
    """Has the data provider's public key; `prepare` is called with it once."""

    def __init__(self, stages: Stages, prepare: Callable[[bytes], object]) -> None:
        self._stages, self._prepare = stages, prepare
        self._key: bytes | None = None

    def on_frame(self, kind: FrameKind, payload: bytes) -> None:
        if kind is not FrameKind.KEY or self._key is not None:
            raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")
        if len(payload) != self._stages.key_bytes:
            raise PeerMisbehaved("the public key has the wrong length")
        self._key = payload
        self._prepare(payload)

    def open(self, entry: int) -> ModelBlinding:
        """Covers a request under the key."""
        if self._key is None or entry:
            raise PeerMisbehaved("a request needs a key, and no entry")
        return KeyBlinding(self._stages, self._key)


class KeyedData(DataSide):
    """Has the private key."""

    def __init__(self, key: _native.StreamKey) -> None:
        self._key = key

    @property
    def secret(self) -> tuple[str, bytes]:
        """The private key, for its own workers alone."""
        return "open", self._key.secret()

    async def start(self, send: Callable[[FrameKind, bytes], Awaitable[object]]) -> None:
        await send(FrameKind.KEY, self._key.public())

    def on_frame(self, kind: FrameKind, payload: bytes) -> None:
        """Nothing comes."""
        raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")

    async def take(self) -> DataBlinding:
        """Nothing is needed but the key."""
        return DataBlinding()

    def ended(self, error: PrivetError) -> None:
        """Nobody waits for a key."""

    async def close(self) -> None:
        """Has nothing to close."""


MOST_ENTRIES = 64
"""Material entries that a data provider may have in stock."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ordered:
    """A round's order, and what the model provider adds to what goes and to what comes back."""

    sent: Indices
    forward: bytes
    places: Indices
    backward: bytes


class MaterialBlinding(ModelBlinding):
    """The model provider's part of a material entry: shares by value, and a round's order for
    each."""

    def __init__(self, stages: Stages, material: Any) -> None:
        self._stages = stages
        shares, rounds = material
        self._shares: dict[int, Rows] = {
            value: stages.rows(rows, len(rows) // stages.row_bytes) for value, rows in shares
        }
        self._rounds = [
            Ordered(indices(order), forward, indices(places), backward)
            for order, forward, places, backward in rounds
        ]

    def arrange(self, index: int) -> tuple[Indices, Indices]:
        """The order that was prepared."""
        round = self._rounds[index]
        return round.sent, round.places

    def shares(self, round: Round, part: StageSlice) -> list[Given]:
        """The shares of the layers' products."""
        return [
            (elements.tobytes(), self._shares[value][elements].tobytes())
            for value, elements in zip(round.shares, part.shares, strict=True)
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
    """A session's stock at the model provider; `announce` names a material entry to the data
    provider."""

    def __init__(self, stages: Stages, announce: Callable[[int], None]) -> None:
        self._stages, self._announce = stages, announce
        self._entries: dict[int, MaterialBlinding] = {}
        self._last = 0

    def accept(self, number: int, material: Any) -> None:
        """A material entry was prepared; one that comes out of turn, or beyond what may be in
        stock, is dropped."""
        if number <= self._last or len(self._entries) >= MOST_ENTRIES:
            _log.warning("entry %d is out of turn, or one too many", number)
            return
        self._last = number
        self._entries[number] = MaterialBlinding(self._stages, material)
        self._announce(number)

    def on_frame(self, kind: FrameKind, payload: bytes) -> None:
        """No key goes this way."""
        raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")

    def open(self, entry: int) -> ModelBlinding:
        """Uses up a material entry. They are used in the order of their numbers: those before it
        that were not are dropped."""
        blinding = self._entries.pop(entry, None)
        if blinding is None:
            raise PeerMisbehaved(f"entry {entry} was never made, or is used up")
        self._entries = {
            number: material for number, material in self._entries.items() if number > entry
        }
        return blinding


class Masks(DataBlinding):
    """The data provider's part of a material entry: masks of inputs, and of what comes and goes."""

    def __init__(self, entry: int, row_bytes: int, material: Any) -> None:
        self.entry, self._bytes = entry, row_bytes
        self._inputs, self._rounds = material

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
