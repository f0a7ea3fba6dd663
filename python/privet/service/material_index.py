"""The material that lies ready, by whose it is: what the control plane knows of the stock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from privet.scheduler import Stream


@dataclass(frozen=True)
class MaterialEntry:
    """A piece that is ready on `machine`, for requests of `stream`. `job` is the notice, request or
    "ahead" job that it was made for; None if an earlier process made it. `ahead`: the client has
    not asked for it."""

    material: str
    stream: Stream
    machine: str
    job: str | None
    ahead: bool = False


class MaterialIndex:
    """Pieces that are ready and not used."""

    def __init__(self) -> None:
        self._pieces: dict[str, MaterialEntry] = {}
        self._counts: dict[str, Counter[tuple[str, str]]] = {}
        self._made_for: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._pieces)

    def put(self, piece: MaterialEntry) -> None:
        """A piece was made, or found."""
        self._pieces[piece.material] = piece
        if piece.job is not None:
            self._made_for[piece.job] += 1
        stream = piece.stream
        self._counts.setdefault(stream.client, Counter())[stream.model, stream.suite] += 1

    def take(self, material: str) -> MaterialEntry | None:
        """A piece is used or gone; None if it was not there."""
        piece = self._pieces.pop(material, None)
        if piece is not None:
            if piece.job is not None:
                self._made_for -= Counter((piece.job,))
            stream = piece.stream
            counts = self._counts[stream.client]
            counts[stream.model, stream.suite] -= 1
            if not +counts:
                del self._counts[stream.client]
        return piece

    def materials(self, model: str | None = None) -> list[str]:
        """The pieces of all clients for a model, or for all."""
        pieces = self._pieces.values()
        return [it.material for it in pieces if model in (None, it.stream.model)]

    def has(self, job: str) -> bool:
        """Whether a piece lies here that was made for a job."""
        return self._made_for[job] > 0

    def of(self, client: str, model: str) -> dict[str, int]:
        """A client's pieces for a model, by the label of the suite."""
        counts: Counter[tuple[str, str]] = self._counts.get(client, Counter())
        return {suite: n for (name, suite), n in sorted(counts.items()) if name == model and n}

    def asked(self, client: str, model: str) -> int:
        """A client's pieces for a model but those that it did not ask for."""
        pieces = self._pieces.values()
        whose = [it.stream for it in pieces if not it.ahead]
        return sum((it.client, it.model) == (client, model) for it in whose)

    def by_model(self) -> Counter[tuple[str, str]]:
        """The pieces of all clients, by model and suite."""
        total: Counter[tuple[str, str]] = Counter()
        for counts in self._counts.values():
            total.update(counts)
        return +total
