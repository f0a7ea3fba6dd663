"""Energy: phases by the power table of "Beyond Latency" (Table III), in watts for each machine.

Suites compute on processors here, so the table's GPU has no part. A machine draws `HIGH` while it
computes, what suits the bandwidth while it transfers, and `IDLE` while it waits for a message; that
last part is counted apart, since overlapping jobs could use it.
"""

from __future__ import annotations

from dataclasses import dataclass

from privet.planner.network import Network
from privet.planner.predict import Prediction, TimeParts


@dataclass(frozen=True)
class Power:
    """Watts of a machine's processor, memory and network card."""

    cpu: float
    memory: float
    card: float

    @property
    def watts(self) -> float:
        return self.cpu + self.memory + self.card


HIGH = Power(60, 15, 25)
MEDIUM = Power(25, 5, 10)
IDLE = Power(16, 3, 5)

COMPUTING = Power(HIGH.cpu, HIGH.memory, IDLE.card)

FAST = 1e9
"""Bytes a second from which a transfer counts as one of high speed."""

SLOW = 50e6
"""Bytes a second below which it counts as one of low speed."""

CARRIED = 8 * 100e-9
"""Joules a byte that a wide area network takes to carry it: the paper's 100 nJ a bit (Section
IV-C), which it leaves out of its figures, as somebody else pays."""

WIDE = 1e-3
"""Seconds of a round trip from which a network is a wide area one."""


@dataclass(frozen=True)
class Energy:
    """Joules of a batch on all machines: computing, transfer, and idle while waiting."""

    computing: float
    transfer: float
    idle: float

    @property
    def joules(self) -> float:
        return self.computing + self.transfer + self.idle

    def __add__(self, other: Energy) -> Energy:
        return Energy(
            self.computing + other.computing,
            self.transfer + other.transfer,
            self.idle + other.idle,
        )


def transfer_power(network: Network) -> Power:
    """What a machine draws while bytes travel."""
    if network.bytes_per_second >= FAST:
        return HIGH
    return MEDIUM if network.bytes_per_second >= SLOW else IDLE


def energy(prediction: Prediction) -> tuple[Energy, Energy]:
    """Joules of a batch, offline and online, of both parties and, offline, a dealer."""
    has_dealer = prediction.record.setting.dealer
    return (
        _phase(prediction.offline, prediction.network, 3 if has_dealer else 2),
        _phase(prediction.online, prediction.network, 2),
    )


def carried(prediction: Prediction) -> float:
    """Joules of a wide area network for the bytes of a batch, both phases; 0 on a local one."""
    if prediction.network.rtt < WIDE:
        return 0.0
    record = prediction.record
    return CARRIED * (record.offline.bytes + record.online.bytes)


def _phase(parts: TimeParts, network: Network, machines: int) -> Energy:
    """Hidden time counts as computing: a machine that does both draws the power of computing."""
    return Energy(
        machines * parts.computing * COMPUTING.watts,
        machines * max(parts.transfer - parts.hidden, 0.0) * transfer_power(network).watts,
        machines * parts.waiting * IDLE.watts,
    )
