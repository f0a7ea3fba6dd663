"""Starting is quick: `privet --help` and a party's process load no library that they do not use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from privet.cli.commands import COMMANDS, FURTHER

HELP = "from privet.cli import app; app(['--help'], standalone_mode=False)"
MODELS = {"altair", "google.protobuf", "highspy", "onnx", "onnxruntime", "vl_convert"}
SERVICE = {"aiohttp", "grpc", "prometheus_client", "ray"}
NUMERICAL = {"numpy", "privet._native"}
COMPILER = {"numpy", "privet.compiler.graph", "privet.compiler.program"}
TERMINAL = {"rich", "typer"}
COMPILED_BY = {"asyncio", "cryptography", "privet.service", "privet.suites"}
"""Those that have a model compiled, in a process of its own."""

MOST_RATIO = 30
"""CPU time of `privet --help` over that of an interpreter that does nothing; 15 was measured."""


def loaded(program: str) -> set[str]:
    """The modules that `program` leaves loaded in an interpreter of its own."""
    script = f"{program}\nimport sys; sys.stderr.write(' '.join(sys.modules))"
    command = [sys.executable, "-c", script]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stderr.split())


def cpu_seconds(*arguments: str) -> float:
    """The least CPU time of five runs of Python: other programs on this machine do not count."""
    seconds = []
    for _ in range(5):
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        seconds.append(usage.ru_utime + usage.ru_stime)
    return min(seconds)


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        ("import privet", MODELS | SERVICE | TERMINAL | NUMERICAL),
        (HELP, MODELS | SERVICE | NUMERICAL),
        ("import privet.runtime.process", MODELS | SERVICE | TERMINAL | COMPILER | {"http.client"}),
        ("import privet.service.executor.process", MODELS | SERVICE | TERMINAL),
        ("import privet.cli.infer, privet.cli.prepare", MODELS | SERVICE),
        ("import privet.cli.dealer", MODELS | SERVICE | COMPILER),
        ("import privet.stream.workers", MODELS | SERVICE | TERMINAL),
        ("import privet.service.worker", MODELS | SERVICE | TERMINAL | COMPILER | {"http.client"}),
        ("import privet.runtime.compilation", MODELS | SERVICE | TERMINAL | COMPILED_BY),
    ],
)
def test_libraries_load_where_they_are_used(program: str, unused: set[str]) -> None:
    assert loaded(program) & unused == set()


def test_errors_are_there_without_an_import_of_their_own() -> None:
    assert not loaded("import privet; privet.errors.PrivetError") & NUMERICAL


def test_a_command_that_needs_a_library_is_seen_to_load_it() -> None:
    assert "onnx" in loaded("from privet.cli.commands import COMMANDS; COMMANDS['run'].load('run')")


def test_help_starts_quickly() -> None:
    assert cpu_seconds("-c", HELP) < MOST_RATIO * cpu_seconds("-c", "pass")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_each_command_says(name: str) -> None:
    command = COMMANDS[name].load(name)
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name].summary


@pytest.mark.parametrize("name", [name for name, entry in COMMANDS.items() if entry.first])
def test_help_shows_the_options_that_most_people_need_first(name: str) -> None:
    first = COMMANDS[name].first
    panels = {param.opts[0]: param.rich_help_panel for param in COMMANDS[name].load(name).params}
    assert set(first) <= set(panels)
    assert all(panels[option] is None for option in first)
    assert FURTHER in panels.values()


def test_help_of_run_shows_about_eight_options_first() -> None:
    params = COMMANDS["run"].load("run").params
    options = [param.opts[0] for param in params if param.param_type_name == "option"]
    names = [
        param.opts[0]
        for param in params
        if param.opts[0] in options and param.rich_help_panel is None
    ]
    assert set(names) == set(COMMANDS["run"].first)
    assert len(names) <= 8 < len(options)
