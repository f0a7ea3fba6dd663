"""Attacks that have worked: the test that keeps each out, and one in which it still works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..mutation.tests import Test, target

LIST = Path(__file__).with_name("attacks.toml")


@dataclass(frozen=True)
class Attack:
    """Who gets what how; `tests` hold it off, and `controls` are those in which it succeeds."""

    id: str
    adversary: str
    attack: str
    tests: tuple[str, ...]
    controls: tuple[str, ...]


def load() -> list[Attack]:
    rows = tomllib.loads(LIST.read_text())["attack"]
    return [
        Attack(**{**row, "tests": tuple(row["tests"]), "controls": tuple(row["controls"])})
        for row in rows
    ]


def faults(attacks: Sequence[Attack], root: Path) -> Iterator[str]:
    """What is wrong with the list: doubled ids, no control, tests that are nowhere."""
    ids: set[str] = set()
    for attack in attacks:
        if attack.id in ids:
            yield f"{attack.id}: there are two of this name"
        ids.add(attack.id)
        if not attack.tests or not attack.controls:
            yield f"{attack.id}: it needs a test and a control"
        for name in (*attack.tests, *attack.controls):
            if not Test(name).exists(root):
                yield f"{attack.id}: there is no test {name}"


def commands(names: Sequence[str]) -> Iterator[tuple[list[str], str, set[str]]]:
    """Commands that run these tests, each with the folder it runs in and the tests that it runs.

    A name is `tests/file.py::function`, `ckks/folder::Function`, or `crate::suite::path`, where the
    suite `lib` is what lies in the crate's own sources.
    """
    python = [name for name in names if name.startswith("tests/")]
    if python:
        yield [sys.executable, "-m", "pytest", "-q", *python], ".", set(python)
    places: dict[str, list[str]] = {}
    for name in names:
        if name not in python:
            depth = 1 if name.startswith("ckks/") else 2
            places.setdefault("::".join(name.split("::")[:depth]), []).append(name)
    cargo = os.environ.get("CARGO", "cargo")
    for place, tests in places.items():
        if place.startswith("ckks/"):
            pattern = "|".join(name.rpartition("::")[2] for name in tests)
            command = [os.environ.get("GO", "go"), "test", "-count=1", "-run", f"^({pattern})$"]
            yield [*command, "./" + place.removeprefix("ckks/")], "ckks", set(tests)
            continue
        crate, suite = place.split("::")
        build = ["test", "--release", "--locked", *target(crate, suite)]
        paths = [name.split("::", 2)[2] for name in tests]
        yield [cargo, *build, "--", "--exact", *paths], ".", set(tests)


def ran(output: str) -> int:
    """How many tests a runner says have passed."""
    rust = re.findall(r"^test result: ok\. (\d+) passed", output, re.MULTILINE)
    python = re.findall(r"^(?:=+ )?(\d+) passed", output, re.MULTILINE)
    go_count = len(re.findall(r"^--- PASS", output, re.MULTILINE))
    return sum(map(int, rust)) + sum(map(int, python)) + go_count


def run(names: Sequence[str], root: Path) -> Iterator[tuple[str, bool, str]]:
    """Runs tests: for each command its name, whether all tests ran and passed, and the output."""
    for command, folder, tests in commands(sorted(set(names))):
        if command[1] == "test" and folder == "ckks":
            command.insert(2, "-v")
        process = subprocess.run(
            command, cwd=root / folder, capture_output=True, text=True, check=False
        )
        output = process.stdout + process.stderr
        # A parametrised test counts once for each of its cases.
        is_ok = process.returncode == 0 and ran(output) >= len(tests)
        yield f"{len(tests)} tests: {sorted(tests)[0]} ...", is_ok, output
