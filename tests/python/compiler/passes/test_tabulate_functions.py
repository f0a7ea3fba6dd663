"""Smooth functions by lines: close over the whole range, saturating beyond, and what the page says.

`LINES` has every function with the arguments that its table is made for here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.svm import SVR
from tests.python.compiler.graph.single import expected, model, node, samples, single

from privet import suites
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.layer_ranges import Ranges
from privet.compiler.executor.reference import run_plaintext
from privet.compiler.graph.operations import Piecewise
from privet.compiler.graph.operations.elementwise import real_values
from privet.compiler.graph.operations.piecewise import piecewise_values
from privet.compiler.program import Program
from privet.compiler.program.operations import decode
from privet.errors import InvalidProgram, UnsupportedModel

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "protocols" / "lines.md"
SCALE, RING = 12, 37
UNIT = 2.0**-SCALE

LINES: dict[str, tuple[dict[str, Any], float, float]] = {
    "Sigmoid": ({}, -8, 8),
    "Tanh": ({}, -8, 8),
    "Erf": ({}, -8, 8),
    "Softplus": ({}, -8, 8),
    "Gelu": ({}, -8, 8),
    "SiLU": ({}, -8, 8),
    "Mish": ({}, -8, 8),
    "HardSwish": ({}, -8, 8),
    "HardSigmoid": ({}, -8, 8),
    "Elu": ({}, -8, 8),
    "Selu": ({}, -8, 8),
    "Celu": ({"alpha": 0.5}, -8, 8),
    "Softsign": ({}, -8, 8),
    "Exp": ({}, -4, 4),
    "Log": ({}, 0.5, 8),
    "Sqrt": ({}, 0.25, 16),
    "Reciprocal": ({}, 0.5, 8),
    "Pow": ({}, 0.25, 4),
    "Sin": ({}, -8, 8),
    "Cos": ({}, -8, 8),
}
EXPONENT = np.float32(1.5)


def compiled(operator: str, **options: Any) -> tuple[Compiled, Any]:
    """The function alone, and its model."""
    attributes, low, high = LINES[operator]
    operands: list[Any] = [(1, 64), *([EXPONENT] if operator == "Pow" else [])]
    if operator in ("SiLU", "Sigmoid"):
        # A sigmoid that is an output would be the client's.
        last = (
            node("Mul", ["x", "gate"], ["y"])
            if operator == "SiLU"
            else node("Relu", ["gate"], ["y"])
        )
        nodes = [node("Sigmoid", ["x"], ["gate"]), last]
        proto = model(nodes, {"x": (1, 64)}, ["y"])
    else:
        proto = single(operator, operands, **attributes)
    name = proto.graph.input[0].name
    calibration = [{name: np.linspace(low, high, 64, dtype=np.float32)[None]}]
    options = {"margin": 1.0, "smooth": "piecewise", **options}
    return compile(proto, calibration=calibration, **options), proto


def table(program: Program) -> Piecewise:
    (step,) = (entry for entry in program.operations if entry.op == "piecewise")
    operation = decode(step.op, step.attributes, (1, 64), {})
    assert isinstance(operation, Piecewise)
    return operation


def row(operator: str) -> str:
    """The function's row on the page: its table, and its largest error over all arguments."""
    program = compiled(operator)[0].program
    lines = table(program)
    (step,) = (operation for operation in program.operations if operation.op == "piecewise")
    before, after = (program.values[id].scale for id in (step.inputs[0], step.output))
    bits = after - lines.step_bits
    x = np.arange(1 << lines.bits, dtype=np.int64)
    values = piecewise_values(x + lines.low, lines, before, after, RING) >> lines.step_bits
    exact = real_values(x + lines.low, lines.function, before)
    unit = 2.0**-before
    first, last = lines.low * unit, (lines.low + (1 << lines.bits)) * unit
    largest = float(np.abs(np.ldexp(values.astype(np.float64), -bits) - exact).max()) / UNIT
    title = f"`{operator}` 1.5" if operator == "Pow" else f"`{operator}`"
    return f"| {title} | {first:g} to {last:g} | {1 << lines.index_bits} | {largest:.2f} |"


def test_the_page_has_the_error_of_every_function_over_its_whole_range() -> None:
    rows = [row(operator) for operator in LINES]
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert lines == rows, "\n".join(rows)


@pytest.mark.parametrize("operator", sorted(LINES))
def test_lines_are_those_of_the_operator(operator: str) -> None:
    program, proto = compiled(operator)
    attributes = LINES[operator]
    inputs = {proto.graph.input[0].name: np.linspace(*attributes[1:], 64, dtype=np.float32)[None]}
    (output,) = execute(program.program, program.weights, inputs).outputs.values()
    # An argument is rounded, too, and slopes are up to 55 here.
    slope = {"Exp": 110.0, "Reciprocal": 4.0, "Pow": 3.0, "Log": 2.0}.get(operator, 1.1)
    near = expected(proto, inputs)[0]
    np.testing.assert_allclose(output, near, rtol=0, atol=(4.0 + slope / 2) * UNIT)


@pytest.mark.parametrize(
    ("operator", "below", "above"),
    [
        ("Sigmoid", 0, 1),
        ("Gelu", 0, 1000),
        ("Softplus", 0, 1000),
        ("Elu", -1, 1000),
        ("Erf", -1, 1),
    ],
)
def test_functions_go_on_beyond_their_table(operator: str, below: float, above: float) -> None:
    proto = single(operator, [(1, 2)])
    name = proto.graph.input[0].name
    far = {name: np.array([[-1000.0, 1000.0]], np.float32)}
    compilation = compile(proto, calibration=[far], smooth="piecewise")
    (output,) = execute(compilation.program, compilation.weights, far).outputs.values()
    np.testing.assert_allclose(output, [[below, above]], rtol=0, atol=2 * UNIT)


def test_arguments_beyond_a_measured_range_count_as_its_ends() -> None:
    proto = single("Exp", [(1, 3)])
    name = proto.graph.input[0].name
    near = {name: np.array([[-1.0, 0.0, 1.0]], np.float32)}
    compilation = compile(
        proto, calibration=[near], margin=1.0, ranges={name: 4.0}, smooth="piecewise"
    )
    far = {name: np.array([[-3.5, 0.0, 3.9]], np.float32)}
    lines = table(compilation.program)
    (output,) = execute(compilation.program, compilation.weights, far).outputs.values()
    assert (lines.low, lines.bits) == (-(4 << SCALE), 3 + SCALE)
    np.testing.assert_allclose(output, np.exp(far[name]), rtol=2.0**-11)


@pytest.mark.parametrize("rising", [True, False])
def test_an_exponential_ends_where_it_passes_its_largest_value(rising: bool) -> None:
    """A margin on its argument would square it."""
    sign = np.array(1.0 if rising else -1.0, np.float32)
    nodes = [node("Mul", ["x", "sign"], ["z"]), node("Exp", ["z"], ["y"])]
    proto = model(nodes, {"x": (1, 4)}, ["y"], {"sign": sign})
    near = {"x": np.array([[-60.0, -9.0, -2.0, -0.25]], np.float32) * sign}
    compilation = compile(proto, calibration=[near], smooth="piecewise")
    (output,) = execute(compilation.program, compilation.weights, near).outputs.values()
    np.testing.assert_allclose(output, np.exp(near["x"] * sign), rtol=0, atol=4 * UNIT)
    assert float(compilation.magnitudes["y"]) < 2.0


@pytest.mark.parametrize(("scale", "end"), [(11, 8.0), (12, 8.0), (13, 16.0)])
def test_the_exponential_function_of_a_softmax_is_0_from_its_end_on(scale: int, end: float) -> None:
    """At scale 12 less than 1.5 units are left of it there, which its last line takes off."""
    nodes = [node("Softmax", ["x"], ["p"]), node("MatMul", ["p", "weights"], ["y"])]
    proto = model(nodes, {"x": (1, 8)}, ["y"], {"weights": np.ones((8, 2), np.float32)})
    far = {"x": np.array([[0.0, -1.0, -3.0, -7.0, -7.99, -8.01, -20.0, -100.0]], np.float32)}
    compilation = compile(proto, calibration=[far], scale=scale, smooth="piecewise")
    first = next(
        operation for operation in compilation.program.operations if operation.op == "piecewise"
    )
    lines = decode(first.op, first.attributes, (1, 8), {})
    assert isinstance(lines, Piecewise)
    assert (lines.low, lines.bits, lines.nonnegative) == (0, scale + int(np.log2(end)), True)
    x = np.arange(0, 110 << scale, 7, dtype=np.int64)
    values = piecewise_values(x, lines, scale, scale + lines.step_bits, RING) >> lines.step_bits
    exact = np.ldexp(np.exp(-np.ldexp(x.astype(np.float64), -scale)), scale)
    assert np.abs(values - exact).max() <= 4.0
    # Nothing before the last line is lowered: sums of many values stay close.
    before = x < (int(end) << scale) - (1 << lines.step_bits)
    assert abs(float((values - exact)[before].mean()) + 0.5) < 0.25
    assert values.min() == 0
    assert not values[x >= int(end) << scale].any()


def test_a_root_of_a_wide_range_takes_several_tables() -> None:
    """It is steep at 0, where few arguments are near one another."""
    proto = single("Sqrt", [(1, 64)])
    name = proto.graph.input[0].name
    x = np.geomspace(2.0**-8, 100.0, 64, dtype=np.float32)[None]
    compiled = compile(proto, calibration=[{name: np.zeros_like(x)}, {name: x}], smooth="piecewise")
    operations = [operation.op for operation in compiled.program.operations]
    assert operations.count("piecewise") > 1
    (output,) = execute(compiled.program, compiled.weights, {name: x}).outputs.values()
    np.testing.assert_allclose(output, np.sqrt(x), rtol=0, atol=0.01)


def test_a_table_has_no_part_in_which_the_function_is_constant() -> None:
    """Lines of a bell over thousands, on either side, would each be wider than the bell."""
    negative = np.array(-1.0, np.float32)
    nodes = [node("Mul", ["x", "negative"], ["z"]), node("Exp", ["z"], ["y"])]
    proto = model(nodes, {"x": (1, 5)}, ["y"], {"negative": negative})
    for sign in (1, -1):
        far = {"x": sign * np.array([[0.1, 1.0, 2.0, 40.0, 9000.0]], np.float32)}
        if sign < 0:
            proto.graph.node[0].op_type = "Identity"
            del proto.graph.node[0].input[1]
        compiled = compile(proto, calibration=[far], bits=42, smooth="piecewise")
        (output,) = execute(compiled.program, compiled.weights, far).outputs.values()
        np.testing.assert_allclose(output, np.exp(-np.abs(far["x"])), rtol=0, atol=4 * UNIT)


def test_a_polynomial_kernel_is_right_up_to_the_margin_of_inputs() -> None:
    """There a cube is eight times as large as what was measured, and half as far as tables go."""
    rows = np.abs(np.random.default_rng(0).standard_normal((150, 4))).astype(np.float32)
    targets = rows @ np.array([1.0, 2.0, -1.0, 0.5])
    gamma = 2.1 / np.abs(rows @ rows.T).max()
    proto = to_onnx(SVR(kernel="poly", gamma=gamma).fit(rows, targets), rows[:1])
    compiled = compile(proto, calibration=[sample[None] for sample in rows], smooth="piecewise")
    far = [2 * sample[None] for sample in rows]
    plain = run_plaintext(proto, [{"X": sample} for sample in far], ["variable"])["variable"]
    outputs = [
        execute(compiled.program, compiled.weights, [sample]).outputs["variable"] for sample in far
    ]
    assert np.abs(np.concatenate(outputs) - plain).max() < 1e-2 * np.ptp(np.asarray(plain, float))


def test_the_rest_of_a_model_sees_rounded_values() -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["hidden"]),
        node("Sigmoid", ["hidden"], ["gate"]),
        node("Mul", ["hidden", "gate"], ["silu"]),
        node("MatMul", ["silu", "v"], ["y"]),
    ]
    rng = np.random.default_rng(5)
    weights = {
        "w": rng.uniform(-1, 1, (8, 16)).astype(np.float32),
        "v": rng.uniform(-1, 1, (16, 4)).astype(np.float32),
    }
    proto = model(nodes, {"x": (3, 8)}, ["y"], weights)
    inputs = samples(proto)
    compilation = compile(proto, calibration=[inputs], smooth="piecewise")
    (output,) = execute(compilation.program, compilation.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=24 * UNIT)
    assert [suite for suite in suites.all_suites() if suite().runs(compilation.program)] == [
        suites.Gmw,
        suites.Fss,
    ]
    (problem,) = suites.Fss(security="malicious").supports(compilation.program)
    assert "authenticate" in problem.why
    # Every input within its bound stays in the ring: tables say what they can give.
    assert Ranges(compilation.program, compilation.weights, compilation.measured).is_sound


def test_shares_of_votes_of_which_there_are_always_as_many_run() -> None:
    proto = model(
        [
            node("Greater", ["x", "zero"], ["above"]),
            node("Cast", ["above"], ["yes"], to=1),
            node("Sub", ["one", "yes"], ["no"]),
            node("Concat", ["yes", "no"], ["votes"], axis=1),
            node("ReduceSum", ["votes", "columns"], ["cast"]),
            node("Div", ["votes", "cast"], ["shares"]),
            node("MatMul", ["shares", "weights"], ["y"]),
        ],
        {"x": (3, 2)},
        ["y"],
        {
            "zero": np.float32(0.0),
            "one": np.float32(1.0),
            "columns": np.array([1]),
            "weights": np.arange(8, dtype=np.float32).reshape(4, 2),
        },
    )
    rows = list(np.random.default_rng(3).normal(size=(8, 3, 2)).astype(np.float32))
    compilation = compile(proto, calibration=rows, smooth="piecewise")
    output = execute(compilation.program, compilation.weights, rows[:1])
    (reference,) = run_plaintext(proto, [{"x": rows[0]}], ["y"]).values()
    np.testing.assert_allclose(
        output.outputs["y"], reference.reshape(3, 2).astype(float), atol=2e-3
    )


def test_what_lines_do_not_follow_is_refused() -> None:
    proto = single("Reciprocal", [(1, 2)])
    name = proto.graph.input[0].name
    with pytest.raises(UnsupportedModel, match="lines"):
        compile(proto, calibration=[{name: np.array([[1e-3, 500.0]])}], smooth="piecewise")
    # What is said is the table's range, a power of two beyond what was measured.
    with pytest.raises(UnsupportedModel, match="lines do not come close enough to it from -8 to 8"):
        compile(proto, calibration=[{name: np.array([[-2.5, 3.0]])}], smooth="piecewise")


@pytest.mark.parametrize(
    "change", [{"index_bits": 5}, {"index_bits": 13}, {"bits": 8}, {"low": 1 << 50}, {"low": 0.5}]
)
def test_tables_that_are_none_are_refused(change: dict[str, Any]) -> None:
    public = json.loads(compiled("Sigmoid")[0].program.to_public_bytes())
    (operation,) = (entry for entry in public["operations"] if entry["op"] == "piecewise")
    operation |= change
    with pytest.raises(InvalidProgram, match="piecewise"):
        Program.from_public_bytes(
            json.dumps(public, sort_keys=True, separators=(",", ":")).encode()
        )
