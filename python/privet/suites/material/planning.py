"""What one inference of a plan takes, by formula: correlations, bytes, rounds and memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from privet._native import Link, Plan


@dataclass(frozen=True)
class LinearForecast:
    """The offline half of one linear layer: ciphertexts and bytes each way, products of ciphertexts
    with weights (without ciphertexts where a dealer makes it)."""

    name: str
    operator: str
    layout: str
    ciphertexts: tuple[int, int]
    products: int
    bytes_client: int
    bytes_server: int


@dataclass(frozen=True)
class ExtensionForecast:
    """What an OT extension takes to make a plan's correlations: bytes each way, rounds, and seconds
    of a core for both parties by the rates that extensions are chosen by."""

    name: str
    bytes_client: int
    bytes_server: int
    rounds: int
    core_seconds: float

    def seconds(self, rtt: float, bits_per_second: float) -> float:
        """The estimate over a network that the extension is chosen by."""
        fuller = max(self.bytes_client, self.bytes_server)
        return 8 * fuller / bits_per_second + self.rounds * rtt + self.core_seconds


@dataclass(frozen=True)
class RefillForecast:
    """What an inference without material takes more online, with linear layers online: how often
    correlations are made, bytes each way, the client's rounds."""

    chunks: int
    bytes_client: int
    bytes_server: int
    rounds: int


@dataclass(frozen=True)
class Forecast:
    """What one inference takes, by formula: correlations to make, bytes each way, rounds.

    `extension` is the OT extension that makes the correlations (None if a dealer does), one of
    `extensions`;
    `correlations` counts each kind; rounds are the client's.

    With linear layers online, online figures are those of a session's first inference, which begins
    with a key; `refill` is what it takes more if nothing was prepared.
    """

    linear: tuple[LinearForecast, ...]
    extension: str | None
    extensions: tuple[ExtensionForecast, ...]
    correlations: dict[str, int]
    offline_bytes_client: int
    offline_bytes_server: int
    dealer_bytes_client: int
    dealer_bytes_server: int
    offline_rounds: int
    refill: RefillForecast | None
    online_bytes_client: int
    online_bytes_server: int
    online_rounds: int
    material_bytes_client: int
    material_bytes_server: int
    memory_bytes_client: int
    memory_bytes_server: int


def forecast(planned: Plan) -> Forecast:
    """What one inference of a plan will take."""
    fields: dict[str, Any] = json.loads(planned.forecast())
    linear = tuple(
        LinearForecast(**{**entry, "ciphertexts": tuple(entry["ciphertexts"])})
        for entry in fields.pop("linear")
    )
    extensions = tuple(ExtensionForecast(**entry) for entry in fields.pop("extensions"))
    more = fields.pop("refill")
    refill = RefillForecast(**more) if more else None
    return Forecast(linear=linear, extensions=extensions, refill=refill, **fields)


def online_delay(forecast: Forecast, link: Link) -> float:
    """Seconds that a link adds to the online phase of one inference, by formula.

    The two directions run side by side, so the fuller one counts. In nearly every round both
    parties send at once, so a round takes half a round trip.
    """
    fuller = max(forecast.online_bytes_client, forecast.online_bytes_server)
    return 8 * fuller / link.bits_per_second + forecast.online_rounds * link.rtt / 2
