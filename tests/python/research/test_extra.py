"""Without extras a client works, and commands that need one say what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from privet.cli.commands import COMMANDS, EXTRAS

HIDE = f"import sys; sys.modules.update(dict.fromkeys({[*EXTRAS, 'google.protobuf']}))\n"
CALL = "from privet.cli import main; sys.argv[0] = 'privet'; main()"
NEEDS = dict.fromkeys(("generate", "inspect", "papers", "plan", "run", "study", "zoo"), "onnx") | {
    "simulate": "altair"
}
"""Commands whose modules need a package, and the first that they miss."""
CORE = [name for name in COMMANDS if name not in NEEDS]


def call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `program` in an interpreter that finds none of the extra's packages."""
    command = [sys.executable, "-c", HIDE + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("name", CORE)
def test_commands_of_the_core_work(name: str) -> None:
    assert call(CALL, name, "--help").returncode == 0


@pytest.mark.parametrize("name", NEEDS)
def test_others_say_what_to_install(name: str) -> None:
    run = call(CALL, name, "--help")
    assert run.returncode == 2
    package = NEEDS[name]
    assert f"this needs the package {package}" in " ".join(run.stderr.split())
    assert f"pip install 'privet[{EXTRAS[package]}]'" in " ".join(run.stderr.split())


def test_a_command_that_reads_a_model_says_what_to_install() -> None:
    run = call(CALL, "run", "zoo/models/digits-cnn.onnx")
    assert run.returncode == 2
    assert "pip install 'privet[serve]'" in " ".join(run.stderr.split())


def test_one_server_is_allocated_without_a_solver() -> None:
    program = """
from privet.stream.allocation import StageServer, Stage, allocate
stages = [Stage("a", "model", 1.0), Stage("b", "model", 2.0)]
assert allocate(stages, [StageServer("one", 2)]).threads == (2, 2)
allocate(stages, [StageServer("one", 2), StageServer("two", 2)])
"""
    run = call(program)
    assert "privet.errors.Misuse: stages on several servers" in run.stderr
    assert "pip install 'privet[research]'" in run.stderr
