"""Which suites run a program, and what keeps the others from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.errors import Misuse, Problem, UnsupportedModel
from privet.program.public import Program
from privet.suites.refusals import refusal
from privet.suites.stream.planning import plan_stream

ENCRYPTED_DATA, ENCRYPTED_MODEL, COLLECTIVE = "encrypted-data", "encrypted-model", "collective"
"""Scenarios of suite `ckks`: who encrypts what under whose key."""

SCENARIOS = (ENCRYPTED_DATA, ENCRYPTED_MODEL, COLLECTIVE)

LIGHT, STATISTICAL = "light", "statistical"
"""Noise on results: as much as encryption leaves, or enough to hide all else."""

MEMBERS = range(2, 21)
"""How many parties may share a collective key."""


def supported(program: Program, suite: str) -> bool:
    """Whether a suite has protocols for every operation of a program."""
    if _problems(program, suite):
        return False
    if suite == "stream":
        try:
            plan_stream(program.to_public_bytes())
        except Misuse:
            return False
    return True


def check_supported(program: Program, suite: str) -> None:
    """Raises `UnsupportedModel` with every layer that a suite has no protocol for; in suite
    `stream` `plan_stream` refuses further ones."""
    if problems := _problems(program, suite):
        raise UnsupportedModel(problems)


def check_scenario(suite: str, scenario: str, parties: int) -> None:
    """Raises `Misuse` unless there is such a scenario in the suite for so many parties."""
    if scenario not in SCENARIOS:
        raise Misuse(f"the scenario is {scenario!r}; possible are {', '.join(SCENARIOS)}")
    if scenario != ENCRYPTED_DATA and suite != "ckks":
        raise Misuse(f"scenarios are a choice of suite ckks, not of {suite}")
    if scenario == COLLECTIVE and parties not in MEMBERS:
        raise Misuse(f"a cohort has {MEMBERS[0]} to {MEMBERS[-1]} parties, not {parties}")


def collective_trust(parties: int) -> str:
    """What a result of a cohort of so many members rests on."""
    return (
        f"at most {parties - 1} of {parties} members collude, and the coordinator follows the "
        "protocol"
    )


def flooding_of(suite: str, scenario: str, flooding: str | None) -> str:
    """The noise on results in the scenario that was asked for; by default enough to hide all else.

    # Errors
    `Misuse` if results in the scenario cannot have this noise.
    """
    if flooding is None:
        return STATISTICAL
    if suite != "ckks":
        raise Misuse(f"flooding is a choice of suite ckks, not of {suite}")
    if flooding not in (LIGHT, STATISTICAL):
        raise Misuse(f"the flooding is {flooding!r}; possible are {LIGHT}, {STATISTICAL}")
    if flooding == LIGHT and scenario == ENCRYPTED_MODEL:
        raise Misuse("a client could compute the key of an encrypted model under light noise")
    return flooding


def check_semi_honest(suite: str, security: str) -> None:
    """Raises `Misuse` if a suite is asked for more than it promises."""
    if security != "semi-honest":
        raise Misuse(f"suite {suite} is for parties that follow the protocol; fss can do malicious")


def check_without_dealer(suite: str, options: Mapping[str, Any], compares: str) -> None:
    """Raises `Misuse` if a suite is asked for what only suites with a dealer or a choice of rounds
    have; `compares` says how it compares."""
    check_semi_honest(suite, options["security"])
    if options["correlations"] != "parties":
        raise Misuse(f"suite {suite} has no correlations that a dealer could make")
    if options["rounds"] != "auto":
        raise Misuse(f"suite {suite} compares {compares}, so that it has no choice of rounds")


def check_between_two(suite: str, scenario: str) -> None:
    """Raises `Misuse` unless a server and a client by themselves run the scenario."""
    if suite == "stream":
        raise Misuse("suite stream runs by `privet run` and `privet stream`")
    check_scenario(suite, scenario, MEMBERS[0])
    if scenario == COLLECTIVE:
        raise Misuse("a cohort has more than a server and a client: `privet run` starts one")


def _problems(program: Program, suite: str) -> list[Problem]:
    found = []
    for operation in program.operations:
        if why := refusal(operation.op, suite):
            found.append(Problem(operation.name, operation.op, *why))
    return found
