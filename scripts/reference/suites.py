"""What each suite promises, how it is chosen and what it does, from the suites themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privet.errors import Misuse
from privet.suites import registry
from privet.suites.base import Suite
from privet.suites.options import Field, fields_of


def reference() -> str:
    """One section for each suite of the registry."""
    return "\n\n".join(section(suite_type) for suite_type in registry.all_suites()) + "\n"


def section(suite_type: type[Suite]) -> str:
    """A suite's promise, options and jobs."""
    heading = (
        f"## Suite `{suite_type.name}`\n\n{suite_type.about[0].upper()}{suite_type.about[1:]}."
    )
    parts = [
        heading,
        _trust(suite_type),
        *filter(None, [_options(suite_type)]),
        _jobs(suite_type()),
    ]
    return "\n\n".join(parts)


def promises() -> str:
    """One row for each suite by its defaults: what SECURITY.md shows."""
    rows = [
        (f"`{suite_type.name}`", *_promise(suite_type())) for suite_type in registry.all_suites()
    ]
    return _table(("Suite", *_PROMISE), rows) + "\n"


def assumptions() -> str:
    """One row for each suite and each option that changes whom it holds against or who must not
    collude: what README.md shows."""
    rows: dict[tuple[str, str, str], str] = {}
    for suite_type in registry.all_suites():
        for choice, suite in _choices(suite_type):
            option = "".join(f" --{name.replace('_', '-')} {value}" for name, value in choice)
            key = (suite_type.name, suite.trust.adversary, suite.trust.collusion)
            rows.setdefault(key, f"`{suite_type.name}{option}`")
    return _table(("Suite", *_PROMISE[:2]), [(text, *key[1:]) for key, text in rows.items()]) + "\n"


_PROMISE = ("Holds against", "Who must not collude", "What is revealed", "Weaker in")


def _promise(suite: Suite) -> tuple[str, str, str, str]:
    trust = suite.trust
    weaker = "; ".join(weakness.meaning for weakness in suite.weaknesses)
    return trust.adversary, trust.collusion, trust.revealed, weaker


def _trust(suite_type: type[Suite]) -> str:
    """What it rests on by default, and where an option changes that."""
    promises: dict[tuple[str, ...], str] = {}
    for choice, suite in _choices(suite_type):
        words = [f"`{name}={value!r}`" for name, value in choice]
        promises.setdefault(_promise(suite), words[0] if words else "the defaults")
    rows = [(choice, *promise) for promise, choice in promises.items()]
    return _table(("Options", *_PROMISE), rows)


def _choices(suite_type: type[Suite]) -> Iterator[tuple[list[tuple[str, object]], Suite]]:
    """The defaults, with no choice, and each choice that stands alone."""
    yield [], suite_type()
    for field in fields_of(suite_type):
        for value in _values(field):
            try:
                yield [(field.name, value)], suite_type.from_options({field.name: value})
            except Misuse:  # needs another option as well
                continue


def _values(field: Field) -> Sequence[object]:
    if field.option.choices:
        return field.option.choices
    return (False, True) if field.option.kind is bool else ()


def _options(suite_type: type[Suite]) -> str:
    rows = [
        (
            f"`{field.name}`",
            _choices_text(field),
            "" if field.default is None else f"`{field.default!r}`",
            field.option.about,
        )
        for field in fields_of(suite_type)
    ]
    return _table(("Option", "Values", "Default", "Meaning"), rows) if rows else ""


def _choices_text(field: Field) -> str:
    option = field.option
    if option.choices:
        return ", ".join(f"`{choice!r}`" for choice in option.choices)
    return "on or off" if option.kind is bool else f"{option.low} to {option.high}"


def _jobs(suite: Suite) -> str:
    rows = [
        (
            job.name,
            job.makes,
            ", ".join(job.parties),
            "any" if job.serves is None else str(job.serves),
        )
        for job in suite.jobs
    ]
    return _table(("Job", "Makes", "Parties", "Good for inferences"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
