"""Which commands there are: a table that `privet --help` is made from.

Numerical libraries, ONNX and the web take a second to load. So a command's module is imported when
that command is called, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from privet.errors import Misuse

FURTHER = "For special cases"


EXTRAS = {
    "altair": "research",
    "google": "gateway",
    "grpc": "gateway",
    "highspy": "research",
    "onnx": "serve",
    "onnxruntime": "serve",
    "prometheus_client": "serve",
    "vl_convert": "research",
}
"""Modules that only some commands import, and the extra, as in `privet[serve]`, with each."""


def not_installed(error: ModuleNotFoundError) -> Misuse | None:
    """What to say of a module that is not there; None if it belongs to no extra."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return Misuse(
        f"this needs the package {module}, which is not installed: "
        f"pip install 'privet[{EXTRAS[module]}]'"
    )


@dataclass(frozen=True)
class CommandEntry:
    """A command, or a group of commands: the function or the `Typer` of `place`, `module.name`.

    `summary` is the first sentence of its help; a test compares the two. `first` are the options
    that most people need: if there are any, help shows the others apart.
    """

    place: str
    summary: str
    first: tuple[str, ...] = ()

    def load(self, name: str) -> Any:
        """The command itself, from its module."""
        module, item_name = self.place.split(".")
        item = getattr(import_module(f"privet.cli.{module}"), item_name)
        table = typer.Typer()
        if isinstance(item, typer.Typer):
            table.add_typer(item, name=name)
        else:
            table.command(name, cls=_command_class(item))(item)
        command = typer.main.get_group(table).commands[name]
        if any(option.name == "_config" for option in command.params):
            from privet.cli.configuration import take_environment

            take_environment(command, name)
        if self.first:
            for option in command.params:
                if isinstance(option, TyperOption) and option.opts[0] not in self.first:
                    option.rich_help_panel = option.rich_help_panel or FURTHER
        return command


def _command_class(command: Callable[..., None]) -> type[TyperCommand] | None:
    """What a command is made with: one that has an argument `suite` gets the suite's options."""
    parameter = signature(command).parameters.get("suite")
    if parameter is None or parameter.annotation not in ("Suite", "AnySuite"):
        return None
    from privet.cli.suite_options import SuiteCommand

    return SuiteCommand


COMMANDS = {
    "run": CommandEntry(
        "run.run",
        "Run a model privately between two local processes and compare it with the plaintext "
        "model.",
        first=(
            *("--input", "--suite", "--calibration", "--input-range", "--batch", "--link"),
            *("--modes", "--json"),
        ),
    ),
    "generate": CommandEntry(
        "generate.generate",
        "Generate tokens privately, between two local processes, with keys and values kept shared.",
    ),
    "serve": CommandEntry(
        "serve.serve",
        "Serve a model, or a repository of models, to many clients, on one machine or several.",
        first=(
            *("--keys", "--listen", "--state", "--dealer", "--accept", "--answers-per-hour"),
            *("--cores", "--memory", "--config", "--check", "--json"),
        ),
    ),
    "infer": CommandEntry(
        "infer.infer",
        "Get a private prediction from a service; the input stays on this host.",
        first=(
            *("--keys", "--input", "--suite", "--state", "--program-hash", "--when-dry"),
            *("--labels", "--layers", "--json"),
        ),
    ),
    "prepare": CommandEntry(
        "prepare.prepare",
        "Make material ahead, for inferences that then take milliseconds.",
        first=(
            *("--keys", "--count", "--keep", "--suite", "--state", "--program-hash"),
            *("--max-disk", "--status", "--json"),
        ),
    ),
    "gateway": CommandEntry(
        "gateway.gateway",
        "Answer the Open Inference Protocol here, by private inference at a service.",
    ),
    "audit-log": CommandEntry(
        "audit_log.audit_log",
        "Check that nobody has changed the audit log of a service.",
    ),
    "top": CommandEntry(
        "top.top", "Watch a service: queues, jobs on each core, stock and machines."
    ),
    "drain": CommandEntry(
        "drain.drain",
        "Take a machine out of a service: what it has begun ends, the others go on.",
    ),
    "dealer": CommandEntry(
        "dealer.dealer",
        "Deal material to clients and servers; run it where neither of them has a say.",
    ),
    "inspect": CommandEntry(
        "inspect.inspect",
        "Show operators, shapes and widths, what is supported, and the material that it will take.",
    ),
    "plan": CommandEntry(
        "plan.plan",
        "Tell which suite and settings suit a model, what rules the others out, and what it costs.",
    ),
    "doctor": CommandEntry(
        "doctor.doctor",
        "Tell what this machine has for private inference, and what to do about what it lacks.",
    ),
    "keys": CommandEntry(
        "keys.keys",
        "Make a private certificate authority and a certificate for each party; or one for another "
        "client.",
    ),
    "compile": CommandEntry(
        "compile.compile",
        "Compile a model into a public half, for everybody, and a private one with its weights.",
    ),
    "cohort": CommandEntry(
        "cohort.app",
        "Take part in predictions under a key whose parts the members of a cohort keep.",
    ),
    "simulate": CommandEntry(
        "simulate.simulate",
        "Simulate the service on a machine that you need not have, and compare policies.",
    ),
    "pipeline": CommandEntry(
        "pipeline.app",
        "Run a model as a pipeline over the servers of two organisations.",
    ),
    "papers": CommandEntry("papers.app", "The papers' tables and figures, run here."),
    "study": CommandEntry("study.app", "What suites cost: measure, predict, report."),
    "zoo": CommandEntry("zoo.app", "The benchmark models, built as ONNX files."),
}


class Commands(TyperGroup):
    """The commands of the table: listed from their summaries, loaded when one is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in COMMANDS.items():
            self.add_command(TyperCommand(name, help=entry.summary), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The called command, loaded; the names and suggestions of the table decide which."""
        name, _, arguments = super().resolve_command(ctx, args)
        return name, COMMANDS[name].load(name) if name else None, arguments
