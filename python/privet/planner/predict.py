"""Time on a network, from a phase's computing, bytes and rounds.

A phase takes its half trips, then computing and transfer, of which the shorter hides behind the
longer as far as the phase streams:

    half trips * rtt / 2  +  max(computing, transfer)  +  exposed * min(computing, transfer)

Half trips are the rounds (parties that send at once wait for half a round trip, see
`privet.suites.online_delay`; where one waits for the other's answer, a round has two) and a few
messages around them, the `lead` of a `LinkUse`. `exposed` is 1 where each message answers the one
before, and less where much travels in one stream. Both were found on links that delay for real,
with models that `privet study validate` does not use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from privet.planner.network import Network
from privet.planner.record import Record
from privet.suites import Phase


@dataclass(frozen=True)
class TimeParts:
    """Seconds of a phase on a network: `computing`, `transfer` of bytes, `waiting` for trips, and
    what of the first two is `hidden` behind each other."""

    computing: float
    transfer: float
    waiting: float
    hidden: float

    @property
    def seconds(self) -> float:
        return self.computing + self.transfer + self.waiting - self.hidden


@dataclass(frozen=True)
class Prediction:
    """A batch of `batch` samples on a network, both phases. `bytes_per_second` is the network's
    bandwidth, `cores` those of the machine that was measured."""

    record: Record
    network: Network
    offline: TimeParts
    online: TimeParts

    @property
    def batch(self) -> int:
        """Samples at once."""
        return self.record.batch

    @property
    def online_latency(self) -> float:
        """Seconds from an input to its output, with material ready."""
        return self.online.seconds

    @property
    def latency(self) -> float:
        """Seconds from nothing to an output."""
        return self.offline.seconds + self.online.seconds

    @property
    def online_throughput(self) -> float:
        """Samples a second, one batch after the other, with material ready."""
        return self.batch / self.online_latency

    @property
    def throughput(self) -> float:
        """Samples a second, one batch after the other, both phases."""
        return self.batch / self.latency

    @property
    def pipelined_throughput(self) -> float:
        """Samples a second of many batches under way at once: what the fullest direction of the
        link and the measured machine's processors let through, whichever is less."""
        phases = (self.record.offline, self.record.online)
        transfer = sum(phase.fullest_bytes for phase in phases) / self.network.bytes_per_second
        computing = sum(phase.cpu_seconds or phase.seconds for phase in phases)
        cores = int(self.record.machine.get("cores", 1))
        return self.batch / max(transfer, computing / cores, 1e-12)


def predict(
    record: Record,
    network: Network,
    speed: float = 1.0,
    *,
    first: bool = False,
    dealer_near_server: bool = False,
) -> Prediction:
    """What a record's batch takes on a network, if computing went `speed` times as fast.

    An offline phase that is made once and serves again is left out unless it is the `first`
    inference.
    Correlations come from the OT extension that suits the network, whichever was measured.
    `record` must be of the loopback: what was measured over a shaped link has its delay in it.
    `dealer_near_server` is how `privet.run` shapes links: that of the server to the dealer is fast.
    """
    if record.link is not None:
        raise ValueError(f"{record.file_name} was measured over a link")

    def parts(name: str, phase: Phase) -> TimeParts:
        link_use = record.setting.config.link_use(name)
        computing = phase.seconds / speed
        remote = replace(phase, dealer_bytes_server=0) if dealer_near_server else phase
        traffic = remote.bytes if link_use.in_turns else remote.fullest_bytes
        transfer = traffic / network.bytes_per_second
        trips = link_use.half_trips * phase.rounds + link_use.lead if phase.rounds else 0
        waiting = trips * network.rtt / 2
        hidden = (1 - link_use.exposed) * min(computing, transfer)
        return TimeParts(computing, transfer, waiting, hidden)

    cost = on_network(record, network)
    cost = cost if first else recurring(cost)
    return Prediction(cost, network, parts("offline", cost.offline), parts("online", cost.online))


def recurring(record: Record) -> Record:
    """The record without an offline phase that serves any number of inferences."""
    if not record.setting.makes_once:
        return record
    return replace(record, offline=Phase(0.0, 0.0, 0, 0, 0))


def on_network(record: Record, network: Network) -> Record:
    """The record with the OT extension that both parties choose on a network: its bytes and rounds,
    and its computing by the rates it is chosen by."""
    if not record.extensions:
        return record
    best = min(
        record.extensions,
        key=lambda extension: extension.seconds(network.rtt, network.bits_per_second),
    )
    current = next(
        extension for extension in record.extensions if extension.name == record.extension
    )
    added_seconds = best.core_seconds - current.core_seconds
    phase = record.offline
    offline = replace(
        phase,
        seconds=max(phase.seconds + added_seconds, 0.1 * phase.seconds),
        cpu_seconds=None
        if phase.cpu_seconds is None
        else max(phase.cpu_seconds + added_seconds, 0.1 * phase.cpu_seconds),
        bytes_client=phase.bytes_client + best.bytes_client - current.bytes_client,
        bytes_server=phase.bytes_server + best.bytes_server - current.bytes_server,
        rounds=phase.rounds + best.rounds - current.rounds,
    )
    return replace(record, offline=offline, extension=best.name)
