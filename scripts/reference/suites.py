"""What each suite promises, how it is chosen and what it does, from the suites themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privet.errors import Misuse
from privet.suites import registry
from privet.suites.base import Suite
from privet.suites.options import Field, fields_of


def reference() -> str:
    """One section for each suite of the registry."""
    return "\n\n".join(section(of) for of in registry.all_suites()) + "\n"


def section(of: type[Suite]) -> str:
    """A suite's promise, options and jobs."""
    heading = f"## Suite `{of.name}`\n\n{of.about[0].upper()}{of.about[1:]}."
    parts = [heading, _trust(of), *filter(None, [_options(of)]), _jobs(of())]
    return "\n\n".join(parts)


def promises() -> str:
    """One row for each suite by its defaults: what SECURITY.md shows."""
    rows = [(f"`{of.name}`", *_promise(of())) for of in registry.all_suites()]
    return _table(("Suite", *_PROMISE), rows) + "\n"


def assumptions() -> str:
    """One row for each suite and each option that changes whom it holds against or who must not
    collude: what README.md shows."""
    rows: dict[tuple[str, str, str], str] = {}
    for of in registry.all_suites():
        for chosen, suite in _choices(of):
            option = "".join(f" --{name.replace('_', '-')} {value}" for name, value in chosen)
            key = (of.name, suite.trust.adversary, suite.trust.collusion)
            rows.setdefault(key, f"`{of.name}{option}`")
    return (
        _table(("Suite", *_PROMISE[:2]), [(shown, *key[1:]) for key, shown in rows.items()]) + "\n"
    )


_PROMISE = ("Holds against", "Who must not collude", "What is revealed", "Weaker in")


def _promise(suite: Suite) -> tuple[str, str, str, str]:
    trust = suite.trust
    weaker = "; ".join(it.meaning for it in suite.weaknesses)
    return trust.adversary, trust.collusion, trust.revealed, weaker


def _trust(of: type[Suite]) -> str:
    """What it rests on by default, and where an option changes that."""
    promises: dict[tuple[str, ...], str] = {}
    for chosen, suite in _choices(of):
        words = [f"`{name}={value!r}`" for name, value in chosen]
        promises.setdefault(_promise(suite), words[0] if words else "the defaults")
    rows = [(chosen, *promise) for promise, chosen in promises.items()]
    return _table(("Options", *_PROMISE), rows)


def _choices(of: type[Suite]) -> Iterator[tuple[list[tuple[str, object]], Suite]]:
    """The defaults, with no choice, and each choice that stands alone."""
    yield [], of()
    for field in fields_of(of):
        for value in _values(field):
            try:
                yield [(field.name, value)], of.from_options({field.name: value})
            except Misuse:  # needs another option as well
                continue


def _values(field: Field) -> Sequence[object]:
    if field.option.choices:
        return field.option.choices
    return (False, True) if field.option.kind is bool else ()


def _options(of: type[Suite]) -> str:
    rows = [
        (
            f"`{it.name}`",
            _shown(it),
            "" if it.default is None else f"`{it.default!r}`",
            it.option.about,
        )
        for it in fields_of(of)
    ]
    return _table(("Option", "Values", "Default", "Meaning"), rows) if rows else ""


def _shown(field: Field) -> str:
    option = field.option
    if option.choices:
        return ", ".join(f"`{choice!r}`" for choice in option.choices)
    return "on or off" if option.kind is bool else f"{option.low} to {option.high}"


def _jobs(suite: Suite) -> str:
    rows = [
        (it.name, it.makes, ", ".join(it.parties), "any" if it.serves is None else str(it.serves))
        for it in suite.jobs
    ]
    return _table(("Job", "Makes", "Parties", "Good for inferences"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(it) for it in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
