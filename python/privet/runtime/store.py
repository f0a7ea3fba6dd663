"""The record of material: the store on a party's disk, seen without a session.

What lies in the store is the one durable record of the party's material, and its spent markers
decide what may still be used (`crates/runtime/src/store.rs`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from privet import _native
from privet.errors import Misuse
from privet.state_key import state_key


@dataclass(frozen=True)
class StoreEntry:
    """Material that is ready: `peer` is the fingerprint of the other party's certificate.

    `program` is the hash of the program, `suite` the suite with its options; `bytes` is what the
    entry takes on disk, `age_seconds` how long ago it was made.
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
    """Entries that serve the same: how many, how large together, how old the oldest."""

    model: str
    program: str
    suite: str
    peer: str
    ready: int
    bytes: int
    oldest_seconds: float


class MaterialStore:
    """The store of a party in its state directory `state`, whoever put the material there; who
    prepares by this object does not take it beyond `most` bytes. Any thread may use it."""

    def __init__(
        self,
        state: str | os.PathLike[str],
        party: Literal["client", "server"] = "client",
        most: int | None = None,
    ) -> None:
        self.native = _native.Store(str(Path(state) / party), state_key(), most)

    @classmethod
    def at(cls, state: str | os.PathLike[str]) -> MaterialStore:
        """The client's store in a directory that is there already. Raises `Misuse` if no client has
        used the directory."""
        if not (Path(state) / "client").is_dir():
            raise Misuse(f"{os.fspath(state)} is no client's state directory")
        return cls(state)

    def entries(self) -> list[StoreEntry]:
        """What is ready, in order of the ids."""
        return [StoreEntry(**json.loads(entry)) for entry in self.native.entries()]

    def bytes(self) -> int:
        """Bytes of material and of encrypted weights on disk, with what is being made."""
        return self.native.bytes()

    def entry_bytes(self, id: str) -> int:
        """Bytes on disk of one entry; 0 if it is not here."""
        return self.native.entry_bytes(id)

    def kept_names(self, program: str, suite: str) -> frozenset[str]:
        """The files with encrypted weights of a program (its hash) in a suite (its label): one for
        each server that sent some."""
        return frozenset(self.native.kept_names(program, suite))

    def discard(self, ids: Iterable[str]) -> list[str]:
        """Removes entries for good, each claimed first; those of them that nobody had claimed."""
        return [id for id in ids if self.native.discard(id)]

    def holdings(self) -> list[Holding]:
        """The entries by what they serve."""
        groups: dict[tuple[str, str, str, str], list[StoreEntry]] = {}
        for entry in self.entries():
            key = (entry.model, entry.program, entry.suite, entry.peer)
            groups.setdefault(key, []).append(entry)
        return [_holding(key, group) for key, group in sorted(groups.items())]


def _holding(key: tuple[str, str, str, str], group: list[StoreEntry]) -> Holding:
    model, program, suite, peer = key
    size, oldest = sum(entry.bytes for entry in group), max(entry.age_seconds for entry in group)
    return Holding(model, program, suite, peer, len(group), size, oldest)
