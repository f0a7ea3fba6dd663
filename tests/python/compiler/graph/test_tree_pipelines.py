"""What scikit-learn does to columns before trees is part of their tests: rows at a threshold, and a
float beside it, end where ONNX Runtime ends."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from tests.python.compiler.graph.single import Array

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.codec import by_front
from privet.compiler.graph.order import number_at, places
from privet.compiler.graph.tree_columns import trace
from privet.compiler.graph.tree_scalers import fold_scalers

ROWS = 240
_RANDOM = np.random.default_rng(7)
INCOME = np.exp(_RANDOM.normal(10, 1, (ROWS, 2))).astype(np.float32)
AGE = _RANDOM.uniform(18, 90, (ROWS, 2)).astype(np.float32)
RATE = (_RANDOM.normal(0, 1e-4, (ROWS, 1))).astype(np.float32)
KIND = _RANDOM.integers(0, 5, (ROWS, 1)).astype(np.float32)
X = np.hstack([INCOME, AGE, RATE, KIND])
SCORE = np.log(X[:, 0]) + 0.05 * X[:, 2] + 4e3 * X[:, 4] + (X[:, 5] == 2)
WHICH = np.digitize(SCORE, np.quantile(SCORE, [0.5, 0.8]))
HOLES = np.where(_RANDOM.random(X.shape) < 0.15, np.float32(np.nan), X)


def forest(**options: Any) -> RandomForestClassifier:
    return RandomForestClassifier(8, max_depth=5, random_state=0, **options)


COLUMNS = ColumnTransformer(
    [
        ("income", StandardScaler(), [0, 1]),
        ("age", MinMaxScaler(), [2, 3]),
        ("kind", OneHotEncoder(handle_unknown="ignore", sparse_output=False), [5]),
        ("rate", "passthrough", [4]),
    ]
)
BINS = KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf")
UNION = FeatureUnion(
    [("robust", RobustScaler()), ("most", MaxAbsScaler()), ("is", Binarizer(threshold=0.5))]
)
NESTED = ColumnTransformer(
    [
        ("money", make_pipeline(SimpleImputer(), RobustScaler(), MinMaxScaler()), [0, 1, 4]),
        (
            "kind",
            make_pipeline(
                SimpleImputer(strategy="most_frequent"),
                OneHotEncoder(drop="first", sparse_output=False),
            ),
            [5],
        ),
        ("age", make_pipeline(StandardScaler(), SimpleImputer(strategy="median")), [2, 3]),
    ]
)
PIPELINES: Mapping[str, tuple[Any, Array, Array]] = {
    "columns": (make_pipeline(COLUMNS, forest()), X, WHICH),
    "union": (make_pipeline(UNION, GradientBoostingRegressor(n_estimators=12)), X, SCORE),
    "clipped": (make_pipeline(MinMaxScaler(clip=True), ExtraTreesRegressor(6)), X, SCORE),
    "nested": (make_pipeline(NESTED, forest()), X, WHICH),
    "selected": (make_pipeline(StandardScaler(), SelectKBest(k=3), forest()), X, WHICH),
    "bagged": (
        make_pipeline(StandardScaler(), BaggingClassifier(max_features=0.5, random_state=0)),
        X,
        WHICH,
    ),
    "boosted": (
        make_pipeline(COLUMNS, AdaBoostClassifier(n_estimators=5, random_state=0)),
        X,
        WHICH,
    ),
    "stacked": (
        make_pipeline(StandardScaler(), StackingClassifier([("a", forest())], cv=2)),
        X,
        WHICH,
    ),
}


def exported(pipeline: Any, x: Array, y: Array) -> onnx.ModelProto:
    """The pipeline, fitted and exported without maps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        last = pipeline.fit(x, y).steps[-1][1]
        options = {id(last): {"zipmap": False}} if hasattr(last, "predict_proba") else None
        opsets = {"": 17, "ai.onnx.ml": 3}
        proto: onnx.ModelProto = to_onnx(pipeline, x[:1], options=options, target_opset=opsets)
        return proto


def near_tests(proto: onnx.ModelProto, x: Array, count: int = 400) -> Array:
    """Rows of `x` with numbers at the thresholds of trees and up to two floats beside."""
    rng = np.random.default_rng(3)
    rows = x[rng.integers(len(x), size=count)].copy()
    result = fold_scalers(proto)
    tables = trace(result.graph)
    inputs = [entry.name for entry in result.graph.input]
    for node in result.graph.node:
        if not node.op_type.startswith("TreeEnsemble"):
            continue
        columns = tables[node.input[0]].columns
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        features = np.array(attributes["nodes_featureids"])
        values = np.array(attributes["nodes_values"], np.float32)
        branches = np.array([mode != b"LEAF" for mode in attributes["nodes_modes"]])
        for feature, column in enumerate(columns):
            place = inputs.index(column.source) + column.place
            thresholds = values[(features == feature) & branches & (np.abs(values) < 1e30)]
            if thresholds.size:
                amounts = number_at(
                    places(rng.choice(thresholds, count)) + rng.integers(-2, 3, count)
                )
                rows[:, place] = np.where(rng.random(count) < 0.7, amounts, rows[:, place])
    return rows


def reference(proto: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


def compare(proto: onnx.ModelProto, inputs: Mapping[str, Array], error: float = 1e-5) -> None:
    """Asserts that all rows give what ONNX Runtime gives."""
    rows = len(next(iter(inputs.values())))
    samples = [{name: x[row : row + 1] for name, x in inputs.items()} for row in range(0, rows, 8)]
    calibration = samples if error > 1e-4 else None
    compiled = compile(proto, batch=rows, smooth="piecewise", calibration=calibration)
    assert all(entry.order for entry in compiled.program.inputs)
    outputs = execute(compiled.program, compiled.weights, inputs).outputs
    for name, expected in reference(proto, inputs).items():
        actual = np.asarray(outputs[name]).reshape(expected.shape)
        if expected.dtype.kind == "f":
            spread = max(float(np.ptp(expected)), 1.0)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=error * spread)
        else:
            assert np.array_equal(actual, expected)


@pytest.mark.parametrize("name", PIPELINES)
def test_rows_at_thresholds_go_the_same_way(name: str) -> None:
    proto = exported(*PIPELINES[name])
    rows = near_tests(proto, X)
    if name == "nested":  # its encoder knows whole categories alone
        rows[:, 5] = np.clip(np.trunc(rows[:, 5]), 0, 4)
    # What is done with the results of trees is in fixed point.
    compare(proto, {"X": rows}, 2e-3 if name in ("bagged", "boosted", "stacked") else 1e-5)


@pytest.mark.parametrize("before", ["imputers", "scalers"])
def test_missing_values_go_where_what_fills_them_in_would(before: str) -> None:
    pipeline = make_pipeline(NESTED, forest()) if before == "imputers" else PIPELINES["columns"][0]
    proto = exported(pipeline, HOLES if before == "imputers" else X, WHICH)
    compare(proto, {"X": HOLES})


def apart(rows: Array) -> dict[str, Array]:
    """A table as one input for each column, the last of whole numbers."""
    columns = {f"column{place}": rows[:, place : place + 1] for place in range(5)}
    return {**columns, "kind": rows[:, 5:].astype(np.int64)}


@pytest.mark.parametrize("encoder", [OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder()])
def test_each_column_may_be_an_input_and_a_category_a_whole_number(encoder: Any) -> None:
    columns = ColumnTransformer(
        [
            ("age", StandardScaler(), [2, 3]),
            ("kind", encoder, [5]),
            ("money", make_pipeline(StandardScaler(), MinMaxScaler()), [0, 1, 2]),
        ],
        sparse_threshold=0,
    )
    pipeline = make_pipeline(columns, forest()).fit(X, WHICH)
    options = {id(pipeline.steps[-1][1]): {"zipmap": False}}
    kinds = {np.dtype(np.int64): Int64TensorType, np.dtype(np.float32): FloatTensorType}
    types = [(name, kinds[x.dtype]([None, 1])) for name, x in apart(X).items()]
    proto = to_onnx(pipeline, initial_types=types, options=options, target_opset=17)
    rows = near_tests(proto, X)
    rows[:, 5] = np.clip(np.trunc(rows[:, 5]), 0, 4)
    compare(proto, apart(rows))  # of which no pipeline reads column 4


def test_what_a_linear_model_reads_too_stays_behind_its_scaler() -> None:
    voters = [("trees", forest()), ("linear", LogisticRegression())]
    proto = exported(
        make_pipeline(StandardScaler(), VotingClassifier(voters, flatten_transform=False)), X, WHICH
    )
    assert fold_scalers(proto) is proto


def test_a_union_with_components_stays() -> None:
    from sklearn.decomposition import PCA

    union = FeatureUnion([("components", PCA(2)), ("scaled", StandardScaler())])
    proto = exported(Pipeline([("both", union), ("trees", forest())]), X, WHICH)
    assert fold_scalers(proto) is proto


def test_numbers_of_classes_are_no_places_of_floats() -> None:
    """What an ArgMax makes is a whole number without a scale, as places of inputs are."""
    proto = exported(make_pipeline(BINS, forest()), X, WHICH)
    compiled = compile(proto, calibration=[row[None] for row in X])
    expected = reference(proto, {"X": X})["probabilities"]
    for row, chances in zip(X, expected, strict=True):
        inputs = by_front(compiled.program, {"X": row[None]})
        output = execute(compiled.program, compiled.weights, inputs).outputs["probabilities"]
        np.testing.assert_allclose(output[0], chances, rtol=0, atol=1e-5)
