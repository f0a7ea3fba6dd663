"""A model as a service describes it, and on which terms a client wants it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privet import _native, suites
from privet.compiler.program import Program
from privet.errors import Misuse, PeerMisbehaved
from privet.suites import JOB_FACTS, MaterialSuite, SingleJobSuite, Suite
from privet.suites.material.suite import quickest


@dataclass(frozen=True)
class Terms:
    """How an inference is to be computed.

    `version` and `program_hash` insist on one version and on one program; by default it is the
    newest, whatever its program. What the `suite` leaves open is by default what material is ready
    for, or else what suits the network.
    """

    suite: Suite = suites.DEFAULT
    version: int | None = None
    program_hash: str | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What the service must know of the suite."""
        facts = self.suite.facts()
        return {key: facts[key] for key in JOB_FACTS}


def as_terms(terms: Terms | Suite | str | None) -> Terms | None:
    """Terms as they are given, or those of a suite or of the name of one; None stays open. Raises
    `Misuse` if it is none of these."""
    return terms if terms is None or isinstance(terms, Terms) else Terms(suites.as_suite(terms))


@dataclass(frozen=True)
class Tensor:
    """An input or an output; the first axis of `shape` counts the samples of one inference."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Offered:
    """A suite at a security level; `trust` says what it rests on beyond the two parties."""

    suite: str
    security: str
    rounds: tuple[str, ...]
    trust: str | None


@dataclass(frozen=True)
class Model:
    """A version of a model that a service offers.

    `program` is the hash of the program, `batch` the samples that one inference takes, `stock`
    this client's material at the service by the label of its suite.
    """

    name: str
    version: int
    versions: tuple[int, ...]
    description: str
    program: str
    batch: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    suites: tuple[Offered, ...]
    stock: Mapping[str, int]


def read_model(document: Any) -> Model:
    """A model from the service's answer. Raises `PeerMisbehaved` if it does not have the form of
    one."""
    try:
        details = document["privet"]
        return Model(
            name=str(document["name"]),
            version=int(details["version"]),
            versions=tuple(int(version) for version in document["versions"]),
            description=str(details["description"]),
            program=str(details["program"]),
            batch=int(details["batch"]),
            inputs=tuple(_tensor(tensor) for tensor in document["inputs"]),
            outputs=tuple(_tensor(tensor) for tensor in document["outputs"]),
            suites=tuple(
                Offered(offer["suite"], offer["security"], tuple(offer["rounds"]), offer["trust"])
                for offer in details["suites"]
            ),
            stock={str(label): int(count) for label, count in details["stock"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PeerMisbehaved(f"the service describes no model: {error!r}") from error


def same_terms(document: Any, resolved: Terms) -> bool:
    """Whether a job at the service is for a resolved program, on its terms."""
    return bool(
        document["program"] == resolved.program_hash
        and all(document[key] == value for key, value in resolved.facts.items())
    )


def _tensor(document: Any) -> Tensor:
    return Tensor(str(document["name"]), tuple(int(size) for size in document["shape"]))


MOST_PLANS = 32
"""Plans of a program that are kept: callers may vary their terms as they like."""


class Offer:
    """A model with its program, as this client has checked it, and plans of it."""

    def __init__(self, model: Model, public: bytes) -> None:
        if hashlib.sha256(public).hexdigest() != model.program:
            raise PeerMisbehaved(
                f"the service calls a program {model.program} that has another hash"
            )
        self.model = model
        self.program = Program.from_public_bytes(public)
        if self.program.state:
            raise Misuse("a service's jobs are sessions of their own, and keep no state")
        self.public = public
        self._plans: dict[Terms, _native.Plan] = {}
        self._resolved: dict[tuple[Terms, _native.Link | None], Terms] = {}
        self._lock = threading.Lock()

    def resolve(self, terms: Terms, network: _native.Link | None = None) -> Terms:
        """The terms with this program, and with the depth that they leave open, as suits `network`.
        Raises `PeerMisbehaved` if they insist on another program; `Misuse` if the model is not
        offered on these terms."""
        key = (terms, network)
        if (choice := self._resolved.get(key)) is None:
            choice = self._choose(terms, network)
            if len(self._resolved) >= MOST_PLANS:
                self._resolved.clear()
            self._resolved[key] = choice
        return choice

    def has_resolved(self, terms: Terms, network: _native.Link | None) -> bool:
        """Whether `resolve` has an answer ready, and `plan` one to that."""
        return self._resolved.get((terms, network)) in self._plans

    def _choose(self, terms: Terms, network: _native.Link | None) -> Terms:
        hash = self.model.program
        if terms.program_hash not in (None, hash):
            raise PeerMisbehaved(
                f"model {self.model.name} is program {hash}, not {terms.program_hash}: ask the "
                "service's operator which one is current"
            )
        if isinstance(terms.suite, SingleJobSuite):
            _check_served(terms.suite)
        suite, security = terms.facts["suite"], terms.facts["security"]
        offers = [
            offer
            for offer in self.model.suites
            if (offer.suite, offer.security) == (suite, security)
        ]
        if not offers:
            listing = ", ".join(f"{offer.suite} {offer.security}" for offer in self.model.suites)
            raise Misuse(
                f"model {self.model.name} is not offered in {suite} {security}; it is in {listing}"
            )
        candidates = _open_choices(terms.suite, offers[0])
        resolved = replace(terms, suite=candidates[0], program_hash=hash)
        if len(candidates) == 1:
            return resolved
        plans = {
            candidate: self.plan(replace(resolved, suite=candidate), network)
            for candidate in candidates
        }
        stocked = {
            candidate: plan for candidate, plan in plans.items() if self.model.stock.get(plan.suite)
        }
        return replace(resolved, suite=quickest(stocked or plans, network))

    def plan(self, terms: Terms, network: _native.Link | None) -> _native.Plan:
        """The plan for resolved terms; `network` is what the first call took it for.

        May be called from any thread.

        Raises those of `MaterialSuite.native`.
        """
        with self._lock:
            if terms not in self._plans:
                # Whoever still uses the oldest has it, and it is made again when it is asked for.
                while len(self._plans) >= MOST_PLANS:
                    del self._plans[next(iter(self._plans))]
                suite = suites.material_suite(terms.suite)
                self._plans[terms] = suite.native(self.public, network)
            return self._plans[terms]


def _check_served(suite: SingleJobSuite) -> None:
    """Raises `Misuse` if no service offers the suite with these options."""
    if suite.label not in (way.label for way in suite.served()):
        raise Misuse(f"no service offers suite {suite.label}: privet.run alone computes so")


def _open_choices(suite: Suite, offered: Offered) -> Sequence[Any]:
    """What a suite leaves open, as far as the model offers it."""
    if not isinstance(suite, MaterialSuite):
        return (suite,)
    candidates = suite.alternatives()
    if len(candidates) == 1 or not offered.rounds:
        return candidates
    return [candidate for candidate in candidates if candidate.facts()["rounds"] in offered.rounds]
