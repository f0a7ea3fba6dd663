"""What jobs take: by formula and rule of thumb at first, then as measured.

A rule of thumb for times is wrong by a factor, so the first run replaces it instead of joining an
average. What was measured of a model and version serves again when it became another program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from privet.scheduler import Demand, Key, Phase, Profiles, Usage
from privet.suites import Forecast, Load

MEMORY_FLOOR = 48 * 2**20
"""Least memory of a job: its session, buffers and threads, which no formula counts."""

TRUSTED_SHARE = 0.5
"""Part of the memory by formula below which no measurement is trusted: a warm process that finds
what it needs in memory that it freed before grows by nothing, and the next one does."""

HEADROOM = 1.3
"""Memory given to a job by memory expected: runs of one kind differ by that much at most."""

FIXED_SECONDS = 0.5
OFFLINE_BYTES_PER_SECOND = 20e6
ONLINE_BYTES_PER_SECOND = 50e6
"""Traffic that a job does in a second of one core: within a factor of ten on models of the zoo."""


class Estimates:
    """Keeps `profiles` filled; `rows` are those of an earlier process."""

    def __init__(self, profiles: Profiles, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._profiles = profiles
        self._guessed: set[Key] = set()
        self._floors: dict[Key, int] = {}
        self._seconds: dict[Key, float] = {}
        self._expected: dict[tuple[str, str], tuple[int, Forecast, int]] = {}
        profiles.load(rows)

    def expect(self, model: str, suite: str, batch: int, of: Forecast, cores: int) -> None:
        """Jobs of `model` under `suite` will come, `batch` samples at once."""
        # Each submission says so, and nothing else changes what is kept under these names.
        if self._expected.get((model, suite)) == (batch, of, cores):
            return
        self._expected[model, suite] = (batch, of, cores)
        self._profiles.set_at_once(model, suite, batch)
        for phase, guess in _guesses(of, cores).items():
            floor = max(MEMORY_FLOOR, int(TRUSTED_SHARE * guess.memory))
            self._expect(Key(model, suite, batch, phase), guess, floor)

    def expect_single(
        self, model: str, suite: str, batch: int, load: Load, cores: int, *, by_link: bool = False
    ) -> None:
        """Jobs will come that are single ones. How long they take is up to each client's link if
        they are `by_link`: what was measured of one with a quick link does not hold for others."""
        self._profiles.set_at_once(model, suite, batch)
        memory = max(MEMORY_FLOOR, load.memory)
        seconds = FIXED_SECONDS + load.bytes / OFFLINE_BYTES_PER_SECOND
        floor = max(MEMORY_FLOOR, int(TRUSTED_SHARE * memory))
        key = Key(model, suite, batch, Phase.ON)
        if by_link:
            self._seconds[key] = seconds
        self._expect(key, Demand(cores, memory, seconds), floor)

    def expect_session(
        self, model: str, suite: str, batch: int, demands: Mapping[Phase, Demand]
    ) -> None:
        """Sessions will come, whose keys and inferences take that much by plan. A process evaluates
        for several clients, so that nobody can measure what memory each takes."""
        self._profiles.set_at_once(model, suite, batch)
        for phase, demand in demands.items():
            self._expect(Key(model, suite, batch, phase), demand, demand.memory)

    def _expect(self, key: Key, guess: Demand, floor: int) -> None:
        self._floors[key] = floor
        if self._profiles.knows(key):
            self._lend(key, guess.cores)
            return
        estimate = self._earlier(key)
        if estimate is None:
            self._guessed.add(key)
        self._profiles.set(key, guess if estimate is None else replace(estimate, cores=guess.cores))

    def measured(self, key: Key, usage: Usage) -> Usage:
        """A run took that much: what the scheduler is to be told of it, after this."""
        memory = max(self._floors.get(key, MEMORY_FLOOR), usage.memory)
        seconds = self._seconds.get(key, usage.seconds)
        usage = Usage(seconds, memory, usage.material, usage.cores)
        if key in self._guessed:
            self._guessed.discard(key)
            guess = self._profiles.expected(key)
            self._profiles.set(key, replace(guess, memory=usage.memory, seconds=usage.seconds))
        return usage

    def exceeded(self, key: Key, memory: int) -> None:
        """A run took more than the `memory` that it was given: the next gets twice as much."""
        demand = self._profiles.expected(key)
        self._profiles.set(key, replace(demand, memory=max(demand.memory, 2 * memory)))

    def row(self, key: Key) -> dict[str, Any] | None:
        """What is known of `key`, for storing; None if it was never measured."""
        if key in self._guessed or not self._profiles.knows(key):
            return None
        demand = self._profiles.expected(key)
        return {**key._asdict(), "phase": str(key.phase), **vars(demand)}

    def _lend(self, key: Key, cores: int) -> None:
        """The configuration gives the jobs another number of cores than they were measured on."""
        demand = self._profiles.expected(key)
        if demand.cores != cores:
            seconds = self._profiles.scaling.moved(demand.seconds, demand.cores, cores)
            self._profiles.set(key, replace(demand, cores=cores, seconds=seconds))

    def _earlier(self, key: Key) -> Demand | None:
        name = key.model.partition("@")[0]
        for row in self._profiles.rows():
            other_key = Key(row["model"], row["suite"], row["batch"], Phase(row["phase"]))
            is_same = other_key._replace(model=key.model) == key
            if (
                is_same
                and other_key.model.partition("@")[0] == name
                and other_key not in self._guessed
            ):
                return self._profiles.expected(other_key)
        return None


def _guesses(forecast: Forecast, cores: int) -> dict[Phase, Demand]:
    offline = (
        forecast.offline_bytes_client + forecast.offline_bytes_server + forecast.dealer_bytes_server
    )
    online = forecast.online_bytes_client + forecast.online_bytes_server
    memory = max(MEMORY_FLOOR, forecast.memory_bytes_server)
    return {
        Phase.PRE: Demand(
            cores,
            memory,
            FIXED_SECONDS + offline / OFFLINE_BYTES_PER_SECOND,
            forecast.material_bytes_server,
        ),
        Phase.ON: Demand(cores, memory, FIXED_SECONDS + online / ONLINE_BYTES_PER_SECOND),
    }
