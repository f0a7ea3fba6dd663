"""A version that is ready to serve: its program, and what clients may ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privet import suites
from privet.compiler.compile import PUBLIC_FILE
from privet.compiler.program import Program
from privet.errors import InvalidProgram, Misuse, PrivetError
from privet.service.repository.config import HOMOMORPHIC, ModelConfig
from privet.suites import Mode
from privet.suites.options import fields_of


@dataclass(frozen=True)
class Choice:
    """How a client wants an inference: the suite with its options. `rounds` is None in `fss`."""

    suite: str
    security: str
    rounds: str | None
    truncation: str
    correlations: str
    linear: str = "offline"

    @property
    def config(self) -> suites.Suite:
        """The suite with those of the options that it has."""
        known = {field.name for field in fields_of(suites.suite_type(self.suite))}
        chosen = {name: value for name, value in vars(self).items() if name in known}
        if self.correlations == "prime":
            chosen |= {"field": "prime", "correlations": "parties"}
        return suites.from_options(self.suite, chosen)

    @property
    def trust(self) -> str | None:
        """What results rest on beyond the two parties; None where they need nobody else."""
        return self.config.trust.caution


@dataclass(frozen=True)
class Asked:
    """A choice that this version serves: how stores label it, and what it takes by formula (None in
    suite `ckks`, whose plan the version has)."""

    choice: Choice
    label: str
    forecast: suites.Forecast | None

    @property
    def mode(self) -> Mode:
        """All of it that a service may forbid."""
        return Mode.labelled(self.label)


SESSION = Asked(Choice(HOMOMORPHIC, "semi-honest", None, "none", "none"), HOMOMORPHIC, None)
"""What sessions of suite `ckks` ask: nothing can be chosen."""


@dataclass(frozen=True)
class Version:
    """A version of a model. `folder` holds the compiled program, both halves.

    `offers` are the pairs of suite and security that it serves, `missing` says why it lacks others
    that its configuration or Privet could offer. `plan` is that of suite `ckks`, as
    `suites.plan_ckks` tells it.
    """

    model: str
    number: int
    folder: Path
    config: ModelConfig
    program: Program
    offers: tuple[tuple[str, str], ...]
    missing: tuple[str, ...] = ()
    dealer: bool = False
    plan: dict[str, Any] | None = None
    _asked: dict[Choice, Asked] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{self.model}/{self.number}"

    @property
    def key(self) -> str:
        """How schedules call it: material and measurements belong to one program."""
        return f"{self.name}@{self.program.program_hash[:12]}"

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that it serves."""
        return tuple(dict.fromkeys(suite for suite, _ in self.offers))

    @property
    def session_mode(self) -> Mode:
        """How sessions of suite `ckks` are served, as far as the service may forbid that."""
        scenario, flooding = self.config.scenario, self.config.flooding
        return Mode(HOMOMORPHIC, scenario=scenario, flooding=flooding)

    @property
    def session_batch(self) -> int:
        """How many samples one evaluation of suite `ckks` computes."""
        return min(self.program.batch, int((self.plan or {})["batch"]))

    @property
    def homomorphic(self) -> bool:
        """Whether it is served in suite `ckks`: in sessions, by a process of its own."""
        return self.config.homomorphic

    def ask(
        self,
        suite: str | None = None,
        security: str | None = None,
        rounds: str | None = None,
        truncation: str | None = None,
        correlations: str | None = None,
        linear: str | None = None,
    ) -> Asked:
        """Fills up a client's wish, and plans it.

        # Errors
        `Misuse` that says what this version serves.
        """
        offers = [
            (one, level)
            for one, level in self.offers
            if suite in (None, one) and security in (None, level)
        ]
        if self.homomorphic:
            raise Misuse(
                f"model {self.name} is served in suite ckks, in sessions: `privet infer --suite "
                "ckks`, or in a browser /predict"
            )
        if not offers:
            wish = " ".join(word for word in (suite, security) if word)
            served = ", ".join(" ".join(offer) for offer in self.offers)
            raise Misuse(f"model {self.name} does not serve {wish}; it serves {served}")
        choice = Choice(
            suite=offers[0][0],
            security=offers[0][1],
            rounds=self._depth(offers[0][0], rounds),
            truncation=truncation or "exact",
            correlations=self._source(offers[0][0], correlations),
            linear=linear or "offline",
        )
        if choice not in self._asked:
            self._asked[choice] = plan(self.program.to_public_bytes(), choice)
        return self._asked[choice]

    def labelled(self, label: str) -> Asked | None:
        """The choice that stores label so; None if nobody has asked for it."""
        return next((asked for asked in self._asked.values() if asked.label == label), None)

    def _depth(self, suite: str, rounds: str | None) -> str | None:
        if suite != "gmw":
            return None
        if rounds is not None and rounds not in self.config.rounds:
            offered = ", ".join(self.config.rounds)
            raise Misuse(f"model {self.name} does not serve rounds {rounds}; it serves {offered}")
        return rounds or self.config.rounds[0]

    def _source(self, suite: str, correlations: str | None) -> str:
        if suite == "fss":
            return "dealer"
        if correlations == "dealer" and not self.dealer:
            raise Misuse("this service has no dealer; ask for correlations of the parties")
        return correlations or "parties"


def plan(public: bytes, choice: Choice) -> Asked:
    """Plans a choice for a program's public half.

    # Errors
    Those of `MaterialSuite.native`.
    """
    planned = suites.material_suite(choice.config).native(public)
    return Asked(choice, planned.suite, suites.forecast(planned))


def load_version(
    model: str, number: int, folder: Path, config: ModelConfig, *, dealer: bool
) -> Version:
    """Reads a compiled program and finds out what it can serve.

    # Errors
    `InvalidProgram` if it cannot be read; `Misuse` if it can serve nothing of what the
    configuration wants, or not all of what it names.
    """
    path = folder / PUBLIC_FILE
    try:
        public = path.read_bytes()
    except OSError as error:
        raise InvalidProgram(f"{path} cannot be read: {error.strerror}") from error
    offers, missing = [], []
    homomorphic: dict[str, Any] = {}
    for suite, security in _wanted(config):
        if suite == HOMOMORPHIC:
            why = _unplanned(public, config, homomorphic)
        else:
            why = _obstacle(public, suite, security, config, dealer)
        if why is None:
            offers.append((suite, security))
        else:
            missing.append(f"{suite} {security}: {why}")
    served = {suite for suite, _ in offers}
    lacking = [suite for suite in config.suites or () if suite not in served]
    if lacking or not offers:
        raise Misuse("; ".join(missing) or f"no security level that {config.suites} can do")
    program = Program.from_public_bytes(public)
    return Version(
        model,
        number,
        folder,
        config,
        program,
        tuple(offers),
        tuple(missing),
        dealer=dealer,
        plan=homomorphic or None,
    )


def _wanted(config: ModelConfig) -> list[tuple[str, str]]:
    levels = {
        "gmw": ("semi-honest",),
        "fss": ("semi-honest", "malicious"),
        HOMOMORPHIC: ("semi-honest",),
    }
    return [
        (suite, security)
        for suite in config.suites or suites.PREPARED
        for security in config.security
        if security in levels[suite]
    ]


def _obstacle(
    public: bytes, suite: str, security: str, config: ModelConfig, dealer: bool
) -> str | None:
    """Why a suite cannot be served; None if it can."""
    if suite == "fss" and not dealer:
        return "this service has no dealer (--dealer)"
    rounds = config.rounds[0] if suite == "gmw" else None
    try:
        plan(public, Choice(suite, security, rounds, "exact", "parties"))
    except PrivetError as error:
        return str(error)
    return None


def _unplanned(public: bytes, config: ModelConfig, plan: dict[str, Any]) -> str | None:
    """Why suite `ckks` cannot be served; None if it can, and then `plan` is filled."""
    try:
        suites.suite_type(HOMOMORPHIC)().check_supports(Program.from_public_bytes(public))
        plan.update(suites.plan_ckks(public, config.scenario, config.flooding))
    except PrivetError as error:
        return str(error)
    return None
