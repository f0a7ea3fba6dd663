"""BatchNormalization, alone and beside other layers, and normalisations by the tensor itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.python.compiler.graph.single import Array, check, constant, model, node, single

from privet.compiler.compile import compile
from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel


def statistics(channels: int) -> list[Array]:
    """Scale, bias, mean and variance."""
    variance = np.abs(constant(channels, seed=4)) + np.float32(0.5)
    return [*(constant(channels, seed=seed) for seed in (1, 2, 3)), variance]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (1, 3, 4, 4), (2, 3, 2, 2, 2), (4, 3, 1, 1)])
@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization_alone(shape: tuple[int, ...], opset: int) -> None:
    proto = single("BatchNormalization", [shape, *statistics(3)], opset=opset, epsilon=1e-3)
    check(proto)


@pytest.mark.parametrize(
    ("layer", "shape", "weights", "attributes"),
    [
        ("Conv", (1, 3, 6, 6), (3, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ("Conv", (1, 3, 6, 6), (3, 3, 3, 3), {}),
        ("Conv", (2, 3, 6), (3, 3, 3), {"pads": [1, 1]}),
        ("Conv", (1, 3, 6, 6), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
        ("Gemm", (2, 3), (3, 3), {}),
    ],
)
@pytest.mark.parametrize("first", ["layer", "norm"])
def test_batch_normalization_beside_a_layer(
    layer: str, shape: tuple[int, ...], weights: tuple[int, ...], attributes: Any, first: str
) -> None:
    names = ["s", "b", "m", "v"]
    a, b = ("x", "h") if first == "layer" else ("h", "x")
    nodes = [
        node(layer, [a, "w", "c"], ["h" if first == "layer" else "y"], **attributes),
        node("BatchNormalization", [b, *names], ["y" if first == "layer" else "h"]),
    ]
    constants = dict(zip(names, statistics(3), strict=True))
    constants |= {"w": constant(*weights), "c": constant(3, seed=9)}
    proto = model(nodes if first == "layer" else nodes[::-1], {"x": shape}, ["y"], constants)
    check(proto)
    if first == "layer":
        operations = [o.op for o in compile(proto).program.operations]
        assert len([o for o in operations if o in ("conv2d", "dense", "scale")]) == 1


def test_training_mode_is_refused() -> None:
    proto = single("BatchNormalization", [(1, 3, 4, 4), *statistics(3)], training_mode=1, outputs=3)
    with pytest.raises(UnsupportedModel, match="training mode"):
        import_model(proto, name="m")


SPREAD = 48
"""Units: the root's table and two products round."""


@pytest.mark.parametrize("shape", [(2, 4, 9), (1, 4, 3, 3)])
def test_instance_normalization(shape: tuple[int, ...]) -> None:
    weights = [constant(4, seed=seed) for seed in (1, 2)]
    check(
        single("InstanceNormalization", [shape, *weights], epsilon=1e-2),
        units=SPREAD,
        smooth="piecewise",
    )


@pytest.mark.parametrize(("opset", "size"), [(18, 2), (21, 4)])
def test_group_normalization(opset: int, size: int) -> None:
    """Before opset 21 a weight is a group's, since then a channel's."""
    weights = [constant(size, seed=seed) for seed in (1, 2)]
    attributes: dict[str, Any] = {"num_groups": 2}
    check(
        single("GroupNormalization", [(2, 4, 3, 3), *weights], opset=opset, **attributes),
        units=SPREAD,
        smooth="piecewise",
    )


@pytest.mark.parametrize("axes", [None, [1], [0, 3]])
def test_mean_variance_normalization(axes: list[int] | None) -> None:
    attributes: dict[str, Any] = {} if axes is None else {"axes": axes}
    check(
        single("MeanVarianceNormalization", [(2, 8, 4, 3)], **attributes),
        units=SPREAD,
        smooth="piecewise",
    )


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, -1])
def test_lp_normalization(p: int, axis: int) -> None:
    check(single("LpNormalization", [(5, 6)], p=p, axis=axis), units=SPREAD, smooth="piecewise")


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response_normalization(size: int) -> None:
    attributes: dict[str, Any] = {"alpha": 0.1, "beta": 0.75, "bias": 2.0, "size": size}
    check(single("LRN", [(1, 6, 3, 3)], **attributes), units=SPREAD, smooth="piecewise")
