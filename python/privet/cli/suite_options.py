"""`--suite`, and with it the options of the suite that it names, made from the suite's fields.

`privet run --help` shows shared options and a line for each suite, `privet run --suite NAME --help`
those of that suite besides. A command gets the suite with its options as one argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand
from typer.main import get_command

from privet import suites
from privet.cli.console import Console
from privet.errors import Misuse
from privet.suites.options import Field, fields_of

FLAG = "--suite"

Suite = Annotated[
    suites.Suite,
    typer.Option(
        FLAG,
        parser=suites.as_suite,
        metavar="|".join(suites.names()),
        show_default=suites.DEFAULT.name,
        help="How the data is protected; each suite has options of its own.",
    ),
]
"""The argument of a command made with `SuiteCommand`."""

AnySuite = Annotated[
    suites.Suite | None,
    typer.Option(
        FLAG,
        parser=suites.as_suite,
        metavar="|".join(suites.names()),
        help="One suite, with options of its own; without it all, in their usual settings.",
    ),
]
"""The same where no suite is named unless somebody asks for one."""

_PREFIX = "suite_option_"


def accepted(suite: type[suites.Suite], name: str) -> Any:
    """The option of a server by which it also accepts a weaker value of a field than its default,
    from clients that ask for it."""
    option = option_of(suite, name)
    option.help = f"Also accept clients that ask for another than the default. {option.help}"
    return option


def option_of(suite: type[suites.Suite], name: str) -> Any:
    """The command line's option for one field of a suite, for commands of a single suite."""
    (field,) = (option for option in fields_of(suite) if option.name == name)
    metavar = None if field.option.kind is bool else field.option.metavar
    return typer.Option(field.flag, help=field.option.about, metavar=metavar)


class SuiteCommand(TyperCommand):
    """A command with an argument `suite`, whose options are also those of the suite."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the options of the suite that `--suite` names, and puts them together."""
        suite_name, params = _named(args), super().get_params(ctx)
        command_flags = {flag for param in params for flag in param.opts}
        if suite_name is None and any(
            param.name == "suite" and param.default is None for param in params
        ):
            _refuse_others(args, None, command_flags)
            return super().parse_args(ctx, args)
        suite_type = suites.suite_type(suite_name or suites.DEFAULT.name)
        _refuse_others(args, suite_type, command_flags)
        ctx.meta[_PREFIX] = suite_type, suite_name is not None
        arguments = super().parse_args(ctx, args)
        values = {
            field.name: ctx.params.pop(_PREFIX + field.name)
            for field in _open(suite_type, command_flags)
        }
        ctx.params["suite"] = suites.from_options(suite_type.name, values)
        return arguments

    def get_params(self, ctx: Any) -> list[Any]:
        """The command's own, and those of the suite; help leaves these out until it is named."""
        params = super().get_params(ctx)
        suite_type, is_named = ctx.meta.get(_PREFIX, (None, False))
        if suite_type is None or (ctx.meta.get("helping") and not is_named):
            return params
        command_flags = {flag for param in params for flag in param.opts}
        return [*params[:-1], *_parameters(suite_type, command_flags), params[-1]]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help, with a line for each suite or, if one is named, what it promises."""
        ctx.meta["helping"] = True
        super().format_help(ctx, formatter)
        suite_type, is_named = ctx.meta.get(_PREFIX, (None, False))
        if suite_type is not None and is_named:
            trust = suite_type().trust
            rows = [
                ("who", trust.collusion),
                ("against", trust.adversary),
                ("reveals", trust.revealed),
                *([("rests on", trust.caution)] if trust.caution else []),
            ]
            title = f"What suite {suite_type.name} promises with its defaults"
        else:
            rows = [(kind.name, kind.about) for kind in suites.all_suites()]
            title = f"Suites ({FLAG} NAME --help shows the options of one)"
        lines = Table(box=None, show_header=False, pad_edge=False)
        for name, text in rows:
            lines.add_row(Text(name, style="bold cyan"), text)
        Console().print(Panel(lines, title=title, title_align="left", border_style="dim"))


def _named(args: list[str]) -> str | None:
    """The suite that the command line names."""
    name = None
    for number, word in enumerate(args):
        if word == "--":
            break
        if word.startswith(f"{FLAG}="):
            name = word.partition("=")[2]
        elif word == FLAG and number + 1 < len(args):
            name = args[number + 1]
    return name


def _refuse_others(
    args: list[str], suite_type: type[suites.Suite] | None, command_flags: set[str]
) -> None:
    """Raises `Misuse` on an option that only other suites have, or any if none is named."""
    flags = (
        command_flags
        if suite_type is None
        else command_flags | {field.flag for field in fields_of(suite_type)}
    )
    but = "" if suite_type is None else f", not of {suite_type.name}: leave it out, or"
    for word in args:
        flag = word.partition("=")[0]
        if not flag.startswith("--") or flag in flags:
            continue
        if having := suites.owners(flag[2:].replace("-", "_")):
            raise Misuse(
                f"{flag} is an option of suite {' and '.join(having)}{but or ':'} "
                f"add {FLAG} {having[0]}"
            )


def _open(suite_type: type[suites.Suite], command_flags: set[str]) -> Iterator[Field]:
    """The fields of a suite that the command has no option of its own for."""
    return (field for field in fields_of(suite_type) if field.flag not in command_flags)


def _parameters(suite_type: type[suites.Suite], command_flags: set[str]) -> list[Any]:
    """Options of the command line for the fields of a suite."""

    def command(**_options: Any) -> None:
        """Only its signature is used."""

    parameters = [
        Parameter(
            _PREFIX + field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=_annotation(field, suite_type.name),
        )
        for field in _open(suite_type, command_flags)
    ]
    if not parameters:
        return []
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return [
        param for param in get_command(app).params if param.name and param.name.startswith(_PREFIX)
    ]


def _annotation(field: Field, suite: str) -> Any:
    kind: Any = field.option.kind
    option = typer.Option(
        field.flag,
        help=field.option.about,
        metavar=None if kind is bool else field.option.metavar,
        rich_help_panel=f"Options of suite {suite}",
    )
    return Annotated[kind if field.default is not None else kind | None, option]
