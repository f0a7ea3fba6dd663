"""Slice, Split and Gather against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.single import check, model, node, single

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel

INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(-7, 7),
    st.one_of(st.integers(-7, 7), st.sampled_from([INT64_MAX, INT64_MIN])),
    st.sampled_from([-3, -2, -1, 1, 2, 3]),
    st.sampled_from([0, 1, -1]),
)
def test_slice(start: int, end: int, step: int, axis: int) -> None:
    size = (5, 6)[axis]
    assume(len(range(size)[slice(start, end, step)]) > 0)
    bounds = [np.array([entry]) for entry in (start, end, axis, step)]
    check(single("Slice", [(5, 6), *bounds]))


@pytest.mark.parametrize("operator", ["IsNaN", "IsInf"])
def test_a_private_number_is_finite(operator: str) -> None:
    """So `torch.nan_to_num` leaves it as it is."""
    nodes = [
        node(operator, ["x"], ["is"]),
        node("Greater", ["x", "zero"], ["is_positive"]),
        node("And", ["is", "is_positive"], ["is_both"]),
        node("Where", ["is_both", "largest", "x"], ["y"]),
    ]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"zero": np.float32(0), "largest": np.float32(3e38)}))


def test_slice_as_attributes() -> None:
    check(single("Slice", [(5, 6)], opset=9, starts=[1, -4], ends=[100, -1], axes=[0, 1]))
    check(single("Slice", [(5, 6)], opset=7, starts=[2], ends=[4]))


def test_a_slice_that_keeps_nothing_is_refused() -> None:
    proto = single("Slice", [(5,), np.array([3]), np.array([3])])
    with pytest.raises(UnsupportedModel, match="keeps no element"):
        import_model(proto, name="m")


def test_split() -> None:
    check(single("Split", [(6, 2)], outputs=3, num_outputs=3))
    check(single("Split", [(7, 2)], outputs=3, num_outputs=3))
    check(single("Split", [(6, 2), np.array([1, 5])], outputs=2))
    check(single("Split", [(6, 2)], outputs=2, opset=11, split=[2, 4]))
    check(single("Split", [(2, 6)], outputs=2, opset=11, axis=-1))


@pytest.mark.parametrize("indices", [0, -1, [2], [0, 1, 2], [4, 2, 0], [[1, 2], [3, 4]]])
@pytest.mark.parametrize("axis", [0, 1])
def test_gather(indices: object, axis: int) -> None:
    check(single("Gather", [(5, 5), np.array(indices)], axis=axis))


@pytest.mark.parametrize("indices", [[0, 1, 3], [2, 2], [4, 0, 2, 2, 1], [[0, 3], [1, -1]]])
def test_gather_in_any_order(indices: Any) -> None:
    check(single("Gather", [(5, 5), np.array(indices)], axis=1))


def test_gather_beyond_the_tensor_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="indices"):
        import_model(single("Gather", [(5, 5), np.array([7])]), name="m")
