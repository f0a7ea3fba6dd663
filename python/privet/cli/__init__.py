"""The command `privet`: one file per command, put together here.

Every command prints for people by default and, given `--json`, JSON on standard output for
programs; an error is then `{"error": {"type": ..., "message": ...}}`. Exit codes are listed in
`privet.cli.failures`.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from privet import __version__
from privet.cli.commands import Commands
from privet.garbage import look_seldom

# Tracebacks never show local variables: they may be keys, shares or inputs.
app = typer.Typer(
    name="privet",
    cls=Commands,
    help="Private predictions from ONNX models.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"privet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Private predictions from ONNX models: the server learns no input, the client no weight."""


def main() -> None:
    """Entry point of the command `privet`.

    SIGTERM ends a command that has no ending of its own as Ctrl-C does: its processes stop, and no
    folder with keys, inputs and weights stays behind.
    """
    was_terminated = False

    def end(_number: int, frame: FrameType | None) -> None:
        nonlocal was_terminated
        was_terminated = True
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if not callable(on_ctrl_c):  # ignored, as in what a shell runs in the background
            on_ctrl_c = signal.default_int_handler
        on_ctrl_c(signal.SIGINT, frame)

    signal.signal(signal.SIGTERM, end)
    try:
        run_command()
    except (SystemExit, KeyboardInterrupt):
        if was_terminated:
            sys.exit(128 + signal.SIGTERM)
        raise


def run_command() -> None:
    """Runs the command that `sys.argv` has, on any thread, and exits with its code."""
    look_seldom()
    as_json = "--json" in sys.argv[1:]
    try:
        sys.exit(app(standalone_mode=not as_json))
    except Exception as error:
        from privet.cli.failures import foreseen, report

        failure = foreseen(error)
        if failure is not None:
            sys.exit(report(failure, as_json=as_json))
        if as_json:
            report(error, as_json=True)
        raise
