"""A version that is ready to serve: its program, and what clients may ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from privet import suites
from privet.compiler.compile import PUBLIC_FILE
from privet.compiler.program import Program
from privet.errors import InvalidProgram, Misuse, PrivetError
from privet.keys import certified
from privet.service.repository.config import ModelConfig
from privet.service.repository.offering import SECURITY, fulfilling, of_today
from privet.suites import JOB_FACTS, MaterialSuite, Mode, SingleJobSuite, Suite

Wished = tuple[frozenset[tuple[str, str | int | None]], bool]
"""A client's wish for facts of a suite, and whether it does without preparation."""


FETCH = " fetch"
"""What schedules' names of jobs end in by which clients fetch what they keep of a program."""


@dataclass(frozen=True)
class SuiteChoice:
    """A suite that this version serves, every choice made: how stores label it, and what it takes
    by formula: the `forecast` of material and its use, or the `load` of a single job: an inference,
    or one that `fetches` what a client keeps (neither in sessions, whose plan the version has)."""

    suite: Suite
    label: str
    forecast: suites.Forecast | None = None
    load: suites.Load | None = None
    fetches: bool = False

    @property
    def scheduled(self) -> str:
        """How schedules call it, which compare what jobs take."""
        if self.fetches:
            return self.label + FETCH
        bare = self.load is not None and isinstance(self.suite, MaterialSuite)
        return f"{self.label} unprepared" if bare else self.label

    def fetching(self) -> SuiteChoice:
        """The job before it, in which a client fetches what it keeps of the program. Raises
        `Misuse` if there is nothing to fetch."""
        if self.forecast is None or not self.forecast.kept_bytes:
            raise Misuse("clients keep nothing of this model in this suite: ask without a fetch")
        load = suites.Load(self.forecast.kept_bytes, 0)
        return replace(self, forecast=None, load=load, fetches=True)

    @cached_property
    def mode(self) -> Mode:
        """All of it that a service may forbid."""
        return self.suite.mode

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What client and service tell each other of it."""
        facts = self.suite.facts()
        return {name: facts[name] for name in JOB_FACTS}


@dataclass(frozen=True)
class Version:
    """A version of a model. `folder` holds the compiled program, both halves.

    `offers` has what it serves at each security level of each suite, the way first that it takes
    if a client leaves all else open; `missing` says why it lacks levels that its configuration or
    Privet could offer. `plan` has the figures of the plan of sessions.
    """

    model: str
    number: int
    folder: Path
    config: ModelConfig
    program: Program
    offers: tuple[tuple[Suite, ...], ...]
    missing: tuple[str, ...] = ()
    dealer: bool = False
    plan: dict[str, Any] | None = None
    _choices: dict[Suite, SuiteChoice] = field(default_factory=dict, repr=False, compare=False)
    _wishes: dict[Wished, SuiteChoice] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{self.model}/{self.number}"

    @cached_property
    def key(self) -> str:
        """How schedules call it: material and measurements belong to one program."""
        return f"{self.name}@{self.program.program_hash[:12]}"

    @cached_property
    def public(self) -> bytes:
        """The public half of the program."""
        return self.program.to_public_bytes()

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that it serves."""
        return tuple(dict.fromkeys(offer[0].name for offer in self.offers))

    @property
    def session(self) -> SuiteChoice:
        """What sessions ask: nothing can be chosen. Raises `Misuse` if clients choose how each job
        is computed."""
        suite = self.config.session
        if suite is None:
            raise Misuse(f"model {self.name} is not served in sessions")
        return SuiteChoice(suite, suite.name)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The labels of suites for which workers have a server of the program's own."""
        return tuple(
            suite.label
            for offer in self.offers
            for suite in offer
            if isinstance(suite, SingleJobSuite)
        )

    @property
    def session_batch(self) -> int:
        """How many samples an evaluation computes; where others take part, all groups at once."""
        plan = self.plan or {}
        if self.session.suite.partners:
            return int(plan["batch"]) * int(plan["groups"])
        return min(self.program.batch, int(plan["batch"]))

    def partner(self, name: str | None) -> str | None:
        """Which of the parties of its sessions a certificate of this common name is for."""
        if not self.in_sessions:
            return None
        return next(
            (partner for partner in self.session.suite.partners if name == certified(partner)), None
        )

    def awaited(self, partner: str) -> str:
        """How schedules call one of these parties."""
        return f"{self.key} {partner}"

    @property
    def in_sessions(self) -> bool:
        """Whether it is served in sessions, by a process of its own."""
        return self.config.session is not None

    def ask(self, wish: Mapping[str, str | int | None], *, unprepared: bool = False) -> SuiteChoice:
        """Fills up a client's wish for facts of a suite, perhaps without preparation, and plans it.
        Raises `Misuse` that says what this version serves."""
        # There are no more wishes than combinations of the words that a call may say.
        wished = (frozenset(wish.items()), unprepared)
        if (choice := self._wishes.get(wished)) is None:
            choice = self._wishes[wished] = self._ask(wish, unprepared)
        return choice

    def _ask(self, wish: Mapping[str, str | int | None], unprepared: bool) -> SuiteChoice:
        if self.in_sessions:
            name = self.session.suite.name
            raise Misuse(
                f"model {self.name} is served in suite {name}, in sessions: `privet infer --suite "
                f"{name}`, or in a browser /predict"
            )
        try:
            candidates = [candidate for offer in self.offers for candidate in offer]
            suite = fulfilling(of_today(wish), candidates)[0]
        except Misuse as error:
            raise Misuse(f"model {self.name} {error}") from error
        if _is_dealt(suite) and not self.dealer:
            raise Misuse("this service has no dealer; ask for correlations of the parties")
        if unprepared:
            suite = suite.without_preparation()
        if suite not in self._choices:
            self._choices[suite] = plan(self.public, suite)
        return self._choices[suite]

    def labelled(self, label: str) -> SuiteChoice | None:
        """The choice that stores label so; None if nobody has asked for it."""
        return next(
            (choice for choice in self._choices.values() if choice.scheduled == label), None
        )


def plan(public: bytes, suite: Suite) -> SuiteChoice:
    """Plans a suite, every choice made, for a program's public half. Raises those of
    `MaterialSuite.native` and `SingleJobSuite.load`."""
    if isinstance(suite, SingleJobSuite):
        return SuiteChoice(suite, suite.label, load=suite.load(public))
    native_plan = suites.material_suite(suite).native(public)
    cost = suites.forecast(native_plan)
    if suite.prepares_ahead:
        return SuiteChoice(suite, native_plan.suite, cost)
    passing = cost.online_bytes_client + cost.online_bytes_server
    if cost.refill is not None:
        passing += cost.refill.bytes_client + cost.refill.bytes_server
    return SuiteChoice(
        suite, native_plan.suite, load=suites.Load(passing, cost.memory_bytes_server)
    )


def _is_dealt(suite: Suite) -> bool:
    return any("dealer" in job.parties for job in suite.jobs)


def load_version(
    model: str, number: int, folder: Path, config: ModelConfig, *, dealer: bool
) -> Version:
    """Reads a compiled program and finds out what it can serve. Raises `InvalidProgram` if it
    cannot be read; `Misuse` if it can serve nothing of what the configuration wants, or not all of
    what it names."""
    path = folder / PUBLIC_FILE
    try:
        public = path.read_bytes()
    except OSError as error:
        raise InvalidProgram(f"{path} cannot be read: {error.strerror}") from error
    program = Program.from_public_bytes(public)
    if program.state:
        raise Misuse("a model with state is served by privet.Server, whose sessions keep it, alone")
    offers, missing = [], []
    figures: dict[str, Any] = {}
    for offer in _allowed_suites(config):
        first = offer[0]
        if config.session is not None:
            why = _unplanned(program, first, figures)
        else:
            why = _obstacle(public, first, dealer)
        if why is None:
            offers.append(offer)
        else:
            missing.append(f"{first.name} {first.facts()[SECURITY]}: {why}")
    suite_names = {offer[0].name for offer in offers}
    lacking = [suite for suite in config.suites or () if suite not in suite_names]
    if lacking or not offers:
        raise Misuse("; ".join(missing) or "no suite can be offered with these options")
    return Version(
        model,
        number,
        folder,
        config,
        program,
        tuple(offers),
        tuple(missing),
        dealer=dealer,
        plan=figures or None,
    )


def _allowed_suites(config: ModelConfig) -> list[tuple[Suite, ...]]:
    """What the configuration allows, by suite and security level."""
    if config.session is not None:
        return [(config.session,)]
    offers: dict[tuple[str, str], list[Suite]] = {}
    for suite_type in config.types:
        for suite in config.offered(suite_type):
            offers.setdefault((suite.name, suite.facts()[SECURITY]), []).append(suite)
    return [tuple(offer) for offer in offers.values()]


def _obstacle(public: bytes, suite: Suite, dealer: bool) -> str | None:
    """Why a suite cannot be served; None if it can."""
    if _is_dealt(suite) and not dealer:
        return "this service has no dealer (--dealer)"
    try:
        plan(public, suite)
    except PrivetError as error:
        return str(error)
    return None


def _unplanned(program: Program, suite: Suite, figures: dict[str, Any]) -> str | None:
    """Why sessions cannot be served; None if they can, and then `figures` are those of the plan."""
    try:
        figures.update(suite.figures(program))
    except PrivetError as error:
        return str(error)
    return None
