"""Suites whose inference is a single job: one session of client and server, preparation included.

Nothing of it is kept at either side. A service runs it on a worker, to which the client connects.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from privet._native import Connection, Guard
from privet.suites.base import Suite
from privet.suites.costs import LayerCost, Load, PhaseCost

Gate = Callable[[str, str | None, str | None, str | None], str | None]
"""Given the kind of a request (`prepare` or `infer`), the program's hash, the suite and a name of
material: why it is refused; None if it is not."""


@dataclass(frozen=True)
class Answer:
    """What a client has of a session: the outputs as little-endian int64, the report of the
    inference as JSON, and what its preparation took."""

    revealed: list[bytes]
    report: str
    offline: PhaseCost
    layers: tuple[LayerCost, ...]


class ProgramHost(Protocol):
    """A program at a server, for any number of sessions at the same time."""

    def serve(
        self,
        connection: Connection,
        suite: Suite,
        done: Callable[[PhaseCost], None],
        gate: Gate,
        threads: int,
    ) -> None:
        """Serves a client to the end of its session in this suite with these options alone, what
        `gate` admits of it. `done` is called after each inference with what it took, its
        preparation included, as the server saw it. Raises `PeerError` if the client breaks the
        protocol or leaves, `NotAccepted` by `gate`."""


@dataclass(frozen=True, kw_only=True)
class SingleJobSuite(Suite):
    """A suite whose inference is a single job."""

    @abstractmethod
    def load(self, public: bytes) -> Load:
        """What an inference of a program takes, by formula.

        # Errors
        `Misuse` if a layer does not run.
        """

    @classmethod
    @abstractmethod
    def host(cls, public: bytes, private: bytes, guard: Guard) -> ProgramHost:
        """The server's side of a program, given both halves, for every way to ask in this suite;
        `guard` holds clients to a policy.

        # Errors
        `InvalidProgram` if the halves do not belong together; `Misuse` if a layer does not run.
        """

    @abstractmethod
    def infer(self, connection: Connection, public: bytes, inputs: Sequence[bytes]) -> Answer:
        """The client's side: one inference of the program on `inputs`, little-endian int64 each.

        # Errors
        `PeerError` if the server refuses, breaks the protocol or leaves.
        """
