"""How an error leaves the command line: a message for people, an object for programs, an exit code.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | the machine: a file that cannot be read or written, and anything not foreseen |
| 2 | the call: an option, an argument or an input is wrong |
| 3 | the model: it cannot run privately as it is |
| 4 | the other party: unreachable, misbehaving, or without fitting material |
"""

from __future__ import annotations

import dataclasses
import errno
import json
from typing import Any

import typer
from rich.text import Text
from typer.exceptions import TyperException

from privet.cli.commands import not_installed
from privet.cli.console import Console
from privet.errors import InputError, Misuse, ModelError, PeerError, PrivetError

_ADVICE: dict[int | None, str] = {
    errno.EADDRINUSE: "another program listens there; end it, or give another address",
    errno.EADDRNOTAVAIL: "this machine has no such address; 0.0.0.0 stands for all that it has",
}

EXIT_CODES: tuple[tuple[type[PrivetError], int], ...] = (
    (InputError, 2),
    (Misuse, 2),
    (ModelError, 3),
    (PeerError, 4),
)


def exit_code(error: Exception) -> int:
    """The code with which a command that met `error` ends."""
    return next((code for family, code in EXIT_CODES if isinstance(error, family)), 1)


def foreseen(error: Exception) -> Exception | None:
    """What to tell of an error without a traceback; None for a bug.

    Errors of the command line itself, such as an unknown option, come here only with `--json`.
    """
    if isinstance(error, ModuleNotFoundError):
        return not_installed(error)
    if isinstance(error, (PrivetError, OSError)):
        return error
    if isinstance(error, TyperException):
        return Misuse(error.format_message())
    return None


def describe(error: Exception) -> dict[str, Any]:
    """`error` as an object for programs: its type, its message and its public fields."""
    fields = {name: _plain(value) for name, value in vars(error).items() if name[0] != "_"}
    return {"type": type(error).__name__, "message": str(error), **fields}


def report(error: Exception, *, as_json: bool) -> int:
    """Prints `error` (JSON on standard output, words on standard error); returns the exit code."""
    if as_json:
        typer.echo(json.dumps({"error": describe(error)}, default=str))
    else:
        line = Text.assemble(("error: ", "bold red"), _words(error))
        Console(stderr=True).print(line, soft_wrap=True)
    return exit_code(error)


def _words(error: Exception) -> str:
    """The message for people; the system's own says nothing of what to do about an address."""
    advice = _ADVICE.get(error.errno) if isinstance(error, OSError) else None
    return f"{error}: {advice}" if advice else str(error)


def _plain(value: Any) -> Any:
    """`value` with dataclasses opened, at any depth of tuples and lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
