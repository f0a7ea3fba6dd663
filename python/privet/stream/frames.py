"""What passes between the two organisations: typed, numbered frames, and nothing pickled.

A frame is a header of 24 bytes (kind, length, its number, the number of the last frame received),
big-endian, and its payload. Frames of a session are numbered from 1 in each direction; greetings
and signs of life have the number 0 and are never sent again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Self

from privet.compiler.program.public import MAX_BYTES
from privet.errors import PeerMisbehaved, printable

MAGIC = b"PVTSTRM"
VERSION = 2
NO_SESSION = bytes(16)

LARGEST_PROGRAM = MAX_BYTES
LARGEST_TEXT = 1000
LARGEST_ENTRY = (1 << 64) - 1
"""The largest number that a frame has room for."""

_HEADER = struct.Struct("!BxxxIQQ")
_HELLO = struct.Struct("!7sBBH16sQ")
_TENSOR = struct.Struct("!QI")
_REQUEST = struct.Struct("!Q")


class FrameKind(IntEnum):
    """What a frame is."""

    HELLO = 1
    WELCOME = 2
    REFUSED = 3
    ALIVE = 4
    PROGRAM = 5
    KEY = 6
    TENSOR = 7
    FAILED = 8
    BYE = 9
    OPEN = 10
    STOCKED = 11
    SUCCESSOR = 12


UNNUMBERED = frozenset({FrameKind.HELLO, FrameKind.WELCOME, FrameKind.REFUSED, FrameKind.ALIVE})
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True)
class Header:
    """The head of a frame; `number` is 0 for what is not numbered."""

    kind: FrameKind
    length: int
    number: int
    received: int

    def to_bytes(self) -> bytes:
        """As on the wire."""
        return _HEADER.pack(self.kind, self.length, self.number, self.received)

    @classmethod
    def parse(cls, data: bytes, limit: int) -> Header:
        """Reads a header; payloads have at most `limit` bytes. Raises `PeerMisbehaved` on what no
        frame of ours begins with."""
        kind, length, number, received = _HEADER.unpack(data)
        try:
            frame_kind = FrameKind(kind)
        except ValueError as error:
            raise PeerMisbehaved(f"there are no frames of kind {kind}") from error
        if length > limit:
            raise PeerMisbehaved(f"a frame of {length} bytes is too long; at most {limit} are due")
        if (number == 0) != (frame_kind in UNNUMBERED):
            raise PeerMisbehaved(f"a frame of kind {frame_kind.name} has the number {number}")
        return cls(frame_kind, length, number, received)


@dataclass(frozen=True)
class Hello:
    """The data provider's greeting: a new session, or one to go on with after `received`.

    `cipher` is its number and the bits of its keys.
    """

    cipher: tuple[int, int]
    session: bytes
    received: int

    def to_bytes(self) -> bytes:
        """As on the wire."""
        return _HELLO.pack(MAGIC, VERSION, *self.cipher, self.session, self.received)

    @classmethod
    def parse(cls, data: bytes) -> Hello:
        """Reads one; `PeerMisbehaved` if it is another program's, or another version's."""
        if len(data) != _HELLO.size:
            raise PeerMisbehaved("the greeting has the wrong length")
        magic, version, cipher, key_bits, session, received = _HELLO.unpack(data)
        if magic != MAGIC:
            raise PeerMisbehaved("the peer does not speak the protocol of streams")
        if version != VERSION:
            raise PeerMisbehaved(f"the peer speaks version {version} of it, this side {VERSION}")
        return cls((cipher, key_bits), session, received)


class FixedFrame:
    """A payload of numbers and bytes that have their places: the fields in order, as in `FORM`."""

    FORM: ClassVar[struct.Struct]
    WRONG: ClassVar[str]
    """What is said of a payload of another length."""

    def to_bytes(self) -> bytes:
        """As on the wire."""
        return self.FORM.pack(*vars(self).values())

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Reads one; `PeerMisbehaved` on another length."""
        if len(data) != cls.FORM.size:
            raise PeerMisbehaved(cls.WRONG)
        return cls(*cls.FORM.unpack(data))


@dataclass(frozen=True)
class Welcome(FixedFrame):
    """The answer: the session, how many requests may be open in it, and the port at which entries
    are prepared, if they are."""

    FORM = struct.Struct("!16sQIH")
    WRONG = "the welcome has the wrong length"
    session: bytes
    received: int
    window: int
    preparing: int


@dataclass(frozen=True)
class Opened(FixedFrame):
    """A request that begins, and the entry that it uses up: 0 for none."""

    FORM = struct.Struct("!QQ")
    WRONG = "the beginning of a request has the wrong length"
    request: int
    entry: int


@dataclass(frozen=True)
class Stocked(FixedFrame):
    """A material entry of which the model provider has its part."""

    FORM = _REQUEST
    WRONG = "a material entry has no number"
    entry: int


@dataclass(frozen=True)
class Successor(FixedFrame):
    """SHA-256 of the certificate that the data provider goes on with in this session."""

    FORM = struct.Struct("!32s")
    WRONG = "the fingerprint of a certificate has the wrong length"
    fingerprint: bytes


@dataclass(frozen=True)
class TensorFrame:
    """A request's rows: a value for the model provider, or a round's for the data provider.

    `place` is the value's number or the round's.
    """

    request: int
    place: int
    rows: bytes

    def to_bytes(self) -> bytes:
        """As on the wire."""
        return _TENSOR.pack(self.request, self.place) + self.rows

    @classmethod
    def parse(cls, data: bytes) -> TensorFrame:
        """Reads one."""
        if len(data) < _TENSOR.size:
            raise PeerMisbehaved("a tensor has no head")
        request, place = _TENSOR.unpack_from(data)
        return cls(request, place, data[_TENSOR.size :])

    @staticmethod
    def longest(rows: int) -> int:
        """The longest frame of a session whose tensors have so many bytes: one, or a failure's
        reason, which may be longer than a few masked values."""
        return max(_TENSOR.size + rows, _REQUEST.size + LARGEST_TEXT)


@dataclass(frozen=True)
class Failed:
    """A request that the sender has given up, and why."""

    request: int
    reason: str

    def to_bytes(self) -> bytes:
        """As on the wire."""
        return _REQUEST.pack(self.request) + self.reason.encode()[:LARGEST_TEXT]

    @classmethod
    def parse(cls, data: bytes) -> Failed:
        """Reads one."""
        if len(data) < _REQUEST.size:
            raise PeerMisbehaved("a failure does not name its request")
        text = data[_REQUEST.size :].decode(errors="replace")
        return cls(_REQUEST.unpack_from(data)[0], printable(text))
