"""Money: what a batch and a month cost at list prices, by the parts of "Beyond Latency" (III-C).

Prices come from a dated TOML file; `data/prices.toml` ships with the package.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.resources import files
from pathlib import Path

from privet.errors import Misuse
from privet.planner.network import Network
from privet.planner.predict import Prediction

MONTH = 30.4375 * 86400
"""Seconds of a month."""

BUSY = 0.7
"""Part of an instance's cores that a steady load may take, so that queues stay short."""


@dataclass(frozen=True)
class Prices:
    """Dollars for an instance of `instance_cores` cores and for a port a second, for a stored byte
    a second, for a byte that leaves; a network from `port_from_bytes_per_second` on needs a port.
    `sources` says of each price where it is from and when that was read.
    """

    name: str
    date: date
    source: str
    instance_per_second: float
    instance_cores: int
    storage_per_byte_second: float
    egress_per_byte: float
    port_per_second: float
    port_from_bytes_per_second: float
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Money:
    """Dollars by what they pay for: computing and waiting instances, bytes offline and online,
    storage of material, the port."""

    instance: float
    offline_transfer: float
    online_transfer: float
    storage: float
    port: float

    @property
    def dollars(self) -> float:
        transfer = self.offline_transfer + self.online_transfer
        return self.instance + transfer + self.storage + self.port


def read_prices(name: str = "cpu", path: Path | None = None) -> Prices:
    """The table `name` of a price file, by default the one of the package. Raises `Misuse` if there
    is no such table or it lacks a price."""
    shipped = files("privet.planner").joinpath("data/prices.toml")
    try:
        tables = tomllib.loads(path.read_text() if path else shipped.read_text())
        return Prices(name, **tables[name])
    except (KeyError, TypeError, ValueError) as error:
        raise Misuse(f"the price file has no complete table [{name}]: {error}") from error


def per_batch(prediction: Prediction, prices: Prices) -> Money:
    """Dollars of one batch as the paper reckons: an instance for each party (and the dealer,
    offline) while the batch runs, all bytes, and a port where the network needs one."""
    dealer = 1 if prediction.record.setting.dealer else 0
    seconds = 2 * prediction.latency + dealer * prediction.offline.seconds
    offline, online = prediction.record.offline, prediction.record.online
    byte_seconds = sum(prediction.record.material_bytes.values()) * prediction.latency
    port = prices.port_per_second if _needs_port(prediction.network, prices) else 0.0
    return Money(
        seconds * prices.instance_per_second,
        offline.bytes * prices.egress_per_byte,
        online.bytes * prices.egress_per_byte,
        byte_seconds * prices.storage_per_byte_second,
        port * prediction.latency,
    )


def server_seconds(prediction: Prediction) -> float:
    """Seconds of a core that a batch takes at the server: half of both parties' computing, or all
    of it where clients only encrypt and decrypt."""
    record = prediction.record
    total = sum(phase.cpu_seconds or phase.seconds for phase in (record.offline, record.online))
    return total / 2 if record.setting.config.exact else total


def server_cores(prediction: Prediction, rate: float) -> int:
    """Cores that a server needs for `rate` samples a second at the load `BUSY`."""
    return max(1, math.ceil(rate / prediction.batch * server_seconds(prediction) / BUSY))


def per_month(prediction: Prediction, prices: Prices, rate: float, pool: int = 1) -> Money:
    """Dollars a month for the service's side: instances that are always on for the server (and
    for a dealer, or each member of a cohort), what leaves them, a full pool in storage, a port
    where the network needs one. The client pays for its own machine and for what it sends."""
    record = prediction.record
    instances = math.ceil(server_cores(prediction, rate) / prices.instance_cores)
    instances += 1 if record.setting.dealer else record.setting.members
    batches = rate / prediction.batch * MONTH
    dealer_bytes = record.offline.dealer_bytes_client + record.offline.dealer_bytes_server
    online_bytes = record.online.bytes_server
    if record.setting.members:  # they send the coordinator shares of keys and refreshes
        dealer_bytes += record.offline.bytes_client
        online_bytes += record.online.bytes_client
    port = prices.port_per_second if _needs_port(prediction.network, prices) else 0.0
    return Money(
        instances * prices.instance_per_second * MONTH,
        batches * (record.offline.bytes_server + dealer_bytes) * prices.egress_per_byte,
        batches * online_bytes * prices.egress_per_byte,
        pool * record.material_bytes["server"] * prices.storage_per_byte_second * MONTH,
        port * MONTH,
    )


def _needs_port(network: Network, prices: Prices) -> bool:
    return network.bytes_per_second >= prices.port_from_bytes_per_second
