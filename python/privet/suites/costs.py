"""What a private inference cost, as the client saw it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class PhaseCost:
    """Cost of the offline or the online phase.

    `bytes_client` and `bytes_server` are what each party sent, frame headers included and TLS not,
    `bytes_dealer` what a dealer sent to the party that measured;
    `rounds` how often a party turned to waiting; `peak_rss_mb` the largest resident memory of a
    party's process in MB, 0 where the system does not tell. `cpu_seconds` is what both parties'
    processors worked, None where that is not measured. `bytes_setup` and `seconds_setup` are what
    came before it, once for many such jobs, and are in none of the others: encrypted weights that
    the client keeps.
    """

    seconds: float
    bytes_client: int
    bytes_server: int
    rounds: int
    peak_rss_mb: float
    bytes_dealer: int = 0
    cpu_seconds: float | None = None
    bytes_setup: int = 0
    seconds_setup: float = 0.0

    def beside(self, server: Mapping[str, Any]) -> PhaseCost:
        """This client's view of a phase, with the processors of both parties and the memory of
        whichever had more; the server's view is given by the names of fields."""
        return replace(
            self,
            peak_rss_mb=round(max(self.peak_rss_mb, server["peak_rss_mb"]), 1),
            cpu_seconds=(self.cpu_seconds or 0.0) + (server["cpu_seconds"] or 0.0),
        )

    def __add__(self, other: PhaseCost) -> PhaseCost:
        return PhaseCost(
            self.seconds + other.seconds,
            self.bytes_client + other.bytes_client,
            self.bytes_server + other.bytes_server,
            self.rounds + other.rounds,
            max(self.peak_rss_mb, other.peak_rss_mb),
            self.bytes_dealer + other.bytes_dealer,
            None
            if self.cpu_seconds is None or other.cpu_seconds is None
            else self.cpu_seconds + other.cpu_seconds,
            self.bytes_setup + other.bytes_setup,
            self.seconds_setup + other.seconds_setup,
        )


NOTHING = PhaseCost(0.0, 0, 0, 0, 0.0, cpu_seconds=0.0)
"""The cost of a preparation that there was none of."""


@dataclass(frozen=True)
class Load:
    """What an inference takes that is a single job, by formula: bytes that both parties send, and
    the server's memory in bytes."""

    bytes: int
    memory: int


@dataclass(frozen=True)
class DealerCost:
    """Cost of one deal as the dealer saw it; bytes are what it sent to each party."""

    bytes_client: int
    bytes_server: int
    seconds: float
    peak_rss_mb: float


@dataclass(frozen=True)
class MemoryUse:
    """Resident memory of a party's process in MB: what was forecast for its two jobs, and the peak.

    The forecast is by formula and leans to the high side. It is None for a server with a limit,
    which trades time for memory until it fits.
    """

    forecast_mb: float | None
    peak_mb: float


@dataclass(frozen=True)
class LayerCost:
    """Cost of one step of a phase; `name` is the ONNX node, `operator` what was done for it.

    `bytes_keys` are the bytes of keys that it read from the store of the party that measured.
    """

    name: str
    operator: str
    phase: str
    seconds: float
    bytes_client: int
    bytes_server: int
    rounds: int
    bytes_dealer: int = 0
    bytes_keys: int = 0


def read_report(text: str, *, by_server: bool = False) -> tuple[PhaseCost, tuple[LayerCost, ...]]:
    """A native report, which tells sent from received, as costs that tell client from server."""
    report = json.loads(text)
    total, by_dealer = report["total"], report["counterpart"] == "dealer"
    setup = report.get("setup", {"seconds": 0.0, "bytes_sent": 0, "bytes_received": 0})
    phase = PhaseCost(
        **_traffic(total, by_server, by_dealer),
        seconds=total["seconds"],
        rounds=total["rounds"],
        peak_rss_mb=round(total["peak_rss_mb"], 1),
        bytes_setup=setup["bytes_sent"] + setup["bytes_received"],
        seconds_setup=setup["seconds"],
    )
    layers = tuple(
        LayerCost(
            name=layer["name"],
            operator=layer["operator"],
            phase=layer["phase"],
            seconds=layer["seconds"],
            rounds=layer["rounds"],
            bytes_keys=layer["key_bytes"],
            **_traffic(layer, by_server, by_dealer),
        )
        for layer in report["layers"]
    )
    return phase, layers


def _traffic(cost: dict[str, Any], by_server: bool, by_dealer: bool) -> dict[str, int]:
    sent, received = cost["bytes_sent"], cost["bytes_received"]
    received, dealer = (0, received) if by_dealer else (received, 0)
    if by_server:
        return {"bytes_client": received, "bytes_server": sent, "bytes_dealer": dealer}
    return {"bytes_client": sent, "bytes_server": received, "bytes_dealer": dealer}
