"""`privet inspect --all-suites`: in which suites a model runs, with which options, and why not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import typer

from privet import suites
from privet.cli import show
from privet.compiler.compile import Compiled, compile
from privet.compiler.graph import ModelSource
from privet.errors import InvalidModel, Misuse, ModelError, Problem, UnsupportedModel
from privet.suites import Costed, Suite

SHOWN = 3
"""Problems of a suite that the table shows; JSON has them all."""


@dataclass(frozen=True)
class Verdict:
    """A suite and a model. `options` are those with which it runs the model, None if there are
    none; `problems` are what its defaults refuse, `message` all that is in the way."""

    suite: str
    options: Mapping[str, Any] | None
    ring_bits: int | None
    scale_bits: int | None
    message: str = ""
    problems: tuple[Problem, ...] = ()

    @property
    def flags(self) -> str:
        """The options as a command takes them."""
        words = (self.options or {}).items()
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in words)


def survey(
    model: ModelSource,
    bits: int | None,
    scale: int | None,
    weight_scale: int | None = None,
    **options: Any,
) -> list[Verdict]:
    """What each suite makes of a model that is compiled with these `options`."""
    compiled: dict[Any, Compiled | ModelError] = {}
    verdicts = []
    for suite_type in suites.all_suites():
        precision = suite_type().as_compiled(bits, scale, weight_scale)
        if precision not in compiled:
            try:
                compiled[precision] = compile(model, **vars(precision), **options)
            except InvalidModel:  # no suite can read it
                raise
            except ModelError as error:
                compiled[precision] = error
        verdicts.append(_verdict(suite_type, compiled[precision]))
    return verdicts


def _verdict(suite_type: type[Suite], compiled: Compiled | ModelError) -> Verdict:
    if isinstance(compiled, ModelError):
        return Verdict(suite_type.name, None, None, None, str(compiled), _problems(compiled))
    program = compiled.program
    usual = suite_type()
    refusal: ModelError | Misuse | None = None
    for suite in (usual, *suite_type.labelled()):
        if error := _obstacle(suite, compiled):
            refusal = refusal or error
            continue
        changes = _needed_options(suite, usual, compiled)
        problems = () if refusal is None else _problems(refusal)
        message = "" if refusal is None else str(refusal)
        widths = program.ring_bits, program.scale_bits
        return Verdict(suite_type.name, changes, *widths, message, problems)
    assert refusal is not None
    return Verdict(suite_type.name, None, None, None, str(refusal), _problems(refusal))


def _obstacle(suite: Suite, compiled: Compiled) -> ModelError | Misuse | None:
    """Why a suite does not run a program with these weights; None if it does."""
    if (error := suite.obstacle(compiled.program)) or not isinstance(suite, Costed):
        return error
    try:
        suite.check_weights(compiled)
    except (ModelError, Misuse) as error:
        return error
    return None


def _needed_options(suite: Suite, usual: Suite, compiled: Compiled) -> dict[str, Any]:
    """The options of a suite that runs a program, but for those of which the usual does as well."""
    options = {}
    for field in fields(suite):
        value, default = getattr(suite, field.name), getattr(usual, field.name)
        if value == default:
            continue
        try:
            simpler = replace(suite, **{field.name: default})
            does = _obstacle(simpler, compiled) is None
        except Misuse:
            does = False
        if does:
            suite = simpler
        else:
            options[field.name] = value
    return options


def _problems(error: Exception) -> tuple[Problem, ...]:
    return tuple(error.problems) if isinstance(error, UnsupportedModel) else ()


def print_survey(verdicts: list[Verdict], as_json: bool) -> None:
    """Shows what `survey` found."""
    if as_json:
        typer.echo(json.dumps({"suites": [asdict(verdict) for verdict in verdicts]}))
        return
    table = show.table(("suite", "runs", "ring", "what its defaults refuse"), ())
    for row in verdicts:
        runs = "no" if row.options is None else f"with {row.flags}" if row.options else "yes"
        ring = "" if row.ring_bits is None else f"{row.ring_bits} bits, scale {row.scale_bits}"
        table.add_row(row.suite, runs, ring, _why(row))
    show.make_console().print(table)


def _why(verdict: Verdict) -> str:
    """Why not, a line for each place; the same reason once, with how often."""
    if not verdict.problems:
        return verdict.message.split("\n")[0]
    nodes_of: dict[tuple[str, str], list[str]] = {}
    for problem in verdict.problems:
        nodes_of.setdefault((problem.operator, problem.why), []).append(problem.node)
    lines = []
    for (operator, why), nodes in list(nodes_of.items())[:SHOWN]:
        suffix = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        lines.append(f"{nodes[0]} ({operator}){suffix}: {why}")
    if len(nodes_of) > SHOWN:
        lines.append(f"{len(nodes_of) - SHOWN} other reasons: --json has them all")
    return "\n".join(lines)
