"""Plans of a program for a suite with its options, and what they will take.

Suite `gmw`: two parties, BFV for linear layers offline, Boolean sharing online (SecONNds).
Suite `fss`: function secret sharing with keys from a dealer (Orca, SIGMA), or, against parties that
deviate from the protocol, on authenticated values (SHARK).
Suite `ckks`: homomorphic encryption of real numbers (slytHErin), planned by `privet.suites.ckks`.
Suite `stream`: Paillier for linear layers, permuted values in the clear for the rest (PP-Stream),
planned by `privet.suites.stream`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privet._native import Link, Plan
from privet.errors import Misuse

SUITES = ("gmw", "fss", "ckks", "stream")
"""Names of the suites."""

PREPARED = ("gmw", "fss")
"""Suites that make material ahead of time: those that servers and the service offer."""

Rounds = Literal["linear", "log", "blocks"]
"""Depth of comparisons in `gmw`: `linear` sends the fewest bytes, `blocks` takes the fewest
rounds."""

AUTO = "auto"
"""In place of a depth: the one that a link makes quickest."""

Security = Literal["semi-honest", "malicious"]
"""What the other party may do: study all it sees, or (in `fss`) deviate from the protocol."""

Truncation = Literal["one-bit", "exact"]
"""What becomes of the carry that a truncation drops: lost for free, or computed. With `exact`, all
of a suite's results are those of the plaintext fixed-point executor, bit for bit."""

Correlations = Literal["parties", "dealer", "prime"]
"""Who makes material in `gmw`: the two parties, or a dealer that must collude with neither. With
`prime` the two parties, whose linear layers are modulo a prime (`field`)."""

Field = Literal["ring", "prime"]
"""What linear layers of `gmw` are shared in: the ring of everything else, or a prime field just
above it, with results of the fixed-point executor, bit for bit."""

Linear = Literal["offline", "online"]
"""When linear layers of `gmw` run under encryption: ahead of time on random masks, or (one-shot) on
the client's share of their input when that is there."""


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
    `correlations` counts each kind; `online_rounds` are those of the party that waits more
    often, `offline_rounds` the client's.

    With linear layers online, online figures are those of a session's first inference, which begins
    with a key, and of the client's rounds; `refill` is what it takes more if nothing was prepared.
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


def check_suite(name: str) -> None:
    """Raises `Misuse` unless there is a suite `name`."""
    _check("the suite", name, SUITES)


def is_dealt(suite: str, correlations: str) -> bool:
    """Whether a dealer makes the material."""
    return suite == "fss" or correlations == "dealer"


def plan(
    public: bytes,
    suite: str,
    rounds: str | None,
    truncation: str = "exact",
    correlations: str = "parties",
    link: Link | None = None,
    security: str = "semi-honest",
    linear: str = "offline",
) -> Plan:
    """Plans a program's public half, and how its material is made over `link`.

    `rounds`, `correlations` and `linear` are choices of suite `gmw`; in `fss`, `rounds` is None.

    # Errors
    `Misuse` if an option is unknown or a layer does not fit BFV's secure parameters;
    `InvalidProgram` if the public half is inconsistent.
    """
    check_suite(suite)
    if suite == "ckks":
        raise Misuse(
            "suite ckks makes no material ahead of time: it runs by `privet run`, and by "
            "`privet serve` and `privet infer` with --suite ckks"
        )
    if suite == "stream":
        raise Misuse("suite stream makes no material ahead of time: it runs by `privet run`")
    if suite == "gmw":
        _check("rounds", rounds, (AUTO, *get_args(Rounds)))
    elif rounds is not None:
        raise Misuse(f"rounds are a choice of suite gmw; in {suite} a comparison takes two")
    _check("security", security, get_args(Security))
    if security == "malicious" and suite != "fss":
        raise Misuse(f"suite {suite} is for parties that follow the protocol; fss can do malicious")
    _check("truncation", truncation, get_args(Truncation))
    _check("the source of correlations", correlations, get_args(Correlations))
    check_linear(suite, correlations, linear)
    return Plan(public, suite, security, rounds or "", truncation, correlations, link, linear)


def check_linear(suite: str, correlations: str, linear: str) -> None:
    """Raises `Misuse` unless linear layers of a suite may run then."""
    _check("when linear layers run", linear, get_args(Linear))
    if linear == "online" and (suite != "gmw" or correlations != "parties"):
        raise Misuse("linear layers run online in suite gmw in the ring, without a dealer")


def _check(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value not in possible:
        raise Misuse(f"{what} is {value!r}; possible are {', '.join(possible)}")


def plans(
    public: bytes,
    suite: str,
    rounds: str,
    truncation: str = "exact",
    correlations: str = "parties",
    link: Link | None = None,
    security: str = "semi-honest",
    linear: str = "offline",
) -> dict[str | None, Plan]:
    """The plans that `rounds` leaves to choose from, by their depth: one, or with `auto` all.

    A suite without such a choice has one plan, whose depth is None.

    # Errors
    As `plan`.
    """
    depths: tuple[str | None, ...] = get_args(Rounds) if rounds == AUTO else (rounds,)
    if suite != "gmw" and rounds == AUTO:
        depths = (None,)
    return {
        depth: plan(public, suite, depth, truncation, correlations, link, security, linear)
        for depth in depths
    }


def quickest(plans: Mapping[str | None, Plan], link: Link | None) -> str | None:
    """The depth among those planned that a link delays least; without a link, the first."""
    if link is None or len(plans) == 1:
        return next(iter(plans))
    delays = {depth: online_delay(forecast(planned), link) for depth, planned in plans.items()}
    return min(delays, key=lambda depth: delays[depth])


def truncation_of(suite: str, field: str, truncation: str) -> str:
    """The truncation that was asked for.

    # Errors
    `Misuse` if the suite has no other than the default, as in a prime field.
    """
    _check("truncation", truncation, get_args(Truncation))
    if suite not in PREPARED and truncation != "exact":
        raise Misuse(f"suite {suite} has no choice of truncations: it is for gmw and fss")
    if field == "prime" and truncation != "exact":
        raise Misuse("in a prime field truncations are exact: leave out one-bit truncation")
    return truncation


def in_field(field: str, suite: str, correlations: str) -> str:
    """The correlations of a mode: those asked for, or with `field="prime"` what that takes.

    Truncations are then to be exact (`truncation_of`).

    # Errors
    `Misuse` if a field or its mode is unknown.
    """
    _check("the field", field, get_args(Field))
    if correlations == "prime":
        raise Misuse("parties or a dealer make correlations: ask for a prime field by field")
    if field == "ring":
        return correlations
    if suite != "gmw" or correlations != "parties":
        raise Misuse("a prime field is a choice of suite gmw without a dealer")
    return "prime"


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
