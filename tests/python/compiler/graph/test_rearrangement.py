"""Transpose, Concat, Expand, Tile, Pad and the moves between channels and space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.single import check, constant, model, node, single

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel


@pytest.mark.parametrize("perm", [None, [0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_transpose(perm: list[int] | None) -> None:
    attributes: dict[str, Any] = {} if perm is None else {"perm": perm}
    check(single("Transpose", [(2, 3, 4)], **attributes))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis: int) -> None:
    check(single("Concat", [(2, 3, 4), (2, 3, 4)], axis=axis))
    check(single("Concat", [(2, 3, 4), constant(2, 3, 4)], axis=axis))
    check(single("Concat", [(2, 3, 4)], axis=axis))


def test_concat_of_values_at_different_scales() -> None:
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Concat", ["x", "p"], ["y"], axis=1)]
    check(model(nodes, {"x": (2, 3)}, ["y"], {"w": constant(3, 4)}))


@pytest.mark.parametrize("target", [[4, 3], [2, 4, 3], [1], [2, 1, 1, 3]])
def test_expand(target: list[int]) -> None:
    check(single("Expand", [(1, 3), np.array(target)]))


@pytest.mark.parametrize("repeats", [[1, 1], [2, 1], [2, 3]])
def test_tile(repeats: list[int]) -> None:
    check(single("Tile", [(2, 3), np.array(repeats)]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-1, 2), min_size=6, max_size=6),
    st.sampled_from(["constant", "edge", "reflect", "wrap"]),
)
def test_pad(pads: list[int], mode: str) -> None:
    if mode != "constant":
        pads = [abs(pad) for pad in pads]
    value = [np.float32(-1.5)] if mode == "constant" else []
    check(single("Pad", [(3, 3, 4), np.array(pads), *value], mode=mode))


def test_pad_as_attributes() -> None:
    pads = [0, 1, 0, 2]
    check(single("Pad", [(2, 3)], opset=10, pads=pads, value=0.5))


def test_pad_of_some_axes() -> None:
    check(single("Pad", [(2, 3, 4), np.array([1, 2]), np.float32(1), np.array([-1])]))


def test_pad_that_reflects_too_much_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="reflects 4 of 4"):
        import_model(single("Pad", [(4,), np.array([4, 1])], mode="reflect"), name="m")


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    check(single("DepthToSpace", [(1, 8, 2, 3)], blocksize=2, mode=mode))


def test_space_to_depth() -> None:
    check(single("SpaceToDepth", [(1, 2, 4, 6)], blocksize=2))
