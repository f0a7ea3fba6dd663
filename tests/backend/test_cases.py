"""The backend cases through the fixed-point executor: exact counts, so that a change shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.backend.cases import (
    EXPECTED,
    KINDS,
    Array,
    Result,
    Verdict,
    cases,
    counts,
    fixed_point,
    gives_floats,
    run,
    table,
)

from privet.compiler.compile import Compiled

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "operators.md"


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [run(case) for case in cases()]


def test_no_case_fails(results: list[Result]) -> None:
    assert [result for result in results if result.verdict is Verdict.FAILED] == []


def test_as_many_cases_pass_as_before(results: list[Result], figures: list[str]) -> None:
    tally = counts(results)
    for kind, verdicts in tally.items():
        text = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        figures.append(f"onnx backend cases {kind}, fixed-point executor: {text}")
    assert tally == EXPECTED


def test_the_page_lists_what_does_not_run(results: list[Result]) -> None:
    assert table(results) in PAGE.read_text(encoding="utf-8")


def test_almost_all_cases_whose_results_are_floats_pass(results: list[Result]) -> None:
    float_cases = [gives_floats(case) for case in cases()]
    passes = [result.verdict is Verdict.PASSED for result in results]
    assert sum(float_cases) == 131
    assert sum(np.logical_and(float_cases, passes)) == 129


def test_every_unsupported_case_says_why(results: list[Result]) -> None:
    unsupported = [result for result in results if result.verdict is Verdict.UNSUPPORTED]
    assert all(result.reason for result in unsupported)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_executor_fails_every_case_it_runs(kind: str) -> None:
    """The comparison can fail: an executor whose answers are off by 1 passes nothing."""

    def wrong(compiled: Compiled, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return {name: array + 1 for name, array in fixed_point(compiled, inputs).items()}

    assert not any(run(case, wrong).verdict is Verdict.PASSED for case in cases(kind))
