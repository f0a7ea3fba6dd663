"""The backend cases through suite `gmw`: a server and a client over TLS for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from tests.backend.cases import EXPECTED, Array, Result, Verdict, cases, counts, run

from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.runtime import Client

BITS = 37
SCALE = 12
QUICK_ELEMENTS = 100_000
"""A case with fewer values in its program than this takes a fraction of a second."""

QUICK = {
    "simple": {"passed": 13, "failed": 0, "unsupported": 10},
    "pytorch-operator": {"passed": 33, "failed": 0, "unsupported": 2},
    "pytorch-converted": {"passed": 80, "failed": 0, "unsupported": 2},
}
ALL = EXPECTED
"""What the executor computes."""


class TooLarge(Exception):
    """The case is left to the slow run."""


def _results(session: Callable[..., Client], most: float) -> list[Result]:
    def private(compiled: Compiled, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        if sum(_elements(value.shape) for value in compiled.program.values) > most:
            raise TooLarge
        exact = execute(compiled.program, compiled.weights, inputs).outputs
        result = session(compiled, "log").infer(inputs)
        assert set(result.outputs) == set(exact)
        return result.outputs

    results = []
    for case in cases():
        try:
            results.append(run(case, private, bits=BITS, scale=SCALE))
        except TooLarge:
            results.append(Result(case.kind, case.name, Verdict.UNSUPPORTED, "slow"))
    return results


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _check(results: list[Result], expected: dict[str, dict[str, int]], figures: list[str]) -> None:
    slow = sum(result.reason == "slow" for result in results)
    total = {
        verdict.value: sum(result.verdict is verdict for result in results) for verdict in Verdict
    }
    figures.append(
        f"onnx backend cases through gmw: {total['passed']} passed, {total['failed']} failed, "
        f"{total['unsupported'] - slow} unsupported, {slow} left to the slow run"
    )
    assert [result for result in results if result.verdict is Verdict.FAILED] == []
    assert counts(results) == expected


def test_quick_cases(session: Callable[..., Client], figures: list[str]) -> None:
    _check(_results(session, QUICK_ELEMENTS), QUICK, figures)


@pytest.mark.slow
def test_all_cases(session: Callable[..., Client], figures: list[str]) -> None:
    _check(_results(session, float("inf")), ALL, figures)
