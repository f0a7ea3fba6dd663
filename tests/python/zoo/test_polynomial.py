"""Polynomial activations against NumPy's interpolation and against the functions they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.polynomial import Chebyshev

from privet.zoo.graph import GraphBuilder
from privet.zoo.initial import draw
from privet.zoo.polynomial import Interpolant, Reals, silu, softplus
from privet.zoo.slytherin import DEEP
from privet.zoo.writer import write


@pytest.mark.parametrize("function", [silu, softplus])
@pytest.mark.parametrize("degree", [2, 4, 5, 14, 63])
def test_the_folded_series_is_the_interpolant(
    function: Callable[[Reals], Reals], degree: int
) -> None:
    bound = 6.0
    x = np.linspace(-bound, bound, 301)
    whole = Chebyshev.interpolate(function, degree, domain=[-bound, bound])
    np.testing.assert_allclose(Interpolant(function, degree, bound)(x), whole(x), atol=1e-10)


@pytest.mark.parametrize("degree", [2, 4, 14, 63])
def test_the_nodes_compute_the_interpolant(degree: int, tmp_path: Path) -> None:
    interpolant = Interpolant(softplus, degree, 16.0)
    graph = GraphBuilder("act", (1, 301), moment=1.0)
    graph.finish(interpolant.append(graph, graph.input), "y")
    path = tmp_path / "act.onnx"
    write(graph, path, lambda weight: draw("act", weight))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.linspace(-16, 16, 301, dtype=np.float32)[None]
    (y,) = session.run(None, {"input": x})
    np.testing.assert_allclose(y, interpolant(x.astype(np.float64)), atol=1e-4)


@pytest.mark.parametrize("layers", [20, 50])
def test_the_deep_networks_interpolate_to_twelve_bits_and_no_wider_would_do(layers: int) -> None:
    interpolant = DEEP[layers]
    assert interpolant.degree == 63

    def error(bound: float) -> float:
        x = np.linspace(-bound, bound, 5001)
        other = Interpolant(interpolant.function, interpolant.degree, bound)
        return float(np.max(np.abs(other(x) - interpolant.function(x))))

    assert error(interpolant.bound) < 2**-13
    assert error(2 * interpolant.bound) > 2**-13
