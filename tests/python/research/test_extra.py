"""Without the extra `privet[research]` the core works, and research says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from privet.cli.commands import COMMANDS

HIDE = "import sys; sys.modules.update(dict.fromkeys(['altair', 'highspy', 'vl_convert']))\n"
CALL = "from privet.cli import main; sys.argv[0] = 'privet'; main()"
RESEARCH = [name for name, entry in COMMANDS.items() if entry.extra == "research"]
CORE = [name for name, entry in COMMANDS.items() if entry.extra is None]


def call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `program` in an interpreter that finds none of the extra's packages."""
    command = [sys.executable, "-c", HIDE + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("name", CORE)
def test_commands_of_the_core_work(name: str) -> None:
    assert call(CALL, name, "--help").returncode == 0


@pytest.mark.parametrize("name", RESEARCH)
def test_commands_of_research_say_what_to_install(name: str) -> None:
    told = call(CALL, name, "--help")
    assert told.returncode == 2
    assert f"`privet {name}` needs the package altair" in " ".join(told.stderr.split())
    assert "pip install 'privet[research]'" in " ".join(told.stderr.split())


def test_one_server_is_allocated_without_a_solver() -> None:
    program = """
from privet.stream.allocation import Server, Stage, allocate
stages = [Stage("a", "model", 1.0), Stage("b", "model", 2.0)]
assert allocate(stages, [Server("one", 2)]).threads == (2, 2)
allocate(stages, [Server("one", 2), Server("two", 2)])
"""
    told = call(program)
    assert "privet.errors.Misuse: stages on several servers" in told.stderr
    assert "pip install 'privet[research]'" in told.stderr
