"""ReLU as a product with an approximate sign, and the compositions that come close to the sign."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import privet
from privet import zoo
from privet.compiler.compile import compile
from privet.compiler.passes import minimax
from privet.errors import Misuse


@pytest.mark.parametrize("low", [2.0**-2, 2.0**-5, 2.0**-8])
@pytest.mark.parametrize("degree", minimax.DEGREES)
def test_a_stage_is_the_closest_of_its_degree(degree: int, low: float) -> None:
    series, error = minimax.closest_to_one(degree, low)
    x = np.unique(np.concatenate([np.linspace(low, 1, 20001), np.geomspace(low, 1, 20001)]))
    off = 1.0 - np.polynomial.chebyshev.chebval(x, series)
    assert np.abs(off).max() <= error * (1 + 1e-3)
    # Chebyshev's criterion: the error reaches its bound with alternating signs once more than
    # there are coefficients.
    signs = np.sign(off[np.abs(off) >= error * (1 - 1e-3)])
    assert np.count_nonzero(np.diff(signs)) + 1 >= (degree + 1) // 2 + 1
    assert not series[::2].any()


@pytest.mark.parametrize("bits", [6, 8, 10, 12])
def test_a_composition_makes_a_relu(bits: int) -> None:
    series = list(minimax.sign(2.0**-bits))
    x = np.linspace(-1, 1, 100_003)
    for count in range(1, len(series) + 1):
        assert np.abs(minimax.composed(series[:count], x)).max() <= 1 + 1e-4
    relu = x * (1 + minimax.composed(series, x)) / 2
    assert np.abs(relu - np.maximum(x, 0)).max() <= 1.01 * 2.0**-bits


def test_what_is_too_fine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no composition"):
        minimax.sign(2.0**-40)
    with pytest.raises(Misuse, match="allow a larger error"):
        privet.compile(zoo.build("mnist-1", tmp_path), suite="ckks", activation_error=2.0**-40)


def test_a_compiled_model_has_products_in_place_of_relus(tmp_path: Path) -> None:
    path = zoo.build("mnist-1", tmp_path)
    exact = privet.compile(path, bits=50, scale=16, weight_scale=18, input_range=(0, 1))
    close = privet.compile(path, suite="ckks", input_range=(0, 1))
    assert [operation.op for operation in close.program.operations].count("mul") == 2
    assert "relu" not in {operation.op for operation in close.program.operations}
    assert "mul" not in {operation.op for operation in exact.program.operations}
    with pytest.raises(Misuse, match="relu is 'square'"):
        compile(path, relu="square")
