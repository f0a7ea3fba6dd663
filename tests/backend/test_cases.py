"""The backend cases through the fixed-point executor: exact counts, so that a change shows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.backend.cases import (
    KINDS,
    Array,
    Result,
    Verdict,
    cases,
    counts,
    fixed_point,
    run,
)

from privet.compiler.compile import Compiled

EXPECTED = {
    "simple": {"passed": 3, "failed": 0, "unsupported": 20},
    "pytorch-operator": {"passed": 26, "failed": 0, "unsupported": 9},
    "pytorch-converted": {"passed": 82, "failed": 0, "unsupported": 0},
}


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [run(case) for case in cases()]


def test_no_case_fails(results: list[Result]) -> None:
    assert [result for result in results if result.verdict is Verdict.FAILED] == []


def test_as_many_cases_pass_as_before(results: list[Result], figures: list[str]) -> None:
    found = counts(results)
    for kind, verdicts in found.items():
        listed = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        figures.append(f"onnx backend cases {kind}, fixed-point executor: {listed}")
    assert found == EXPECTED


def test_every_unsupported_case_says_why(results: list[Result]) -> None:
    unsupported = [result for result in results if result.verdict is Verdict.UNSUPPORTED]
    assert all(result.reason for result in unsupported)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_executor_fails_every_case_it_runs(kind: str) -> None:
    """The comparison can fail: an executor whose answers are off by 1 passes nothing."""

    def wrong(compiled: Compiled, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return {name: array + 1 for name, array in fixed_point(compiled, inputs).items()}

    assert not any(run(case, wrong).verdict is Verdict.PASSED for case in cases(kind))
