"""What hides a request's values and orders, at either side: one interface for both ciphers.

Under Paillier a session has a key, and whatever hides a request is made as it goes. Over BFV a
request uses up a piece of what both sides prepared (`privet.stream.pieces`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

import numpy as np
import numpy.typing as npt

from privet import _native
from privet.errors import PeerMisbehaved, PrivetError
from privet.stream.frames import Kind
from privet.stream.stages import Indices, Round, Slice, Stages

Rows = npt.NDArray[np.uint8]
Given = tuple[bytes, bytes]
"""Elements of a tensor and their rows, as a worker gets them."""


class ModelCover(ABC):
    """A request at the model provider: the orders of its rounds."""

    key: bytes = b""
    """What workers make noise under."""

    @abstractmethod
    def arrange(self, index: int) -> tuple[Indices, Indices]:
        """The element at each place that a round sends (`stages.NONE` for none), and the place of
        each that comes back. Asked again when a round is redone."""

    def shares(self, it: Round, part: Slice) -> list[Given]:
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
    def hear(self, kind: Kind, payload: bytes) -> None:
        """A frame that is about hiding.

        # Errors
        `PeerMisbehaved` if it is not due.
        """

    @abstractmethod
    def open(self, piece: int) -> ModelCover:
        """Covers a new request, by the piece that it names.

        # Errors
        `PeerMisbehaved` if that cannot be.
        """


class DataCover:
    """A request at the data provider: its masks as rows, none where a key hides and opens."""

    piece = 0

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
    async def start(self, send: Callable[[Kind, bytes], Awaitable[None]]) -> None:
        """Begins; `send` sends frames of the session."""

    @abstractmethod
    def hear(self, kind: Kind, payload: bytes) -> None:
        """A frame that is about hiding.

        # Errors
        `PeerMisbehaved` if it is not due.
        """

    @abstractmethod
    async def take(self) -> DataCover:
        """Covers a new request.

        # Errors
        `PrivetError` if there is nothing to cover it with any more.
        """

    @abstractmethod
    def ended(self, error: PrivetError) -> None:
        """The session is over."""

    @abstractmethod
    async def close(self) -> None:
        """Lets go of what the session had."""


class KeyCover(ModelCover):
    """Under a data provider's key: fresh orders, and fresh noise by the workers."""

    def __init__(self, stages: Stages, key: bytes) -> None:
        self._stages, self.key = stages, key

    def arrange(self, index: int) -> tuple[Indices, Indices]:
        """A fresh order each time it is asked for."""
        return self._stages.arrange(index)


class KeyedModel(ModelSide):
    """Has the data provider's public key; `prepare` is called with it once."""

    def __init__(self, stages: Stages, prepare: Callable[[bytes], None]) -> None:
        self._stages, self._prepare = stages, prepare
        self._key: bytes | None = None

    def hear(self, kind: Kind, payload: bytes) -> None:
        """Takes the key."""
        if kind is not Kind.KEY or self._key is not None:
            raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")
        if len(payload) != self._stages.key_bytes:
            raise PeerMisbehaved("the public key has the wrong length")
        self._key = payload
        self._prepare(payload)

    def open(self, piece: int) -> ModelCover:
        """Covers a request under the key."""
        if self._key is None or piece:
            raise PeerMisbehaved("a request needs a key, and no piece")
        return KeyCover(self._stages, self._key)


class KeyedData(DataSide):
    """Has the private key."""

    def __init__(self, key: _native.StreamKey) -> None:
        self._key = key

    @property
    def secret(self) -> tuple[str, bytes]:
        """The private key, for its own workers alone."""
        return "open", self._key.secret()

    async def start(self, send: Callable[[Kind, bytes], Awaitable[None]]) -> None:
        """Sends the public key."""
        await send(Kind.KEY, self._key.public())

    def hear(self, kind: Kind, payload: bytes) -> None:
        """Nothing comes."""
        raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")

    async def take(self) -> DataCover:
        """Nothing is needed but the key."""
        return DataCover()

    def ended(self, error: PrivetError) -> None:
        """Nobody waits for a key."""

    async def close(self) -> None:
        """A key needs no goodbye."""
