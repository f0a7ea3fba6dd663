"""The fixed-point executor against a slow, obvious one, and its limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.error_bound import error_bound
from tests.python.compiler.graph.single import Array, constant, model, node, single

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Arithmetic, linear
from privet.compiler.graph.operations.exact import (
    exact_linear,
    exact_matmul,
    exact_product,
    row_sum,
)
from privet.errors import OverflowRisk


def integers(*shape: int, bits: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-(2**bits) + 1, 2**bits, shape)


@pytest.mark.parametrize("x_bits", [10, 24, 33])
@pytest.mark.parametrize("weight_bits", [8, 16, 27])
def test_dense_is_exact_at_any_width(x_bits: int, weight_bits: int) -> None:
    x, weight = integers(3, 7, bits=x_bits), integers(7, 5, bits=weight_bits, seed=1)
    reference = [
        [sum(int(x[m, k]) * int(weight[k, n]) for k in range(7)) for n in range(5)]
        for m in range(3)
    ]
    output = exact_linear(x, row_sum(weight, 1), op.Dense(weight, None).multiply)
    assert output.tolist() == reference


@pytest.mark.parametrize(("x_bits", "y_bits"), [(10, 10), (30, 25), (8, 47), (47, 8)])
def test_products_of_two_tensors_are_exact_at_any_width(x_bits: int, y_bits: int) -> None:
    x, y = integers(2, 3, 7, bits=x_bits), integers(2, 7, 5, bits=y_bits, seed=1)
    reference = [
        [
            [sum(int(x[b, m, k]) * int(y[b, k, n]) for k in range(7)) for n in range(5)]
            for m in range(3)
        ]
        for b in range(2)
    ]
    assert exact_matmul(x, y).tolist() == reference
    column, row = x[..., :5], np.swapaxes(y, 1, 2)[:, :3, :5]
    products = [int(a) * int(b) for a, b in zip(column.ravel(), row.ravel(), strict=True)]
    assert exact_product(column, row).ravel().tolist() == products


def test_sums_beyond_63_bits_are_refused() -> None:
    x, weight = np.full((1, 4), 2**40), np.full((4, 1), 2**27)
    with pytest.raises(OverflowError):
        exact_linear(x, row_sum(weight, 1), op.Dense(weight, None).multiply)
    with pytest.raises(OverflowError):
        exact_matmul(x[None], np.full((1, 4, 1), 2**27))
    with pytest.raises(OverflowError):
        exact_product(x, x)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 2), st.integers(1, 2), st.integers(0, 2))
def test_conv2d_is_the_sum_it_says(seed: int, stride: int, dilation: int, padding: int) -> None:
    x, weight = integers(2, 4, 6, 5, bits=30, seed=seed), integers(6, 2, 3, 2, bits=12, seed=seed)
    pads = (padding, 0, 1, padding)
    conv = op.Conv2d(weight, None, (stride, 1), pads, (1, dilation), groups=2)
    height = (6 + padding + 1 - 3) // stride + 1
    width = 5 + padding - (dilation + 1) + 1
    reals = weight.astype(np.float64)
    output = exact_linear(
        x, row_sum(weight, 0), lambda part: conv.convolve(part, reals, (height, width))
    )
    padded = np.pad(x, ((0, 0), (0, 0), (padding, 1), (0, padding)))
    for place in _places(2, 6, height, width):
        n, o, i, j = place
        group = o // 3
        window = padded[
            n,
            2 * group : 2 * group + 2,
            i * stride : i * stride + 3,
            j : j + dilation + 1 : dilation,
        ]
        assert output[place] == int((window * weight[o]).sum())


def _places(*sizes: int) -> Iterator[tuple[int, ...]]:
    yield from np.ndindex(*sizes)


def test_slabs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = integers(1, 3, 9, 9, bits=20).astype(float), constant(4, 3, 3, 3).astype(float)
    conv = op.Conv2d(weight, None, padding=(1, 1, 1, 1))
    whole = conv.convolve(x, weight, (9, 9))
    rows, columns = integers(2, 50, bits=20), integers(50, 6, bits=12)
    dense = op.Dense(columns, None)
    product = dense.multiply(rows)
    monkeypatch.setattr(linear, "SLAB_BYTES", 1)
    np.testing.assert_allclose(conv.convolve(x, weight, (9, 9)), whole)
    np.testing.assert_array_equal(dense.multiply(rows), product)


def test_truncation_rounds_down() -> None:
    proto = model(
        [node("Mul", ["x", "c"], ["m"]), node("Relu", ["m"], ["y"])],
        {"x": (1, 2)},
        ["y"],
        {"c": np.asarray([0.5, 0.25], np.float32)},
    )
    compiled = compile(proto, calibration=[np.full((1, 2), 4.0)])
    unit = 2.0**-12
    result = execute(compiled.program, compiled.weights, [np.array([[3 * unit, 7 * unit]])])
    assert result.integers[0].tolist() == [[1, 1]]


def test_magnitudes_are_those_of_every_value() -> None:
    compiled = compile(single("Relu", [(1, 3)]), calibration=[np.full((1, 3), 4.0)])
    result = execute(compiled.program, compiled.weights, {"x0": np.array([[-2.0, 1.0, 0.5]])})
    assert result.magnitudes == (2 << 12, 1 << 12)


def test_a_value_that_leaves_the_ring_is_caught() -> None:
    proto = single("MatMul", [(1, 8), np.full((8, 1), 100.0, np.float32)])
    signs = np.array([[1, -1] * 4], np.float32)
    compiled = compile(proto, calibration=[signs * 8], bits=37)
    with pytest.raises(OverflowRisk, match="the_matmul"):
        execute(compiled.program, compiled.weights, [np.full((1, 8), 8.0)])


def test_the_label_of_a_deep_enough_network_agrees() -> None:
    rng = np.random.default_rng(3)
    nodes: list[Any] = []
    constants: dict[str, Any] = {}
    name = "x"
    for depth in range(6):
        constants[f"w{depth}"] = (rng.standard_normal((16, 16)) * 0.35).astype(np.float32)
        nodes += [
            node("MatMul", [name, f"w{depth}"], [f"h{depth}"]),
            node("Relu", [f"h{depth}"], [f"r{depth}"]),
        ]
        name = f"r{depth}"
    proto = model(nodes, {"x": (1, 16)}, [name], constants)
    calibration = list(rng.standard_normal((20, 1, 16)))
    compiled = compile(proto, calibration=calibration, margin=3.0)
    for sample in calibration:
        result = execute(compiled.program, compiled.weights, [sample])
        exact = sample
        for depth in range(6):
            exact = np.maximum(exact @ constants[f"w{depth}"], 0)
        assert np.abs(result.outputs[name] - exact).max() < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_error_bound_holds_however_a_suite_errs(seed: int) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Add", ["b", "x"], ["c"]),
        node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2]),
        node("AveragePool", ["d"], ["e"], kernel_shape=[3, 3]),
        node("Conv", ["e", "w"], ["f"]),
        node("Mul", ["f", "s"], ["y"]),
    ]
    constants = {"w": constant(2, 2, 3, 3), "s": constant(1, 2, 3, 3)}
    proto = model(nodes, {"x": (1, 2, 8, 8)}, ["y"], constants)
    compiled = compile(proto)
    x = np.random.default_rng(seed).standard_normal((1, 2, 8, 8))
    exact = execute(compiled.program, compiled.weights, [x]).integers[0]
    generator = np.random.default_rng(seed)

    class Erring(Arithmetic):
        def linear(self, product: Array) -> Array:
            return product + generator.integers(-1, 2, product.shape)

        def truncate(self, x: Array, bits: int) -> Array:
            return (x >> bits) - generator.integers(0, 2, x.shape)

    noisy = execute(compiled.program, compiled.weights, [x], Erring()).integers[0]
    bound = error_bound(compiled.program, compiled.weights)["y"]
    assert bound is not None
    assert 0 < np.abs(noisy - exact).max() <= bound


def test_error_bound_by_hand() -> None:
    proto = model(
        [
            node("Gemm", ["x", "w"], ["a"]),
            node("Relu", ["a"], ["r"]),
            node("Gemm", ["r", "w"], ["y"]),
            node("ArgMax", ["a"], ["label"], axis=1),
        ],
        {"x": (1, 2)},
        ["y", "label"],
        {"w": np.asarray([[1.0, -0.5], [0.25, 1.0]], np.float32)},
    )
    compiled = compile(proto)
    # dense: 1; truncated: ceil(1 / 2^12) + 1 = 2; dense: 2 * 1.5 * 2^12 + 1.
    assert error_bound(compiled.program, compiled.weights) == {"y": 2 * 6144 + 1, "label": None}
    exact = error_bound(compiled.program, compiled.weights, linear_error=0, truncation_error=0)
    assert exact == {"y": 0, "label": None}
