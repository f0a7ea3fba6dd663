"""The tests that judge mutants: their names, how they are run, and what came of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

PROFILE = Path(__file__).with_name("profile.toml")


class Verdict(Enum):
    """What running one test came to."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_COMPILED = "did not compile"
    TIMED_OUT = "took too long"
    UNCLEAR = "neither passed nor failed"


@dataclass(frozen=True)
class Outcome:
    """The verdict on a test, and what its run printed."""

    verdict: Verdict
    output: str
    seconds: float


@dataclass(frozen=True)
class Test:
    """One test: `crate::suite::path` in Rust, or pytest's name for it.

    The suite `lib` is what lies in the crate's own sources. A test in Go, `ckks/folder::Function`,
    can be looked up, not run.
    """

    __test__ = False  # not one of pytest's own

    name: str

    @classmethod
    def parse(cls, name: str) -> Test:
        """Checks the form of a name."""
        if not re.fullmatch(r"(tests/[\w/]+\.py|\w+::\w+)::\w+(::\w+)*", name):
            raise ValueError(f"{name!r} names no test")
        return cls(name)

    def __str__(self) -> str:
        return self.name

    @property
    def is_python(self) -> bool:
        """Whether pytest runs it."""
        return self.name.startswith("tests/")

    @property
    def function(self) -> str:
        return self.name.rpartition("::")[2]

    def exists(self, root: Path) -> bool:
        """Whether a function of this name is where the test should be, below `root`; one in Go is
        called by its folder."""
        place = root / self.name.partition("::")[0]
        if self.is_python:
            sources = [place]
        elif self.name.startswith("ckks/"):
            sources = list(place.glob("*_test.go"))
        else:
            crate, *path = self.name.split("::")
            if len(path) < 2:
                return False
            suite = path[0]
            folder = root / "crates" / crate
            suites = folder / "tests"
            in_suite = [suites / f"{suite}.rs", *(suites / suite).rglob("*.rs")]
            sources = list((folder / "src").rglob("*.rs")) if suite == "lib" else in_suite
        definition = re.compile(
            rf"^\s*(async def|def|fn|func) {re.escape(self.function)}\(", re.MULTILINE
        )
        return any(path.is_file() and definition.search(path.read_text()) for path in sources)

    def command(self) -> list[str]:
        """What runs it alone."""
        if self.is_python:
            quiet = ["-q", "--noconftest", "-p", "no:cacheprovider"]
            return [sys.executable, "-m", "pytest", *quiet, self.name]
        crate, suite, path = self.name.split("::", 2)
        cargo = [os.environ.get("CARGO", "cargo"), "test", "--profile", "mutation"]
        cargo += ["--config", str(PROFILE), *target(crate, suite)]
        return [*cargo, "--", "--exact", path]

    def run(self, tree: Path, build: Path, limit_seconds: float) -> Outcome:
        """Builds and runs it in `tree`, with cargo's outputs in `build`."""
        start = time.monotonic()
        process = subprocess.Popen(
            self.command(),
            cwd=tree,
            env=self._environment(tree, build),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_seconds)
            verdict = self.verdict(process.returncode, output)
        except subprocess.TimeoutExpired:
            verdict = Verdict.TIMED_OUT
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
        return Outcome(verdict, output, time.monotonic() - start)

    def _environment(self, tree: Path, build: Path) -> dict[str, str]:
        return os.environ | {
            "CARGO_TARGET_DIR": str(build),
            "CARGO_INCREMENTAL": "1",
            "CARGO_TERM_COLOR": "never",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(tree / "python"),
        }

    def verdict(self, status: int, output: str) -> Verdict:
        """What an exit status and the output of its command say."""
        if "could not compile" in output:
            return Verdict.NOT_COMPILED
        if self.is_python:
            passed, failed = r"^1 passed", r"^1 failed"
        else:
            path = self.name.split("::", 2)[2]
            passed, failed = r"^test result: ok\. 1 passed", rf"^    {re.escape(path)}$"
        if status == 0 and re.search(passed, output, re.MULTILINE):
            return Verdict.PASSED
        if status != 0 and re.search(failed, output, re.MULTILINE):
            return Verdict.FAILED
        return Verdict.UNCLEAR


def target(crate: str, suite: str) -> list[str]:
    """What has cargo build a suite of a crate's tests alone."""
    return ["-p", f"privet-{crate}", *(["--lib"] if suite == "lib" else ["--test", suite])]
