"""Resize and Upsample against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.python.compiler.graph.single import check, single

SHAPE = (1, 2, 5, 4)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_resize(mode: str, coordinates: str) -> None:
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    check(single("Resize", [SHAPE, "", np.array([1, 1, 1.6, 2], np.float32)], **attributes))
    check(single("Resize", [SHAPE, "", "", np.array([1, 2, 3, 9])], **attributes))


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_by_each_rounding(rounding: str) -> None:
    for sizes in ([1, 2, 10, 8], [1, 2, 7, 3]):
        check(single("Resize", [SHAPE, "", "", np.array(sizes)], nearest_mode=rounding))


@pytest.mark.parametrize(
    "attributes",
    [
        {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"},
        {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
        {"axes": [2, 3], "mode": "linear"},
        {"axes": [3, 2], "keep_aspect_ratio_policy": "not_larger"},
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller", "mode": "linear"},
    ],
)
def test_other_forms(attributes: dict[str, Any]) -> None:
    sizes = [7, 9] if "axes" in attributes else [1, 2, 7, 9]
    check(single("Resize", [SHAPE, "", "", np.array(sizes)], opset=19, **attributes))


def test_a_crop_that_reaches_outside() -> None:
    window = np.array([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], np.float32)
    attributes: dict[str, Any] = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "mode": "linear",
        "extrapolation_value": 10.0,
    }
    check(single("Resize", [SHAPE, window, "", np.array([1, 2, 3, 3])], **attributes))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("excludes", [0, 1])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners"])
def test_antialias(mode: str, excludes: int, coordinates: str) -> None:
    attributes: dict[str, Any] = {"coordinate_transformation_mode": coordinates, "mode": mode}
    attributes |= {"exclude_outside": excludes, "antialias": 1}
    for sizes in ([1, 2, 3, 2], [1, 2, 9, 3], [1, 2, 1, 1]):
        check(single("Resize", [(1, 2, 8, 7), "", "", np.array(sizes)], opset=19, **attributes))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [7, 9, 10])
def test_upsample(mode: str, opset: int) -> None:
    scales = np.array([1, 1, 2, 3], np.float32)
    if opset == 7:
        check(single("Upsample", [SHAPE], opset=opset, mode=mode, scales=scales.tolist()))
    else:
        name = "Upsample" if opset == 9 else "Resize"
        check(single(name, [SHAPE, scales], opset=opset, mode=mode))
