"""What a service may offer of suites, from their types: which instances, and by which options a
model's owner limits them.

A suite whose keys serve any number of inferences runs in sessions with a process of the model, in
the one way that its owner chose. All others run as jobs on workers, and clients choose for each job
among the ways that the owner allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from privet.errors import Misuse
from privet.service.schema import Integer, SchemaEntry, Several, Sizes, Text, ValueKind
from privet.suites import JOB_FACTS, Suite, all_suites
from privet.suites.options import fields_of

SECURITY = "security"
"""The fact that every suite tells, whether it has a choice of it or not."""


FIELDS_OF_0_2 = {"parties": "ring", "prime": "prime"}
"""In calls of 0.2 the one word `correlations` said who makes material and what linear layers are
shared in."""


@cache
def in_sessions(of: type[Suite]) -> bool:
    """Whether inferences are made in sessions with a process of the model."""
    return of().in_sessions


def by_jobs(of: type[Suite]) -> bool:
    """Whether clients choose how each job is computed."""
    return not in_sessions(of)


@cache
def instances_of(of: type[Suite]) -> tuple[Suite, ...]:
    """What can be offered of a suite, the way first that is preferred."""
    return tuple(of.served())


SERVED = {suite_type.name: suite_type for suite_type in all_suites() if instances_of(suite_type)}
"""The suites that a service can offer, by name."""


@cache
def choices(of: type[Suite]) -> Mapping[str, tuple[Any, ...]]:
    """The options in which what can be offered differs, with their values. What an instance does
    not have beside its other choices is None, and no value."""
    values_of = {
        field.name: tuple(
            value
            for value in dict.fromkeys(getattr(suite, field.name) for suite in instances_of(of))
            if value is not None
        )
        for field in fields_of(of)
    }
    return {name: values for name, values in values_of.items() if len(values) > 1}


def offered(of: type[Suite], limits: Mapping[str, Any]) -> list[Suite]:
    """The instances that a model's options allow, the first preferred: an option allows a value or
    several; one that is left out allows all."""
    options = {
        name: [None, *(value for value in _listed(limits.get(name, values)) if value in values)]
        for name, values in choices(of).items()
    }
    levels = limits.get(SECURITY)
    instances = [
        suite
        for suite in instances_of(of)
        if all(getattr(suite, name) in values for name, values in options.items())
        and (levels is None or suite.facts()[SECURITY] in levels)
    ]
    return sorted(
        instances, key=lambda suite: [v.index(getattr(suite, n)) for n, v in options.items()]
    )


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def limits() -> list[SchemaEntry]:
    """The options of suites in a model's `config.toml`."""
    options: dict[str, SchemaEntry] = {}
    for suite_type in SERVED.values():
        about = {field.name: field.option.about for field in fields_of(suite_type)}
        for name, values in choices(suite_type).items():
            before = options.get(name)
            if before is not None and isinstance(before.default, tuple):
                values = tuple(dict.fromkeys((*before.default, *values)))
            having = [other.name for other in SERVED.values() if name in choices(other)]
            place = f"in suite {' and '.join(f'`{owner}`' for owner in having)}"
            if by_jobs(suite_type):
                text = (
                    f"{place}: what clients may choose; who does not gets the first. {about[name]}"
                )
                options[name] = SchemaEntry(name, Several(_one_of(values)), text, values)
            else:
                default = next(
                    field.default for field in fields_of(suite_type) if field.name == name
                )
                options[name] = SchemaEntry(
                    name, _one_of(values), f"{place}: {about[name]}", default
                )
    return list(options.values())


def _one_of(values: Sequence[Any]) -> ValueKind:
    if not all(isinstance(value, int) for value in values):
        return Text(tuple(map(str, values)))
    is_range = sorted(values) == list(range(min(values), max(values) + 1))
    return Integer(min(values), max(values)) if is_range else Sizes(tuple(values))


def wishes() -> list[SchemaEntry]:
    """How a job is to be computed, as calls say it: those of a suite's facts that are reported."""
    instances = [
        suite
        for suite_type in SERVED.values()
        if by_jobs(suite_type)
        for suite in instances_of(suite_type)
    ]
    entries = []
    for name, about in JOB_FACTS.items():
        values = dict.fromkeys(suite.facts()[name] for suite in instances)
        if name == "correlations":
            values |= dict.fromkeys(FIELDS_OF_0_2)
        kind = _one_of([value for value in values if value is not None])
        entries.append(SchemaEntry(name, kind, f"{about}; what the model prefers if left out"))
    return entries


def of_today(wish: Mapping[str, str | int | None]) -> Mapping[str, str | int | None]:
    """A wish that may be one of 0.2, which has no `field` and perhaps correlations `prime`."""
    field = FIELDS_OF_0_2.get(str(wish.get("correlations")))
    if field is None or wish.get("field") is not None:
        return wish
    return {**wish, "correlations": "parties", "field": field}


def fulfilling(wish: Mapping[str, str | int | None], offers: Sequence[Suite]) -> list[Suite]:
    """The offers that a wish leaves: those whose facts are the wished ones, or if there are none,
    those that have no choice. Raises `Misuse` that says which part none of them fulfils, and what
    they have instead."""
    candidates = list(offers)
    for name, value in wish.items():
        if value is None:
            continue
        fitting = [suite for suite in candidates if suite.facts()[name] == value]
        fitting = fitting or [suite for suite in candidates if suite.facts()[name] is None]
        if not fitting:
            values = dict.fromkeys(str(suite.facts()[name]) for suite in candidates)
            raise Misuse(f"does not serve {name} {value}; it serves {', '.join(values)}")
        candidates = fitting
    return candidates
