"""What one inference of a plan takes, by formula, in numbers and in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privet._native import Link, Plan
from privet.suites.text import TextGrid, over, size

if TYPE_CHECKING:
    from privet.compiler.program.public import Program


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
    kept_bytes: int
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
    refill_fields = fields.pop("refill")
    refill = RefillForecast(**refill_fields) if refill_fields else None
    return Forecast(linear=linear, extensions=extensions, refill=refill, **fields)


def online_delay(forecast: Forecast, link: Link) -> float:
    """Seconds that a link adds to the online phase of one inference, by formula.

    The two directions run side by side, so the fuller one counts. In nearly every round both
    parties send at once, so a round takes half a round trip.
    """
    fuller = max(forecast.online_bytes_client, forecast.online_bytes_server)
    return 8 * fuller / link.bits_per_second + forecast.online_rounds * link.rtt / 2


ROWS = (
    ("sends offline", "offline_bytes"),
    ("gets from the dealer", "dealer_bytes"),
    ("sends online", "online_bytes"),
    ("stores", "material_bytes"),
    ("needs memory", "memory_bytes"),
)


def account(
    program: Program, cost: Forecast, comparisons: str, link: Link | None, delay: float | None
) -> tuple[str | TextGrid, ...]:
    """What an inference takes: correlations, traffic of each party, rounds, and how it compares."""
    facts: list[str | TextGrid] = [
        "One inference takes:" if program.batch == 1 else f"A batch of {program.batch} takes:",
        _traffic(cost, program.batch),
    ]
    if cost.refill is not None:
        refill = cost.refill
        facts.append(
            f"Unprepared, it takes {size(refill.bytes_client)} and {size(refill.bytes_server)} "
            f"more online, in {refill.rounds} rounds, for correlations in {refill.chunks} chunks."
        )
    if cost.kept_bytes:
        facts.append(
            f"Before the first, the server sends {size(cost.kept_bytes)} of encrypted weights, "
            "once; the client keeps them."
        )
    source = f"by OT ({cost.extension})" if cost.extension else "by a dealer"
    counts = [f"  {count:,} {_titled(kind)}" for kind, count in cost.correlations.items() if count]
    end = ":" if counts else "."
    facts += [f"{cost.online_rounds} online rounds; correlations are made {source}{end}", *counts]
    facts.append(f"Comparisons: {comparisons}{over(link)}.")
    if delay is not None:
        facts.append(f"The link adds {delay:.3f} s online.")
    return tuple(facts)


def _titled(kind: str) -> str:
    """A kind of correlation in words."""
    for short, words in (("eights", "random tables of 8"), ("sixteens", "random tables of 16")):
        kind = kind.replace(short, words)
    return kind.replace("_", " ")


def _traffic(cost: Forecast, samples: int) -> TextGrid:
    parties = ("client", "server")
    rows = []
    for title, field in ROWS:
        if field == "dealer_bytes" and cost.extension is not None:
            continue
        counts = [getattr(cost, f"{field}_{party}") for party in parties]
        shared = samples > 1 and field != "memory_bytes"
        per_sample = [count // samples for count in counts if shared]
        blank = () if shared or samples == 1 else ("", "")
        rows.append((title, *map(size, counts + per_sample), *blank))
    per_sample_titles = tuple(f"{party}, per sample" for party in parties if samples > 1)
    return TextGrid(("",), (*parties, *per_sample_titles), tuple(rows))


def ciphertexts(cost: Forecast) -> tuple[str, ...]:
    """The ciphertexts of each linear layer."""
    return tuple(f"{layer.name} ({layer.operator}): {layer.layout}" for layer in cost.linear)
