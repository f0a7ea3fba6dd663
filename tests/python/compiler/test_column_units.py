"""Tables whose columns differ in size: an income beside a probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from skl2onnx import to_onnx
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, PowerTransformer, StandardScaler
from sklearn.svm import SVR
from tests.python.compiler.graph.single import model, node

import privet
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.executor.codec import as_tensor
from privet.compiler.executor.reference import run_plaintext
from privet.compiler.executor.samples import fill
from privet.errors import InputError

_RNG = np.random.default_rng(0)
X = np.column_stack(
    [
        _RNG.lognormal(11, 0.6, 300),  # dollars
        _RNG.uniform(0, 2e-4, 300),  # a probability
        _RNG.integers(18, 90, 300),  # years
        _RNG.uniform(0, 255, 300),  # a pixel
    ]
).astype(np.float32)
Z = (X - X.mean(0)) / X.std(0)
Y = Z @ np.array([1.0, 1.0, 0.5, -0.5])
ROWS = [row[None] for row in X[:150]]
LIMIT = 1e-3
"""The largest error, of the output's spread."""

MLP = MLPRegressor(hidden_layer_sizes=(8,), max_iter=300, random_state=0)


def error(compiled: Compiled, output: str, rows: Any) -> float:
    """The largest error on rows, of the spread of what ONNX Runtime gives."""
    (entry,) = compiled.program.given
    plain = run_plaintext(compiled.source, [{entry.name: row} for row in rows], [output])[output]
    reference = as_tensor(plain)
    outputs = [
        execute(compiled.program, compiled.weights, fill(compiled.program, [row])[0])
        for row in rows
    ]
    numbers = np.concatenate([as_tensor(run.outputs[output]) for run in outputs])
    return float(np.abs(numbers - reference).max() / np.ptp(np.asarray(reference, np.float64)))


@pytest.mark.parametrize("last", [MLP, SVR()], ids=["network", "kernel"])
def test_an_income_beside_a_probability(last: Any) -> None:
    proto = to_onnx(make_pipeline(StandardScaler(), last).fit(X[:150], Y[:150]), X[:1])
    compiled = compile(proto, smooth="piecewise", calibration=ROWS)
    front = compiled.program.front
    assert front is not None
    (factors,) = front.steps.constants.values()
    assert np.array_equal(np.exp2(np.round(np.log2(factors))), factors)
    # The largest of each column is brought below 1, and above a half.
    largest = np.abs(X[:150]).max(axis=0) * factors[0]
    assert ((largest < 1) & (largest >= 0.5)).all()
    assert error(compiled, "variable", [row[None] for row in X[150:250]]) < LIMIT


@pytest.mark.parametrize(
    "estimator",
    [LinearDiscriminantAnalysis(), LogisticRegression(C=1e6, solver="newton-cholesky")],
    ids=["discriminant", "logistic"],
)
def test_probabilities_are_accurate_where_scores_are_large(estimator: Any) -> None:
    """Of scores up to hundreds a thousandth of the spread is much of a probability."""
    proto = to_onnx(estimator.fit(X[:150], Y[:150] > 0.3), X[:1])
    compiled = compile(proto, calibration=ROWS)
    assert error(compiled, "output_probability", [row[None] for row in X[150:]]) < LIMIT


@pytest.mark.parametrize(
    ("estimator", "target", "output"),
    [
        (GaussianNB(), Y > 0.3, "output_probability"),
        (make_pipeline(PolynomialFeatures(3), StandardScaler(), Ridge()), Y, "variable"),
    ],
    ids=["squares", "products"],
)
def test_squares_and_products_of_columns_keep_units(
    estimator: Any, target: Any, output: str
) -> None:
    """Those of dollars in their own numbers have no room in any ring."""
    proto = to_onnx(estimator.fit(X[:150], target[:150]), X[:1])
    compiled = compile(proto, calibration=ROWS)
    assert compiled.program.front is not None
    assert error(compiled, output, [row[None] for row in X[150:]]) < LIMIT


@pytest.mark.parametrize("client_side", [True, False])
def test_powers_of_columns_that_differ_in_size(client_side: bool) -> None:
    """Exponents may be negative; clients compute powers in floating point."""
    pipeline = make_pipeline(PowerTransformer(), LogisticRegression()).fit(
        Z[:150] * 3, Y[:150] > 0.3
    )
    rows = [3 * row[None].astype(np.float32) for row in Z]
    compiled = compile(
        to_onnx(pipeline, rows[0]), smooth="piecewise", calibration=rows, client_side=client_side
    )
    assert (compiled.program.front is not None) == client_side
    assert error(compiled, "output_probability", rows[150:]) < 2 * LIMIT


def test_columns_keep_their_units_where_one_scale_does() -> None:
    proto = to_onnx(LogisticRegression().fit(Z[:150], Y[:150] > 0), Z[:1].astype(np.float32))
    compiled = compile(proto, calibration=[row[None].astype(np.float32) for row in Z[:150]])
    assert compiled.program.front is None


@pytest.mark.parametrize("with_headroom", [True, False])
def test_nothing_measured_is_told_where_places_of_truncations_tell_nothing(
    with_headroom: bool,
) -> None:
    proto = sums()
    options: dict[str, Any] = {"headroom": 18} if with_headroom else {}
    compiled = compile(proto, calibration=ROWS, **options)
    assert (compiled.program.front is None) == with_headroom


def sums() -> onnx.ModelProto:
    """What moves a table in several ways before anything is multiplied."""
    weights = {
        "w": (1 / X.std(0)).astype(np.float32),
        "to": np.array([4, 1]),
        "first": np.array([1]),
        "end": np.array([3]),
        "axis": np.array([1]),
        "v": np.array([[4e3, 0.0, 1e3, 0.0], [0.0, 0.01, 0.0, 0.02]], np.float32),
    }
    nodes = [
        node("Reshape", ["x", "to"], ["column"]),
        node("Transpose", ["column"], ["row"], perm=[1, 0]),
        node("Mul", ["row", "w"], ["z"]),
        node("Slice", ["x", "first", "end", "axis"], ["two"]),
        node("Neg", ["two"], ["less"]),
        node("MatMul", ["less", "v"], ["more"]),
        node("Add", ["z", "more"], ["y"]),
    ]
    return model(nodes, {"x": (1, 4)}, ["y"], weights)


def test_whatever_reads_the_table_gets_its_numbers() -> None:
    compiled = compile(sums(), calibration=ROWS)
    assert error(compiled, "y", [row[None] for row in X[150:200]]) < LIMIT


def test_a_flag_that_no_sample_sets_is_not_lost() -> None:
    rows = [np.array([[*row[:2], index >= 150]], np.float32) for index, row in enumerate(X[:250])]
    weights = {"w": np.array([[1e-5], [5e3], [3.0]], np.float32)}
    proto = model([node("MatMul", ["x", "w"], ["y"])], {"x": (1, 3)}, ["y"], weights)
    compiled = compile(proto, calibration=rows[:150])
    assert compiled.program.front is not None
    assert error(compiled, "y", rows[100:]) < LIMIT


def test_what_is_too_large_for_its_column_is_named() -> None:
    compiled = compile(sums(), calibration=ROWS)
    row = X[:1].copy()
    row[0, 1] = 1.0
    with pytest.raises(InputError, match="input x in units of its columns reaches 4096"):
        execute(compiled.program, compiled.weights, fill(compiled.program, [row])[0])


@pytest.mark.parametrize(
    ("operator", "others", "attributes"),
    [
        ("Identity", [], {}),
        ("Neg", [], {}),
        ("Slice", ["first", "end", "axis"], {}),
        ("Concat", ["y"], {"axis": 1}),
    ],
)
def test_outputs_that_only_move_the_table_are_in_the_numbers_of_the_model(
    operator: str, others: list[str], attributes: dict[str, Any]
) -> None:
    weights = {
        "w": (1 / X.std(0)).astype(np.float32)[:, None],
        "first": np.array([1]),
        "end": np.array([3]),
        "axis": np.array([1]),
    }
    nodes = [
        node("MatMul", ["x", "w"], ["y"]),
        node(operator, ["x", *others], ["moved"], **attributes),
    ]
    compiled = compile(model(nodes, {"x": (1, 4)}, ["y", "moved"], weights), calibration=ROWS)
    assert compiled.program.front is not None
    for output in ("y", "moved"):
        assert error(compiled, output, [row[None] for row in X[150:200]]) < LIMIT


@pytest.mark.parametrize("suite", ["gmw", "fss"])
def test_parties_take_columns_in_units(suite: str) -> None:
    proto = to_onnx(make_pipeline(StandardScaler(), MLP).fit(X[:150], Y[:150]), X[:1])
    run = privet.run(proto, [X[200:201]], suite=suite, calibration=ROWS)
    assert run.max_fixed_point_error == 0
    assert run.max_abs_error < LIMIT * float(np.ptp(Y))


def test_an_input_for_each_column() -> None:
    """As exporters write pipelines on data frames: joined, the columns are one tensor."""
    names = ["dollars", "chance", "years", "pixel"]
    weights = np.array([[1.0], [1.0], [0.5], [-0.5]], np.float32)
    nodes = [
        node("Concat", names, ["row"], axis=1),
        node("Sub", ["row", "mean"], ["centred"]),
        node("Div", ["centred", "spread"], ["scaled"]),
        node("MatMul", ["scaled", "weights"], ["y"]),
    ]
    constants = {"mean": X.mean(0), "spread": X.std(0), "weights": weights}
    proto = model(nodes, dict.fromkeys(names, (None, 1)), ["y"], constants)
    rows = [{name: row[:, [k]] for k, name in enumerate(names)} for row in X[:, None]]
    compiled = compile(proto, calibration=rows[:150])
    plain = run_plaintext(proto, rows[150:], ["y"])["y"]
    numbers = np.concatenate(
        [
            execute(compiled.program, compiled.weights, fill(compiled.program, row)[0]).outputs["y"]
            for row in rows[150:]
        ]
    )
    assert float(np.abs(numbers - plain).max()) < LIMIT * float(np.ptp(np.asarray(plain, float)))


@pytest.mark.parametrize(("batch", "divisor"), [(1, "amount1"), (2, "amount1"), (1, "sum")])
def test_a_ratio_of_two_columns(batch: int, divisor: str) -> None:
    """A loan to an income, or to both, beside years: quotients were off by more than their
    spread."""
    rng = np.random.default_rng(1)
    amounts = np.column_stack([rng.uniform(1e3, 4e4, 40), rng.lognormal(10.5, 0.8, 40)])
    table = np.column_stack([amounts, rng.integers(18, 80, 40)]).astype(np.float32)
    means, spreads = np.append(table.mean(0), 0.5), np.append(table.std(0), 0.4)
    nodes = [
        *(node("Gather", ["x", f"at{place}"], [f"amount{place}"], axis=1) for place in (0, 1)),
        node("Add", ["amount0", "amount1"], ["sum"]),
        node("Div", ["amount0", divisor], ["ratio"]),
        node("Concat", ["x", "ratio"], ["joined"], axis=1),
        node("Sub", ["joined", "means"], ["centred"]),
        node("Div", ["centred", "spreads"], ["scaled"]),
        node("MatMul", ["scaled", "w"], ["score"]),
    ]
    for index, entry in enumerate(nodes):
        entry.name = f"{entry.op_type}{index}"
    weights = np.array([[0.5], [-0.3], [0.1], [1.0]], np.float32)
    places = {f"at{place}": np.array([place]) for place in (0, 1)}
    constants = {"means": means.astype(np.float32), "spreads": spreads.astype(np.float32)}
    proto = model(nodes, {"x": (1, 3)}, ["score"], {**places, **constants, "w": weights})
    rows = [row[None] for row in table]
    compiled = privet.compile(proto, calibration=rows, batch=batch)
    assert compiled.accuracy().relative < LIMIT
    if batch == 1:
        assert error(compiled, "score", rows) < LIMIT
