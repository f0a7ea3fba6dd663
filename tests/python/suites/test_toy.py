"""A suite is one module and a line in the registry: here is one, which computes in the clear."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

import privet
from privet import suites
from privet._native import Link
from privet.cli import app
from privet.compiler.executor import execute
from privet.compiler.program import Program
from privet.suites import Job, LocalJob, LocalResult, Mode, Planned, Precision, Suite, Trust
from privet.suites import registry as _registry
from privet.suites.costs import NOTHING
from privet.suites.options import number
from privet.suites.security import Security

DIGITS = Path(__file__).parents[3] / "zoo" / "models" / "digits-cnn.onnx"


@dataclass(frozen=True, kw_only=True)
class Toy(Suite):
    """The server is told everything."""

    times: int = number(1, 1, 9, "How often to compute it.", "the number of times")

    name: ClassVar[str] = "toy"
    about: ClassVar[str] = "in the clear: no protection at all"
    precision: ClassVar[Precision] = Precision(bits=37, scale=12, weight_scale=12)

    @property
    def trust(self) -> Trust:
        return Trust("nobody", "semi-honest parties", "everything", "nothing is hidden")

    @property
    def mode(self) -> Mode:
        return Mode("stream")

    @property
    def label(self) -> str:
        return f"toy {self.times}"

    @classmethod
    def labelled(cls) -> Sequence[Toy]:
        return [cls(times=times) for times in range(1, 10)]

    @property
    def jobs(self) -> tuple[Job, ...]:
        return (Job("infer", "prediction", ("client", "server")),)

    def plan(self, program: Program, link: Link | None = None) -> Planned:
        security = Security((), 0.0, (), None, None, None, "", None, ())
        return Planned(self, {"plan": {"times": self.times}}, lambda: security, ("In the clear.",))

    def run_local(self, job: LocalJob) -> LocalResult:
        result = execute(job.compiled.program, job.compiled.weights, job.inputs)
        integers = list(result.integers)
        return LocalResult(self, integers, NOTHING, (), {}, account=("In the clear.",))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The suite is there for these tests alone."""
    before = dict(_registry._SUITES)
    suites.register(Toy)
    yield
    _registry._SUITES.clear()
    _registry._SUITES.update(before)


def test_the_toy_suite_runs_by_its_name_and_with_options() -> None:
    assert privet.run(DIGITS, suite="toy").max_fixed_point_error == 0
    result = privet.run(DIGITS, suite=Toy(times=2), input_range=(0, 1))
    assert result.config == suites.from_label("toy 2") == suites.from_json(Toy(times=2).to_json())
    assert (result.trust, result.account) == ("nothing is hidden", ("In the clear.",))


@pytest.mark.parametrize("command", ["run", "inspect"])
def test_commands_know_its_options(command: str) -> None:
    help_result = CliRunner().invoke(
        app, [command, "--suite", "toy", "--help"], env={"COLUMNS": "200"}
    )
    assert "How often to compute it." in help_result.output
    result = CliRunner().invoke(
        app, [command, str(DIGITS), "--suite", "toy", "--times", "3", "--json"]
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["suite"] == "toy"
    assert report["trust"] == "nothing is hidden"
