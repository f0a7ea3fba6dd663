"""MaxPool, AveragePool and the global pools against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.single import check, single

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    """An operator, an input shape and attributes that fit it."""
    rank = draw(st.integers(1, 2))
    operator = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [draw(st.integers(1, 3)) for _ in range(rank)],
        "dilations": dilations,
    }
    mode = draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    pads = [0] * (2 * rank)
    if mode == "NOTSET":
        # Runtimes ask for less padding than the kernel is wide.
        pads = [draw(st.integers(0, kernel[axis % rank] - 1)) for axis in range(2 * rank)]
        attributes["pads"] = pads
        attributes["ceil_mode"] = draw(st.integers(0, 1))
    else:
        attributes["auto_pad"] = mode
        attributes["dilations"] = dilations = [1] * rank
    if operator == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    size = [draw(st.integers(1, 9)) for _ in range(rank)]
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        assume(size[axis] + pads[axis] + pads[axis + rank] >= reach)
        # With SAME padding and a stride beyond the kernel, runtimes find negative padding.
        assume(mode in ("NOTSET", "VALID") or attributes["strides"][axis] <= reach)
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *size)
    return {"operator": operator, "shape": shape, "attributes": attributes}


@settings(max_examples=250, deadline=None)
@given(pools())
def test_every_form_of_pooling(case: dict[str, Any]) -> None:
    proto = single(case["operator"], [case["shape"]], **case["attributes"])
    try:
        import_model(proto, name="m")
    except UnsupportedModel as refusal:
        assert "wholly on padding" in str(refusal)  # noqa: PT017
        assume(False)
    check(proto)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("spatial", [(4, 4), (7, 7), (5,), (2, 3, 4), (1, 1)])
def test_global_pools(operator: str, spatial: tuple[int, ...]) -> None:
    check(single(operator, [(2, 3, *spatial)]))


def test_average_of_a_power_of_two_is_exact_up_to_the_input() -> None:
    x = {"x0": (np.arange(16).reshape(1, 1, 4, 4) / 16).astype(np.float32)}
    proto = single("AveragePool", [(1, 1, 4, 4)], kernel_shape=[2, 2], strides=[2, 2])
    check(proto, x, units=1e-9)


def test_indices_of_max_pool_are_refused() -> None:
    proto = single("MaxPool", [(1, 1, 4, 4)], outputs=2, kernel_shape=[2, 2])
    with pytest.raises(UnsupportedModel, match="Indices"):
        import_model(proto, name="m")


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("pads", [[0] * 6, [1, 0, 1, 0, 1, 1]])
def test_pools_of_a_volume(operator: str, ceil_mode: int, pads: list[int]) -> None:
    shape: dict[str, Any] = {"kernel_shape": [3, 2, 3], "strides": [2, 1, 2], "pads": pads}
    check(single(operator, [(1, 2, 6, 4, 5)], ceil_mode=ceil_mode, **shape))


@pytest.mark.parametrize("p", [1, 2])
def test_pools_of_norms(p: int) -> None:
    pool = single("LpPool", [(1, 2, 5, 5)], kernel_shape=[2, 2], strides=[2, 2], p=p)
    for proto in (pool, single("GlobalLpPool", [(1, 2, 3, 4)], p=p)):
        check(proto, units=64, smooth="piecewise")


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(1, 2, 1500), (1, 2, 11, 11, 11)])
def test_a_global_pool_over_more_than_a_window_holds(operator: str, shape: tuple[int, ...]) -> None:
    check(single(operator, [shape]))


def test_a_window_that_is_too_long_is_refused() -> None:
    proto = single("AveragePool", [(1, 1, 3000)], kernel_shape=[2000])
    with pytest.raises(UnsupportedModel, match=r"the_averagepool .* longer than 1024"):
        import_model(proto, name="m")
