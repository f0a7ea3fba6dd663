"""Conv against ONNX Runtime, over shapes and attributes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.single import check, constant, model, node, single

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    """An input shape, a weight shape and attributes of a Conv that fits them."""
    rank = draw(st.integers(1, 2))
    groups = draw(st.integers(1, 3))
    per_group, out_per_group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    attributes: dict[str, Any] = {
        "strides": [draw(st.integers(1, 3)) for _ in range(rank)],
        "dilations": dilations,
        "group": groups,
    }
    mode = draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    pads = [0] * (2 * rank)
    if mode == "NOTSET":
        pads = attributes["pads"] = [draw(st.integers(0, 2)) for _ in range(2 * rank)]
    else:
        attributes["auto_pad"] = mode
    size = [draw(st.integers(1, 8)) for _ in range(rank)]
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        assume(size[axis] + pads[axis] + pads[axis + rank] >= reach)
    return {
        "x": (draw(st.integers(1, 2)), groups * per_group, *size),
        "weight": (groups * out_per_group, per_group, *kernel),
        "bias": draw(st.booleans()),
        "attributes": attributes,
    }


@settings(max_examples=150, deadline=None)
@given(convolutions())
def test_every_form_of_conv(case: dict[str, Any]) -> None:
    operands = [case["x"], constant(*case["weight"])]
    if case["bias"]:
        operands.append(constant(case["weight"][0], seed=2))
    check(single("Conv", operands, **case["attributes"]))


def test_weights_among_the_inputs_as_old_exporters_list_them() -> None:
    operands = [(1, 2, 5, 5), constant(3, 2, 3, 3), constant(3)]
    check(single("Conv", operands, opset=7, listed=True))


def test_bias_that_is_left_out_by_an_empty_name() -> None:
    check(single("Conv", [(1, 2, 5, 5), constant(3, 2, 3, 3), ""]))


def test_four_dimensional_conv_is_refused() -> None:
    proto = single("Conv", [(1, 2, 4, 4, 4, 4), constant(3, 2, 3, 3, 3, 3)])
    with pytest.raises(UnsupportedModel, match="4 spatial axes"):
        import_model(proto, name="m")


def test_private_weights_are_refused() -> None:
    proto = model([node("Conv", ["x", "w"], ["y"])], {"x": (1, 2, 4, 4), "w": (3, 2, 3, 3)}, ["y"])
    with pytest.raises(UnsupportedModel, match="weights depend on the private input"):
        import_model(proto, name="m")


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 3]},
        {"strides": [2, 2], "pads": [1, 0, 2, 1], "output_padding": [1, 0]},
        {"dilations": [2, 1], "pads": [1, 1, 1, 1]},
        {"strides": [3, 2], "pads": [3, 3, 3, 3]},
        {"strides": [2, 1], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 1], "auto_pad": "SAME_LOWER"},
        {"strides": [2, 2], "output_shape": [8, 7]},
        {"strides": [2, 2], "output_shape": [8, 7], "auto_pad": "SAME_UPPER"},
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose(attributes: dict[str, Any], groups: int) -> None:
    operands = [(1, 4, 5, 4), constant(4, 3, 3, 2), constant(3 * groups)]
    check(single("ConvTranspose", operands, group=groups, **attributes))


def test_conv_transpose_of_a_row() -> None:
    check(single("ConvTranspose", [(2, 3, 5), constant(3, 2, 4)], strides=[2], pads=[1, 1]))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 1, 2], "pads": [1, 0, 1, 0, 2, 1]}])
def test_conv_of_a_volume(attributes: dict[str, Any], groups: int) -> None:
    operands = [(2, 4, 5, 4, 6), constant(6, 4 // groups, 3, 2, 3), constant(6)]
    check(single("Conv", operands, group=groups, dilations=[1, 2, 1], **attributes))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [2, 2, 2]},
        {"strides": [2, 1, 3], "pads": [1, 0, 2, 1, 1, 3], "output_padding": [1, 0, 2]},
        {"dilations": [2, 1, 2], "pads": [1, 0, 2, 2, 1, 0]},
        {"strides": [1, 2, 2], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 2, 2], "output_shape": [7, 6, 9]},
    ],
)
def test_conv_transpose_of_a_volume(attributes: dict[str, Any], groups: int) -> None:
    """As V-Net and nnU-Net enlarge volumes."""
    operands = [(2, 4, 4, 3, 5), constant(4, 3, 2, 3, 2), constant(3 * groups)]
    check(single("ConvTranspose", operands, group=groups, **attributes))
