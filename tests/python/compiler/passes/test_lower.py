"""Where truncations go, and which models are refused for their ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import constant, model, node

from privet.compiler.compile import Compiled, compile
from privet.errors import OverflowRisk

USUAL: dict[str, Any] = {"bits": 37, "scale": 12}


def compiled(nodes: list[onnx.NodeProto], shape: tuple[int, ...], **options: Any) -> Compiled:
    constants: dict[str, Any] = {
        "w": constant(4, 4, 3, 3, spread=0.2),
        "fc": constant(8, 8, spread=0.2),
        "big": np.full((8, 8), 30.0, np.float32),
    }
    proto = model(nodes, {"x": shape}, [nodes[-1].output[0]], constants)
    return compile(proto, **options)


def steps(program: Compiled) -> list[tuple[str, int]]:
    """Each operation and the scale of what it makes."""
    return [(o.op, program.program.values[o.output].scale) for o in program.program.operations]


def test_linear_outputs_stay_high_until_a_comparison() -> None:
    nodes = [
        node("Gemm", ["x", "fc"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Gemm", ["b", "fc"], ["y"]),
    ]
    operations = steps(compiled(nodes, (1, 8)))
    assert operations == [("dense", 24), ("truncate", 12), ("relu", 12), ("dense", 24)]


def test_a_second_linear_layer_truncates_only_where_the_ring_is_too_small() -> None:
    nodes = [node("Gemm", ["x", "fc"], ["a"]), node("Gemm", ["a", "fc"], ["y"])]
    assert steps(compiled(nodes, (1, 8), bits=50)) == [("dense", 24), ("dense", 36)]
    narrow = steps(compiled(nodes, (1, 8), bits=37))
    assert narrow == [("dense", 24), ("truncate", 12), ("dense", 24)]


def test_more_headroom_truncates_earlier() -> None:
    nodes = [node("Gemm", ["x", "fc"], ["a"]), node("Gemm", ["a", "fc"], ["y"])]
    wide: dict[str, Any] = {"bits": 50}
    assert steps(compiled(nodes, (1, 8), headroom=12, **wide)) == [("dense", 24), ("dense", 36)]
    early = steps(compiled(nodes, (1, 8), headroom=13, **wide))
    assert early == [("dense", 24), ("truncate", 12), ("dense", 24)]


def test_a_residual_sum_shifts_the_lower_side_left() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        node("Add", ["x", "c"], ["s"]),
        node("Relu", ["s"], ["y"]),
    ]
    operations = steps(compiled(nodes, (1, 4, 6, 6)))
    assert operations == [
        ("conv2d", 24),
        ("shift_left", 24),
        ("add", 24),
        ("truncate", 12),
        ("relu", 12),
    ]


def test_an_average_over_a_power_of_two_raises_the_scale() -> None:
    nodes = [node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])]
    program = compiled(nodes, (1, 4, 6, 6))
    assert steps(program) == [("avg_pool2d", 14)]
    assert program.program.operations[0].attributes["factors"] == [1]


def test_averages_over_different_powers_of_two_stay_exact() -> None:
    nodes = [node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1, 1, 0, 0])]
    program = compiled(nodes, (1, 4, 2, 2))
    assert steps(program) == [("avg_pool2d", 14)]
    assert program.program.operations[0].attributes["factors"] == [4, 2, 2, 1]


def test_another_average_truncates_first_and_keeps_a_precise_factor() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        node("AveragePool", ["c"], ["y"], kernel_shape=[3, 3]),
    ]
    program = compiled(nodes, (1, 4, 6, 6))
    assert [op for op, _ in steps(program)] == ["conv2d", "truncate", "avg_pool2d"]
    (factor,) = program.program.operations[2].attributes["factors"]
    rise = steps(program)[2][1] - 12
    assert abs(factor * 9 / 2**rise - 1) < 2**-12


@pytest.mark.parametrize(("columns", "most"), [(12, 4), (16, 8)])
def test_as_many_are_summed_before_a_truncation_as_the_headroom_leaves_room_for(
    columns: int, most: int
) -> None:
    constants = {"fc": constant(8, columns, spread=0.2), "axes": np.array([1])}
    nodes = [
        node("Gemm", ["x", "fc"], ["a"]),
        node("ReduceMean", ["a", "axes"], ["y"]),
    ]
    source = model(nodes, {"x": (3, 8)}, ["y"], constants)
    # A sum of four stands at scale 26, which leaves 9 of 37 bits above the point.
    for headroom, summed in [(8, most), (9, 4), (10, 2), (11, 0)]:
        program = compile(source, headroom=headroom, **USUAL)
        kinds = [op for op, _ in steps(program) if op != "reshape"]
        pools = [
            operation for operation in program.program.operations if operation.op == "avg_pool2d"
        ]
        if summed:
            assert kinds == ["dense", "avg_pool2d", "truncate", "avg_pool2d"]
            assert pools[0].attributes["kernel"] == pools[0].attributes["stride"] == [1, summed]
            assert pools[0].attributes["factors"] == [1]
        else:
            assert kinds == ["dense", "truncate", "avg_pool2d"]
        assert pools[-1].attributes["kernel"] == [1, columns // max(summed, 1)]
        assert all(output.error < 2**-10 for output in program.accuracy().outputs)


def test_sums_of_small_values_beside_large_ones_stay_in_the_ring() -> None:
    """With a scale for each value, one below 1 has more places than the ring has bits for."""
    rng = np.random.default_rng(128)
    constants = {
        "W": rng.normal(size=(16, 128)) * 0.05 / 4,
        "V": rng.normal(size=(16, 4)) * 3e4 / 4,
        "g": rng.normal(size=128),
        "b": rng.normal(size=128),
    }
    nodes = [
        node("Gemm", ["x", "W"], ["a"]),
        node("LayerNormalization", ["a", "g", "b"], ["y"]),
        node("Gemm", ["x", "V"], ["z"]),
    ]
    source = model(nodes, {"x": (1, 16)}, ["y", "z"], constants)
    samples = [rng.normal(size=(1, 16)).astype(np.float32) for _ in range(24)]
    program = compile(source, smooth="piecewise", calibration=samples)
    assert program.accuracy().relative < 1e-3


def test_one_value_is_truncated_once_for_all_its_readers() -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        node("Relu", ["c"], ["r"]),
        node("MaxPool", ["c"], ["m"], kernel_shape=[3, 3], pads=[1] * 4),
        node("Add", ["r", "m"], ["y"]),
    ]
    kinds = [op for op, _ in steps(compiled(nodes, (1, 4, 6, 6)))]
    assert kinds.count("truncate") == 1


def test_overflow_names_the_layer_the_range_and_a_way_out() -> None:
    nodes = [
        node("Gemm", ["x", "big"], ["a"]),
        onnx.helper.make_node("Gemm", ["a", "big"], ["b"], name="second"),
        node("Relu", ["b"], ["y"]),
    ]
    sample = np.ones((1, 8), np.float32)
    with pytest.raises(OverflowRisk) as excinfo:
        compiled(nodes, (1, 8), calibration=[sample], **USUAL)
    error = excinfo.value
    assert error.layer == "second"
    assert error.magnitude == pytest.approx(2 * 240 * 240)
    assert error.bits_needed == 17 + 24 + 2
    assert "measured 5.76e+04, margin 2" in str(error)
    assert "--bits 43 or more, with --scale 9 or less" in str(error)
    # What the message says to do is enough, and no less is.
    assert compiled(nodes, (1, 8), calibration=[sample], bits=43, scale=12)
    assert compiled(nodes, (1, 8), calibration=[sample], bits=37, scale=9)
    with pytest.raises(OverflowRisk):
        compiled(nodes, (1, 8), calibration=[sample], bits=42, scale=12)
    with pytest.raises(OverflowRisk):
        compiled(nodes, (1, 8), calibration=[sample], bits=37, scale=10)


def test_a_sum_in_a_narrow_ring_is_refused() -> None:
    """Results of ReLUs lie in 25 bits, which hold each of them and not their sum."""
    nodes = [
        node("MatMul", ["x", "fc"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Add", ["b", "b"], ["y"]),
    ]
    sample = np.ones((1, 8), np.float32)
    proto = model(nodes, {"x": (1, 8)}, ["y"], {"fc": np.eye(8, dtype=np.float32) * 700})
    with pytest.raises(OverflowRisk, match="--bits 38 or more"):
        compile(proto, calibration=[sample], **USUAL)
    assert compile(proto, calibration=[sample], bits=38, scale=12)


def test_the_margin_counts() -> None:
    nodes = [node("Gemm", ["x", "big"], ["y"])]
    sample = np.ones((1, 8), np.float32)
    options: dict[str, Any] = {"calibration": [sample], "bits": 35, "scale": 12}
    assert compiled(nodes, (1, 8), margin=2.0, **options)
    with pytest.raises(OverflowRisk, match="the_gemm"):
        compiled(nodes, (1, 8), margin=3.0, **options)


def test_an_input_that_is_too_large_is_named() -> None:
    nodes = [node("Relu", ["x"], ["y"])]
    with pytest.raises(OverflowRisk, match="layer x \\(input\\)"):
        compiled(nodes, (1, 8), input_range=(0, 1e9), **USUAL)


def test_weights_that_are_too_large_are_named() -> None:
    factors = {"c": np.asarray([1, 7e4], np.float32)}
    proto = model([node("Mul", ["x", "c"], ["y"])], {"x": (1, 2)}, ["y"], factors)
    with pytest.raises(OverflowRisk, match="the_mul: weights up to 7e\\+04 need 29 bits"):
        compile(proto, bits=50, scale=12, calibration=[np.full((1, 2), 1e-3, np.float32)])
