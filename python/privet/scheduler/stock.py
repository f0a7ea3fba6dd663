"""Material that lies ready and that no submission has claimed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from privet.scheduler.policies.policy import Stream


@dataclass(frozen=True)
class Piece:
    """A piece of material for `stream`, on `machine`, of `bytes` bytes."""

    material: str
    stream: Stream
    machine: str
    bytes: int


class Stock:
    """Unclaimed pieces. Each leaves by `take`, `drop` or `drop_machine`, and never comes back."""

    def __init__(self) -> None:
        self._pieces: dict[str, Piece] = {}
        self._streams: dict[Stream, deque[str]] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._pieces)

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces.values())

    def __contains__(self, material: str) -> bool:
        return material in self._pieces

    def add(self, piece: Piece) -> None:
        """Puts a piece in that is not in."""
        self._pieces[piece.material] = piece
        self._streams.setdefault(piece.stream, deque()).append(piece.material)
        self.bytes += piece.bytes

    def take(self, stream: Stream) -> Piece | None:
        """The oldest piece for `stream`, which then is no longer in stock."""
        ids = self._streams.get(stream)
        return self.drop(ids[0]) if ids else None

    def drop(self, material: str) -> Piece | None:
        """Takes one piece out by its id; None if it is not in."""
        piece = self._pieces.pop(material, None)
        if piece is not None:
            ids = self._streams[piece.stream]
            ids.remove(material)
            if not ids:
                del self._streams[piece.stream]
            self.bytes -= piece.bytes
        return piece

    def drop_machine(self, machine: str) -> list[Piece]:
        """Takes out all that lies on `machine`."""
        gone = [piece for piece in self._pieces.values() if piece.machine == machine]
        for piece in gone:
            self.drop(piece.material)
        return gone

    def counts(self) -> dict[Stream, int]:
        return {stream: len(ids) for stream, ids in self._streams.items()}
