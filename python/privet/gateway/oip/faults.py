"""What goes wrong, in the words of HTTP and gRPC."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from privet.errors import InputError, JobFailed, LinkError, Misuse, PeerBusy, PrivetError, Short
from privet.gateway.calls import NotThere
from privet.logs import trace
from privet.runtime.listening import RenewedTls
from privet.runtime.revocation import Revoked
from privet.runtime.shortage import shortage

MISTAKE = "the gateway made a mistake; see its log"

_log = logging.getLogger(__name__)


class Refused(PrivetError):
    """The caller's certificate lets it in no more."""


@dataclass(frozen=True)
class Fault:
    """A status of each protocol, and the message for people."""

    http: int
    grpc: grpc.StatusCode
    message: str


def check_caller(revoked: Revoked, peer: str) -> None:
    """Raises `Refused` if the caller of this fingerprint is on the list of the `revoked`."""
    if (why := revoked.refuses(peer)) is not None:
        raise Refused(why)


def check_trust(tls: RenewedTls | None, chain: Sequence[bytes]) -> None:
    """Raises `Refused` if the authority of the caller that showed this chain was taken out."""
    if tls is not None and chain and (why := tls.refuses(chain)) is not None:
        raise Refused(why)


def fault(call: str, error: Exception) -> Fault:
    """What a client of the gateway is told of an error in a call of that name. What nobody foresaw
    is logged: where it happened, and not its message, which may hold an input."""
    if (short := shortage(error)) is not None:
        _log.warning("a call failed", extra={"call": call, "reason": short})
        return Fault(503, grpc.StatusCode.RESOURCE_EXHAUSTED, short)
    if isinstance(error, PrivetError):
        return Fault(*_statuses(error), str(error))
    _log.error("a call failed", extra={"call": call, "trace": trace(error)})
    return Fault(500, grpc.StatusCode.INTERNAL, MISTAKE)


def _statuses(error: PrivetError) -> tuple[int, grpc.StatusCode]:
    match error:
        case Refused():
            return 403, grpc.StatusCode.PERMISSION_DENIED
        case NotThere():
            return 404, grpc.StatusCode.NOT_FOUND
        case InputError() | Misuse():
            return 400, grpc.StatusCode.INVALID_ARGUMENT
        case PeerBusy() | Short():
            return 503, grpc.StatusCode.RESOURCE_EXHAUSTED
        case LinkError():
            return 503, grpc.StatusCode.UNAVAILABLE
        case JobFailed(outcome="timed out"):
            return 504, grpc.StatusCode.DEADLINE_EXCEEDED
        case _:
            return 502, grpc.StatusCode.INTERNAL
