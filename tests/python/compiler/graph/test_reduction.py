"""Reductions, CumSum and ArgMax against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.python.compiler.graph.single import check, model, node, single

WITHOUT_SIGN = ("ReduceL1", "ReduceL2", "ReduceSumSquare")
OF_POSITIVE = ("ReduceLogSum", "ReduceLogSumExp", "ReduceProd")


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("axes", [None, [2, 3], [1], [-1], [0, 2], [-2, 1]])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [11, 18])
def test_reduce(operator: str, axes: list[int] | None, keepdims: int, opset: int) -> None:
    shape = (2, 3, 4, 5)
    by_input = opset >= 18 or (operator == "ReduceSum" and opset >= 13)
    if axes is None:
        check(single(operator, [shape], opset=opset, keepdims=keepdims))
    elif by_input:
        check(single(operator, [shape, np.array(axes)], opset=opset, keepdims=keepdims))
    else:
        check(single(operator, [shape], opset=opset, keepdims=keepdims, axes=axes))


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin", *WITHOUT_SIGN])
@pytest.mark.parametrize("axes", [None, [-1], [0, 2]])
def test_other_reductions(operator: str, axes: list[int] | None) -> None:
    operands = [(2, 3, 4), *([] if axes is None else [np.array(axes)])]
    check(single(operator, operands, opset=18, keepdims=0), units=64, smooth="piecewise")


@pytest.mark.parametrize("operator", OF_POSITIVE)
def test_reductions_of_few_numbers(operator: str) -> None:
    x = np.random.default_rng(4).uniform(0.5, 1.5, (2, 5)).astype(np.float32)
    check(
        single(operator, [(2, 5), np.array([1])], opset=18), {"x0": x}, units=64, smooth="piecewise"
    )


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("count", [1025, 3001])
def test_more_elements_than_a_window_has(operator: str, count: int) -> None:
    check(single(operator, [(2, count), np.array([1])], opset=18), units=64)


def test_the_largest_of_many_is_what_all_are_compared_with() -> None:
    """In more elements than fold evenly the largest is of truncated ones, and so is what they are
    less: else it would be below itself, and its exponential function that of a large number."""
    rng = np.random.default_rng(6)
    weights = rng.uniform(-1, 1, (4, 1025)).astype(np.float32)
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("ReduceLogSumExp", ["h"], ["y"], axes=[1]),
    ]
    proto = model(nodes, {"x": (40, 4)}, ["y"], {"w": weights}, opset=17)
    check(proto, units=256, smooth="piecewise")


@pytest.mark.parametrize("attributes", [{}, {"exclusive": 1}, {"reverse": 1}])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cum_sum(attributes: dict[str, Any], axis: int) -> None:
    check(single("CumSum", [(2, 4, 3), np.array(axis)], **attributes))
    check(single("CumSum", [(2, 4, 3), np.array(axis)], exclusive=1, reverse=1))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceMax", *WITHOUT_SIGN, *OF_POSITIVE])
def test_reduce_over_nothing(operator: str, keepdims: int) -> None:
    """What goes before or after the sum is still computed: ReduceSumSquare gives squares."""
    proto = single(operator, [(2, 3)], noop_with_empty_axes=1, keepdims=keepdims)
    x = np.random.default_rng(0).uniform(0.5, 2, (2, 3)).astype(np.float32)
    sample = -x if operator in WITHOUT_SIGN else x
    check(proto, {"x0": sample}, units=64, smooth="piecewise")


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_arg_max(axis: int, keepdims: int) -> None:
    check(single("ArgMax", [(4, 5, 6)], axis=axis, keepdims=keepdims))
    check(single("ArgMin", [(4, 5, 6)], axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("select_last", [0, 1])
def test_arg_max_of_equals(select_last: int) -> None:
    proto = single("ArgMax", [(2, 4)], axis=1, select_last_index=select_last)
    x = np.array([[1, 3, 3, 0], [2, 2, 2, 2]], np.float32)
    check(proto, {"x0": x})
