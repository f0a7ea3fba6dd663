"""The material in a client's state directory, seen without a session."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from privet import _native
from privet.errors import Misuse


@dataclass(frozen=True)
class Piece:
    """A piece that is ready: `peer` is the fingerprint of the server's certificate.

    `program` is the hash of the program, `suite` the suite with its options; `bytes` is what the
    piece takes on disk, `age_seconds` how long ago it was made.
    """

    id: str
    program: str
    model: str
    suite: str
    peer: str
    bytes: int
    age_seconds: float


@dataclass(frozen=True)
class Holding:
    """Pieces that serve the same: how many, how large together, how old the oldest."""

    model: str
    program: str
    suite: str
    peer: str
    ready: int
    bytes: int
    oldest_seconds: float


class Stock:
    """What lies ready in the client's state directory `state`, whoever put it there."""

    def __init__(self, state: str | os.PathLike[str]) -> None:
        self._native = _native.Store(str(Path(state) / "client"))

    @classmethod
    def at(cls, state: str | os.PathLike[str]) -> Stock:
        """The stock of a directory that is there already.

        # Errors
        `Misuse` if no client has used the directory.
        """
        if not (Path(state) / "client").is_dir():
            raise Misuse(f"{os.fspath(state)} is no client's state directory")
        return cls(state)

    def pieces(self) -> list[Piece]:
        """The pieces that are ready."""
        return [Piece(**json.loads(piece)) for piece in self._native.pieces()]

    def bytes(self) -> int:
        """Bytes of material on disk, pieces included that are being made."""
        return self._native.bytes()

    def holdings(self) -> list[Holding]:
        """The pieces by what they serve."""
        groups: dict[tuple[str, str, str, str], list[Piece]] = {}
        for piece in self.pieces():
            key = (piece.model, piece.program, piece.suite, piece.peer)
            groups.setdefault(key, []).append(piece)
        return [_holding(key, group) for key, group in sorted(groups.items())]


def _holding(key: tuple[str, str, str, str], pieces: Iterable[Piece]) -> Holding:
    model, program, suite, peer = key
    group = list(pieces)
    size, oldest = sum(it.bytes for it in group), max(it.age_seconds for it in group)
    return Holding(model, program, suite, peer, len(group), size, oldest)
