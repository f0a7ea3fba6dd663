"""Every error that Privet raises on purpose, in one tree.

`PrivetError` is the root. Three families say whose turn it is to act: `ModelError` (change the
model or the compiler's options), `InputError` and `Misuse` (change the call), and `PeerError`
(the other party, the link to it or the material shared with it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEERING = {
    code: None
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if chr(code) not in "\t\n"
}
"""Characters that steer a terminal, or turn the direction of a text, for `str.translate`."""

LONGEST_TEXT = 1000
"""Characters of a peer's text that are shown."""


def printable(text: str) -> str:
    """A peer's text as users and logs may see it: one line, without what steers a terminal, and not
    endless."""
    return " ".join(text[:LONGEST_TEXT].translate(STEERING).split())


class PrivetError(Exception):
    """Root of all errors that Privet raises on purpose."""


class ModelError(PrivetError):
    """The model cannot be turned into a private program as it is."""


class InvalidModel(ModelError):
    """The file is not a readable, valid ONNX model, or the shapes given do not fit it."""


@dataclass(frozen=True)
class Problem:
    """One thing in a model that Privet does not support.

    `node` is the ONNX node (or graph input) by name, `operator` its type, `why` the reason and
    `instead` what the user can do about it.
    """

    node: str
    operator: str
    why: str
    instead: str

    def __str__(self) -> str:
        return f"{self.node} ({self.operator}): {self.why}. {self.instead}."


class UnsupportedModel(ModelError):
    """The model uses what Privet does not support; `problems` lists all of it at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{count} part{'s' if count != 1 else ''} of the model cannot run privately:"
        super().__init__("\n  ".join([head, *map(str, self.problems)]))


class OverflowRisk(ModelError):
    """A value could leave the ring.

    `layer` is the layer that makes it, `magnitude` the largest real magnitude to allow for (the
    measured one times the margin) and `bits_needed` the ring that would hold it.
    """

    def __init__(self, message: str, *, layer: str, magnitude: float, bits_needed: int) -> None:
        super().__init__(message)
        self.layer = layer
        self.magnitude = magnitude
        self.bits_needed = bits_needed


class InvalidProgram(ModelError):
    """A compiled program is malformed, or its two halves do not belong together."""


class InputError(PrivetError):
    """An inference input has the wrong name, shape, type or values."""


class Misuse(PrivetError):
    """A call that can never work: an option out of its range, an object used twice."""


class PeerError(PrivetError):
    """Something went wrong between the two parties."""


class PeerMisbehaved(PeerError):
    """The other party sent what the protocol does not allow; this inference is abandoned."""


class PeerBusy(PeerError):
    """The other party has no memory, no room for material or no answer left now: try later."""


class NotAccepted(PeerError):
    """The server's policy does not accept what was asked; the message says what it does accept."""


class LinkError(PeerError):
    """The other party could not be reached, or the link to it broke or timed out."""


class NobodyListens(LinkError):
    """The other party's machine refused the connection: no process listens at that address."""


class MaterialError(PeerError):
    """Prepared material is missing, already used, or made for another program or peer."""


class JobFailed(PeerError):
    """A service ended a job without a result; what its material was is spent or deleted.

    `job` is its id, empty if the client still waited for weights that it keeps; `outcome` is
    `failed`, `cancelled` or `timed out`, and `reason` what the service says. The caller may ask
    again: that takes fresh material.
    """

    def __init__(self, message: str, *, job: str, outcome: str, reason: str) -> None:
        super().__init__(message)
        self.job = job
        self.outcome = outcome
        self.reason = reason


class Short(PrivetError):
    """This host has no open files, memory or threads left for what was asked: try later."""


class StoreFull(PrivetError):
    """Another material entry would take this side's store beyond its limit on disk."""


def error_named(name: str, message: str) -> PrivetError:
    """The error that another process reported, by the name of its class; of a class that takes more
    than a message, its family."""
    family = globals().get(name)
    if not (isinstance(family, type) and issubclass(family, PrivetError)):
        return PrivetError(message)
    families = (ancestor for ancestor in family.__mro__ if issubclass(ancestor, PrivetError))
    return next(candidate for candidate in families if "__init__" not in vars(candidate))(message)
