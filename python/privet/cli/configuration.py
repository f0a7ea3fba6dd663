"""Options of a command from a file and from the environment: `--config FILE`.

The file is TOML with a table for each command that takes one (`[serve]`, `[gateway]`, `[dealer]`).
Its names are those of the command's options with `_` for `-`, and of its argument, so that the
command itself is the schema. An environment variable such as `PRIVET_SERVE_LISTEN` goes before the
file, an option before both.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperOption

from privet.errors import Misuse

APART = ("config", "check", "help")
"""Options that a file cannot set."""

TABLES = ("serve", "gateway", "dealer")
"""Commands that take such a file."""


def _load(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        context.default_map = defaults(context.command, str(context.info_name), path)
    return path


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        help="File whose table of this command's name has values for its options; the environment "
        "(PRIVET_COMMAND_OPTION) goes before it, and options before both.",
        is_eager=True,
        callback=_load,
        exists=True,
        dir_okay=False,
    ),
]


_LINKS = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)")
"""What Kubernetes sets, below the name of a Service, in every pod."""


def take_environment(command: Any, name: str) -> None:
    """Has a command take options from variables with the names that they have in a file. Options
    that may be repeated are separated by semicolons, as names of certificates have spaces. What is
    wrong with a value is said with its place, and an unknown variable is refused."""
    prefix = f"PRIVET_{name.upper()}_"
    parameters = {}
    for parameter in command.params:
        parameter.show_envvar = False
        if (word := _name(parameter)) in APART:
            continue
        parameters[f"{prefix}{word.upper()}"] = parameter
        parameter.envvar = f"{prefix}{word.upper()}"
        if parameter.multiple:
            parameter.split_envvar_value = _parts
    parse_args = command.parse_args

    def parse_with_places(context: typer.Context, words: list[str]) -> list[str]:
        try:
            remaining = list(parse_args(context, words))
        except typer.BadParameter as error:
            error.message += _place(context, error.param)
            raise
        for variable in () if context.resilient_parsing else os.environ:
            word = variable.removeprefix(prefix)
            if word != variable and variable not in parameters and not _LINKS.fullmatch(word):
                raise Misuse(
                    f"the variable {variable} is not known; known are {', '.join(parameters)}"
                )
        return remaining

    command.parse_args = parse_with_places


def _parts(text: str) -> list[str]:
    return [part for part in map(str.strip, text.split(";")) if part]


def _place(context: typer.Context, parameter: Any) -> str:
    """Where a value was given, if not on the command line."""
    source = None if parameter is None else context.get_parameter_source(parameter.name)
    match source and source.name:
        case "ENVIRONMENT":
            return f" (the variable {parameter.envvar})"
        case "DEFAULT_MAP":
            return f" (the file {context.params['_config']}, [{context.info_name}])"
    return ""


def defaults(command: Any, name: str, path: Path) -> dict[str, Any]:
    """The values that the file `path` has for a command, by the names of its parameters. Raises
    `Misuse` if it is no TOML, has a name that the command does not know, or a value of a wrong
    kind; the command checks values further as it does those of options."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Misuse(f"{path} cannot be read as TOML: {error}") from error
    if unknown := [table for table in document if table not in TABLES]:
        tables = ", ".join(f"[{table}]" for table in TABLES)
        raise Misuse(f"{path}: {', '.join(unknown)} is not known; known are the tables {tables}")
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise Misuse(f"{path}: {name} is no table: write [{name}]")
    parameters = {_name(parameter): parameter for parameter in command.params}
    parameters = {word: parameter for word, parameter in parameters.items() if word not in APART}
    for word, value in table.items():
        if word not in parameters:
            raise Misuse(
                f"{path}, [{name}]: {word} is not known; known are {', '.join(parameters)}"
            )
        types = _kind(parameters[word])
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            raise Misuse(f"{path}, [{name}]: {word} is {value!r}; it needs to be {_TITLES[types]}")
    return {str(parameters[word].name): value for word, value in table.items()}


_TITLES: dict[Any, str] = {
    bool: "true or false",
    list: "a list",
    str: "a text in quotes",
    int: "a whole number",
    (int, float): "a number",
}


def _name(parameter: Any) -> str:
    options = parameter.opts if isinstance(parameter, TyperOption) else [str(parameter.name)]
    return max(options, key=len).lstrip("-").replace("-", "_")


def _kind(parameter: Any) -> Any:
    """How TOML writes a value of the parameter."""
    if parameter.multiple or parameter.nargs != 1:
        return list
    annotation = parameter.type_descriptor.annotation
    return {bool: bool, int: int, float: (int, float)}.get(annotation, str)
