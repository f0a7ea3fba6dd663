"""Smooth activations: imported alone or composed, they become polynomials that stay close."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.python.compiler.graph.single import expected, model, node, samples, single

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph import import_model
from privet.compiler.graph.function import SMOOTH, Function, Step, combine
from privet.compiler.passes import simplify
from privet.compiler.passes.fit_polynomials import HIGHEST_DEGREE, fit
from privet.errors import UnsupportedModel

ERROR = 2.0**-12


def check_smooth(proto: onnx.ModelProto, *, polynomials: int = 1) -> list[int]:
    """Asserts that the model compiles to polynomials and agrees; their degrees."""
    inputs = samples(proto)
    compiled = compile(proto, bits=50, scale=16, calibration=[inputs], activation_error=ERROR)
    degrees = [o.attributes["degree"] for o in compiled.program.operations if o.op == "polynomial"]
    assert len(degrees) == polynomials
    outputs = execute(compiled.program, compiled.weights, inputs).outputs
    for output, reference in zip(proto.graph.output, expected(proto, inputs), strict=True):
        scale = max(1.0, float(np.abs(reference).max()))
        np.testing.assert_allclose(outputs[output.name], reference, rtol=0, atol=8 * ERROR * scale)
    return degrees


@pytest.mark.parametrize("operator", ["Tanh", "Softplus", "Erf"])
def test_smooth_operators(operator: str) -> None:
    check_smooth(single(operator, [(3, 5)]))


@pytest.mark.parametrize("smooth", ["polynomial", "function", "piecewise"])
@pytest.mark.parametrize(
    ("operator", "low", "high"),
    [
        *(("Sinh", -3.0, 3.0), ("Cosh", -3.0, 3.0), ("Asinh", -4.0, 4.0), ("Asinh", -900.0, 900.0)),
        *(("Acosh", 1.5, 9.0), ("Atan", -4.0, 4.0), ("Atan", -900.0, 900.0)),
    ],
)
def test_hyperbolic_and_inverse_functions(
    operator: str, low: float, high: float, smooth: str
) -> None:
    """`Asinh` is the logarithm of economists, for amounts of either sign."""
    proto = single(operator, [(3, 5)])
    x = np.linspace(low, high, 15, dtype=np.float32).reshape(3, 5)
    if smooth == "polynomial" and (operator == "Acosh" or high == 900):
        # No polynomial is close.
        with pytest.raises(UnsupportedModel):
            compile(proto, calibration=[x], smooth=smooth)
        return
    compiled = compile(proto, calibration=[x], smooth=smooth)
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    (reference,) = expected(proto, {"x0": x})
    error = 4e-3 * float(np.abs(reference).max())
    np.testing.assert_allclose(output, reference, rtol=0, atol=error)


def test_a_sigmoid_that_is_not_the_last_step() -> None:
    nodes = [node("Sigmoid", ["x"], ["s"]), node("Relu", ["s"], ["y"])]
    check_smooth(model(nodes, {"x": (3, 5)}, ["y"]))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str) -> None:
    check_smooth(single("Gelu", [(3, 5)], approximate=approximate))


@pytest.mark.parametrize(("exponent", "degree"), [(2.0, 2), (3.0, 3), (5.0, 5)])
def test_whole_powers_are_exact_polynomials(exponent: float, degree: int) -> None:
    (highest,) = check_smooth(single("Pow", [(3, 5), np.float32(exponent)]))
    assert highest == degree


def test_powers_by_column() -> None:
    """Equal ones need not be side by side; fractions are of positive numbers."""
    exponents = np.array([0.5, 2.0, 0.0, 1.3, 2.0, -0.7], np.float32)
    proto = single("Pow", [(2, 6), exponents])
    (name,) = (entry.name for entry in proto.graph.input)
    x = np.random.default_rng(0).uniform(0.5, 3.0, (2, 6)).astype(np.float32)
    compiled = compile(proto, calibration=[{name: x}], smooth="piecewise")
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    np.testing.assert_allclose(output, x**exponents, rtol=0, atol=4e-3)
    with pytest.raises(UnsupportedModel, match="not by column"):
        import_model(single("Pow", [(6, 2), exponents[:, None]]), name="m")


def test_a_power_of_one_more_is_left_as_it_is_outside_of_power_transforms() -> None:
    """Whose branches for the other sign nobody reads."""
    nodes = [
        node("Identity", ["x"], ["s"]),
        node("Div", ["s", "s"], ["one"]),
        node("Add", ["s", "one"], ["base"]),
        node("Pow", ["base", "two"], ["y"]),
    ]
    proto = model(nodes, {"x": (1, 3)}, ["y"], {"two": np.float32(2.0)})
    scaler = node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    proto.graph.node[0].CopyFrom(scaler)
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
    x = np.array([[-0.5, 0.25, -0.75]], np.float32)
    compiled = compile(proto, calibration=[{"x": x}])
    output = execute(compiled.program, compiled.weights, [x]).outputs["y"]
    np.testing.assert_allclose(output, (x + 1.0) ** 2, rtol=0, atol=2e-3)


@pytest.mark.parametrize("exponent", [0.0, 17.0])
def test_other_powers_are_refused(exponent: float) -> None:
    with pytest.raises(UnsupportedModel, match="exponent"):
        import_model(single("Pow", [(3,), np.float32(exponent)]), name="m")


def test_a_composition_is_one_polynomial() -> None:
    nodes = [
        node("Sigmoid", ["x"], ["gate"]),
        node("Mul", ["x", "gate"], ["silu"]),
        node("Add", ["silu", "one"], ["y"]),
    ]
    check_smooth(model(nodes, {"x": (2, 4)}, ["y"], {"one": np.float32(1)}))


def test_a_product_of_different_values_stays_a_product() -> None:
    nodes = [node("Sigmoid", ["a"], ["gate"]), node("Mul", ["gate", "b"], ["y"])]
    proto = model(nodes, {"a": (2, 4), "b": (2, 4)}, ["y"])
    kinds = [type(n.operation).__name__ for n in simplify(import_model(proto, name="m")).nodes]
    assert kinds == ["Elementwise", "Mul"]


def test_linear_compositions_are_left_alone() -> None:
    nodes = [node("Add", ["x", "x"], ["two"]), node("Mul", ["two", "half"], ["y"])]
    proto = model(nodes, {"x": (2, 4)}, ["y"], {"half": np.float32(0.5)})
    graph = simplify(import_model(proto, name="m"))
    assert all(type(n.operation).__name__ != "Elementwise" for n in graph.nodes)


def test_what_functions_share_is_kept_once() -> None:
    square = combine("mul", Function(), Function())
    total = combine("add", combine("mul", square, square), combine("scale", square, constant=2.0))
    assert [step.name for step in total.steps] == ["mul", "mul", "scale", "add"]
    assert total.degree == 4
    x = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(total(x), x**4 + 2 * x**2)


def test_a_function_of_a_function() -> None:
    outer = Function((Step("tanh", (0,)), Step("mul", (0, 1))))
    inner = Function((Step("scale", (0,), 3.0), Step("shift", (1,), 1.0)))
    x = np.linspace(-1, 1, 7)
    np.testing.assert_allclose(outer.after(inner)(x), (3 * x + 1) * np.tanh(3 * x + 1))


def values(polynomial: Any, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(
        np.polynomial.chebyshev.chebval(x / polynomial.bound, polynomial.coefficients)
    )


@given(
    name=st.sampled_from(sorted(set(SMOOTH) - {"log", "reciprocal", "relu", "sqrt"})),
    reach=st.floats(0.1, 8.0),
    error=st.sampled_from([2.0**-6, 2.0**-10, 2.0**-14]),
)
@settings(deadline=None)
def test_fits_keep_their_error_on_the_whole_interval(name: str, reach: float, error: float) -> None:
    function = Function((Step(name, (0,)),))
    polynomial = fit(function, reach, 1.5, error)
    assert polynomial is not None
    assert polynomial.bound == 1.5 * reach
    x = np.linspace(-polynomial.bound, polynomial.bound, 999)
    largest = np.abs(function(x)).max()
    assert np.abs(values(polynomial, x) - function(x)).max() <= 1.01 * error * largest


def test_degrees_fill_their_depth() -> None:
    for error in (2.0**-4, 2.0**-8, 2.0**-12, 2.0**-16):
        polynomial = fit(Function((Step("softplus", (0,)),)), 4.0, 2.0, error)
        assert polynomial is not None
        assert (
            polynomial.degree <= 2 or polynomial.degree + 1 == 1 << polynomial.degree.bit_length()
        )


def test_a_fit_is_not_widened_to_where_the_function_explodes() -> None:
    """The model's own polynomial of degree 31 explodes beyond [-1, 1]."""
    steps = [Step("scale", (0,), 2.0)]
    older, newer = 0, 0
    for _ in range(30):  # Chebyshev's recurrence; T_0 is left out, which makes no difference here
        steps.append(Step("mul", (1, newer)))
        steps.append(Step("sub", (len(steps), older)))
        older, newer = newer, len(steps)
    function = Function(tuple(steps))
    polynomial = fit(function, 0.95, 2.0, 2.0**-10)
    assert polynomial is not None
    assert 0.95 <= polynomial.bound < 1.1
    x = np.linspace(-0.95, 0.95, 99)
    np.testing.assert_allclose(values(polynomial, x), function(x), atol=0.1)


def test_what_no_polynomial_follows_is_refused() -> None:
    assert fit(Function((Step("sigmoid", (0,)),)), 4000.0, 2.0, 2.0**-10) is None
    proto = single("Tanh", [(2, 3)])
    with pytest.raises(UnsupportedModel, match=str(HIGHEST_DEGREE)):
        compile(proto, bits=50, scale=16, calibration=[np.full((2, 3), 4000.0, np.float32)])


def test_a_polynomial_is_as_close_as_the_function_is_small() -> None:
    """Kernels of distances: at minus the largest distance the exponential is thousands."""
    nodes = [
        node("Sub", ["x", "c"], ["d"]),
        node("ReduceSumSquare", ["d", "axis"], ["s"], keepdims=0),
        node("Mul", ["s", "width"], ["e"]),
        node("Exp", ["e"], ["y"]),
    ]
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((1, 4, 6)).astype(np.float32)
    constants: dict[str, Any] = {"c": centres, "axis": np.array([2]), "width": np.float32(-0.2)}
    proto = model(nodes, {"x": (1, 1, 6)}, ["y"], constants)
    rows = generator.standard_normal((40, 1, 1, 6)).astype(np.float32)
    compiled = compile(proto, bits=50, scale=16, calibration=list(rows[:32]))
    for x in rows[32:]:
        (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
        np.testing.assert_allclose(output, expected(proto, {"x": x})[0], rtol=0, atol=2e-3)
