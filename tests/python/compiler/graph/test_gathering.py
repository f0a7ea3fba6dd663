"""Elements at constant places, taken or replaced, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.single import check, constant, model, node, samples, single

from privet.compiler.graph import import_model
from privet.compiler.graph.public_maps import MOST_PARTS
from privet.errors import ModelError, UnsupportedModel

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis: int) -> None:
    indices = RNG.integers(-3, 3, (3, 2, 3))
    check(single("GatherElements", [(3, 3, 4), indices], axis=axis))


@pytest.mark.parametrize(
    ("indices", "batch"),
    [([[0, 1], [-1, 2]], 0), ([[[1]], [[-2]], [[0]]], 0), ([[1], [0], [2]], 1), ([[[2]] * 3], 0)],
)
def test_gather_nd(indices: Any, batch: int) -> None:
    check(single("GatherND", [(3, 3, 4), np.array(indices)], batch_dims=batch))


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("place", [0, 3, 5, -1, -6])
def test_gather_nd_at_a_private_place(batch: int, place: int) -> None:
    """As decoders that classify take the state of a text's last token, and CLIP that of its end."""
    nodes = [
        node("Concat", ["zero", "place"], ["tuple"], axis=-1),
        node("GatherND", ["x", "place" if batch else "tuple"], ["y"], batch_dims=batch),
    ]
    proto = model(nodes, {"x": (1, 6, 2), "place": (1, 1)}, ["y"], {"zero": np.array([[0]])})
    proto.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    del proto.graph.value_info[:]
    check(proto, {"x": constant(1, 6, 2), "place": np.array([[place]])}, units=64)


def test_gather_nd_at_private_places_of_two_axes_is_refused() -> None:
    proto = single("GatherND", [(2, 3), (1, 2)])
    proto.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    with pytest.raises(UnsupportedModel, match="places of several axes"):
        import_model(proto, name="m")


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_elements(reduction: str) -> None:
    indices = np.array([[0, 2, 1], [2, 0, -1]])
    check(single("ScatterElements", [(3, 3), indices, (2, 3)], axis=1, reduction=reduction))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction: str) -> None:
    indices = np.array([[0], [2]]) if reduction == "none" else np.array([[1], [2], [1]])
    operands = [(4, 3), indices, (len(indices), 3)]
    check(single("ScatterND", operands, reduction=reduction))


def test_scatter_of_and_into_constants() -> None:
    indices = np.array([[1, 2], [0, 0]])
    check(single("ScatterND", [constant(2, 3), indices, (2,)]))
    check(single("ScatterND", [(2, 3), indices, constant(2)]))
    check(single("Scatter", [(3, 3), np.array([[1]]), constant(1, 1)], opset=10))


@pytest.mark.parametrize(("reduction", "least"), [("max", -3.4e38), ("min", np.inf)])
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_extremes_begin_with_the_least_float(operator: str, reduction: str, least: float) -> None:
    """As exporters write maxima of messages in a graph."""
    indices = np.array([1, 0, 1, 2, 1, 0])
    indices = indices if operator == "ScatterElements" else indices[:, None]
    start = np.full(3, least, np.float32)
    check(single(operator, [start, indices, (6,)], opset=18, reduction=reduction))
    with pytest.raises(ModelError, match=r"numbers beyond float32|bits at scale"):
        check(single(operator, [start, indices[:3], (3,)], opset=18, reduction=reduction))


def test_updates_at_one_place_are_added_in_any_number() -> None:
    indices = np.array([[1], [1], [1], [0]])
    check(single("ScatterND", [(3,), indices, (4,)], reduction="add"))


@pytest.mark.parametrize("attributes", [{}, {"axis": 0}, {"axis": -1}])
def test_compress(attributes: dict[str, Any]) -> None:
    keeps = np.array([True, False, True] if attributes else [True, False, True, True, False, True])
    check(single("Compress", [(3, 4), keeps], **attributes))


@pytest.mark.parametrize("time", [0, 1])
def test_reverse_sequence(time: int) -> None:
    attributes: dict[str, Any] = {"time_axis": time, "batch_axis": 1 - time}
    check(single("ReverseSequence", [(4, 4, 2), np.array([4, 1, 3, 2])], **attributes))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_trilu(upper: int, k: int) -> None:
    check(single("Trilu", [(2, 3, 4), np.array(k)], upper=upper))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 11), min_size=1, max_size=40))
def test_gather_in_any_order(places: list[int]) -> None:
    check(single("Gather", [(2, 12, 2), np.array(places)], axis=1))


@pytest.mark.parametrize(
    "places",
    [
        np.repeat(np.arange(100), 2),
        np.tile(np.arange(4), 50),
        np.arange(200).reshape(20, 10)[:, ::-1].ravel(),
        np.concatenate([[0], np.repeat(np.arange(99), 3), [99, 98]]),
    ],
)
def test_places_that_repeat_take_few_slices(places: Any) -> None:
    graph = import_model(single("Gather", [(200, 2), places], axis=0), name="m")
    assert len(graph.nodes) < 30
    check(single("Gather", [(200, 2), places], axis=0))


def test_places_in_no_order_are_a_product_with_zeros_and_ones() -> None:
    places = RNG.permutation(4 * MOST_PARTS)
    proto = single("Gather", [(2, 4 * MOST_PARTS), places], axis=1)
    assert len(import_model(proto, name="m").nodes) < 5
    check(proto)


def test_indices_outside_are_refused() -> None:
    for proto in (
        single("GatherElements", [(3, 3), np.array([[3]])]),
        single("ScatterND", [(3,), np.array([[5]]), (1,)]),
    ):
        with pytest.raises(UnsupportedModel, match="outside"):
            import_model(proto, name="m")


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax_marks_the_first_of_the_largest(axis: int, opset: int) -> None:
    x = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [-1, -5, 0, -2]], np.float32)
    check(single("Hardmax", [(3, 4)], axis=axis, opset=opset), {"x0": x})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot_of_a_private_index(axis: int) -> None:
    proto = single("OneHot", [(2, 3), np.array(4), np.array([-1, 2], np.float32)], axis=axis)
    check(proto, {"x0": np.array([[0, 1, 3], [2, 2, 0]], np.float32)})


def test_eye_like_and_cast_like_are_known() -> None:
    nodes = [
        node("EyeLike", ["x"], ["e"], k=1),
        node("CastLike", ["x", "e"], ["f"]),
        node("Add", ["f", "e"], ["y"]),
    ]
    proto = model(nodes, {"x": (3, 4)}, ["y"])
    check(proto, samples(proto))
