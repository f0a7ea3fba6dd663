"""What scikit-learn's exporter writes: the same labels, maps and numbers as ONNX Runtime gives."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from skl2onnx import to_onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor, VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier
from tests.combinations import combinations

import privet
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.codec import as_tensor
from privet.compiler.executor.reference import run_plaintext
from privet.errors import UnsupportedModel

_RANDOM = np.random.default_rng(0)
X = np.asarray(_RANDOM.standard_normal((160, 5)), np.float32)
TWO = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
THREE = np.array(["bright", "dim", "dark"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
NUMBERS = X[:, :2] @ np.array([[1.0, 2.0], [0.5, -1.0]])


WHICH = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)
FEW = WHICH[:40]
SHORT = DecisionTreeClassifier(max_depth=2)
WAVE = NUMBERS[:40, 0] + np.sin(3 * X[:40, 0])
ROUGH = Matern(nu=0.5) + WhiteKernel()
VOTERS = [("bayes", GaussianNB()), ("tree", SHORT), ("linear", LogisticRegression())]
VOTING = VotingClassifier(VOTERS, flatten_transform=False)


BINS = KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf")


def _mlp(kind: Any) -> Any:
    return kind(hidden_layer_sizes=(4,), max_iter=20, random_state=0)


MODELS: Mapping[str, tuple[Any, Any]] = {
    "logistic": (LogisticRegression(), TWO),
    "logistic, three": (LogisticRegression(), THREE),
    "svm": (LinearSVC(), TWO),
    "svm, three": (LinearSVC(), THREE),
    "ridge": (RidgeClassifier(), TWO),
    "perceptron": (Perceptron(), THREE),
    "discriminant": (LinearDiscriminantAnalysis(), THREE),
    "network": (_mlp(MLPClassifier), TWO),
    "network, three": (_mlp(MLPClassifier), THREE),
    "pipeline": (make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()), TWO),
    "scalers": (make_pipeline(MinMaxScaler(), RobustScaler(), LogisticRegression()), THREE),
    "bits": (make_pipeline(Binarizer(), LogisticRegression()), TWO),
    "components": (make_pipeline(PCA(2), LogisticRegression()), THREE),
    "regression": (LinearRegression(), NUMBERS),
    "regression by network": (_mlp(MLPRegressor), NUMBERS),
    "regression by svm": (LinearSVR(), NUMBERS[:, 0]),
    "regression by kernel svm": (SVR(kernel="linear"), NUMBERS[:, 0]),
    "regression by radial svm": (SVR(), NUMBERS[:, 0]),
    "radial svm": (SVC(), TWO),
    "radial svm, three": (SVC(decision_function_shape="ovo"), THREE),
    "radial svm, probable": (SVC(probability=True, random_state=0), TWO),
    "novelty": (OneClassSVM(), TWO),
    "whole numbers": (make_pipeline(BINS, OrdinalEncoder(), LogisticRegression()), TWO),
    "categories": (make_pipeline(Binarizer(), OneHotEncoder(), LogisticRegression()), THREE),
    "normalised by sums": (make_pipeline(Normalizer("l1"), LogisticRegression()), TWO),
    "boosted": (AdaBoostClassifier(n_estimators=4, random_state=0), TWO),
    "boosted, three": (AdaBoostClassifier(SHORT, n_estimators=3, random_state=0), WHICH),
    "boosted regression": (AdaBoostRegressor(n_estimators=4, random_state=0), NUMBERS[:, 0]),
    "one against one": (OneVsOneClassifier(LogisticRegression()), WHICH),
    "one against one by svm": (OneVsOneClassifier(LinearSVC()), WHICH),
    "neighbours": (KNeighborsClassifier(3), FEW),
    "averaged neighbours": (KNeighborsRegressor(3), NUMBERS[:40]),
    "outliers by neighbours": (LocalOutlierFactor(5, novelty=True), WAVE),
    "gaussian process": (GaussianProcessRegressor(), WAVE),
    "gaussian process with noise": (
        GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), normalize_y=True),
        WAVE,
    ),
    "gaussian process with a kink": (GaussianProcessRegressor(ROUGH), WAVE),
    "isotonic": (CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=3), TWO),
    "votes": (VOTING, WHICH),
    "powers": (make_pipeline(PowerTransformer(), LogisticRegression()), TWO),
    "normalised by lengths": (make_pipeline(Normalizer("l2"), LogisticRegression()), TWO),
}
SCORED: Mapping[str, tuple[Any, Any]] = {
    "stochastic": (SGDClassifier(loss="log_loss", random_state=0), THREE),
    "one against the rest": (OneVsRestClassifier(LogisticRegression()), THREE),
    "radial svm, votes": (SVC(), THREE),
    "polynomial svm, votes": (SVC(kernel="poly"), THREE),
    "sigmoid svm, votes": (SVC(kernel="sigmoid"), THREE),
    "probable svm": (SVC(probability=True, random_state=0), THREE),
}


@cache
def exported(name: str) -> onnx.ModelProto:
    """A model, fitted and exported as users do it."""
    estimator, targets = {**MODELS, **SCORED}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X[: len(targets)], targets)
        proto: onnx.ModelProto = to_onnx(estimator, X[:1])
        return proto


def same(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Asserts equal labels and keys, and near numbers."""
    assert list(actual) == list(expected)
    for name, array in expected.items():
        if array.dtype == object:
            assert [list(entry) for entry in actual[name]] == [list(entry) for entry in array]
        result, reference = as_tensor(actual[name]), as_tensor(array)
        assert result.shape == reference.shape
        if reference.dtype.kind == "f":
            np.testing.assert_allclose(result, reference, rtol=2e-3, atol=5e-3)
        else:
            assert result.tolist() == reference.tolist()


def compared(name: str, reveal: str) -> None:
    """Compiles a model and compares it with ONNX Runtime on some samples."""
    rows = [row[None] for row in X[:60]]
    options: dict[str, Any] = {"bits": 44, "scale": 16, "smooth": "piecewise"}
    compiled = compile(exported(name), reveal=reveal, calibration=rows, **options)
    outputs = [output.name for output in compiled.source.graph.output]
    for row in rows[:30]:
        reference = run_plaintext(compiled.source, [{"X": row}], outputs)
        same(execute(compiled.program, compiled.weights, [row]).outputs, reference)


def test_a_sequence_of_probabilities_is_an_output_for_each_label() -> None:
    labels = np.column_stack([WHICH, TWO])
    estimator = MultiOutputClassifier(LogisticRegression()).fit(X, labels)
    proto = to_onnx(estimator, X[:1], options={"zipmap": False})
    rows = [row[None] for row in X[:40]]
    run = privet.run(proto, rows[:1], calibration=rows, bits=42, scale=16)
    assert list(run.outputs) == ["label", "probabilities_0", "probabilities_1"]
    same(run.outputs, run.reference)
    chances = list(run.outputs.values())[1:]
    for chance, expected in zip(chances, estimator.predict_proba(X[:1]), strict=True):
        np.testing.assert_allclose(as_tensor(chance).tolist(), expected, rtol=0, atol=5e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_bayes_of_categories(dtype: type) -> None:
    """Its rows of logarithms are looked up at places that a cast rounds."""
    x: Any = np.asarray(np.random.default_rng(1).integers(0, [3, 5, 2, 7], (160, 4)), dtype)
    bayes = CategoricalNB().fit(x, (x[:, 1] + x[:, 3] > 5).astype(int) + (x[:, 0] == 2))
    proto = to_onnx(bayes, x[:1])
    compiled = compile(proto, calibration=[row[None] for row in x[:60]], smooth="piecewise")
    outputs = [output.name for output in proto.graph.output]
    for row in x:
        reference = run_plaintext(proto, [{"X": row[None]}], outputs)
        same(execute(compiled.program, compiled.weights, [row[None]]).outputs, reference)
    run = privet.run(proto, x[:1], calibration=[row[None] for row in x[:60]])
    assert run.max_fixed_point_error == 0


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_onnx_runtime_gives(name: str) -> None:
    compared(name, "outputs")


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, (_, targets) in MODELS.items()
        if targets.ndim == 1 and targets.dtype.kind in "iU"
    ],
)
def test_a_label_alone(name: str) -> None:
    compared(name, "label")


ALONE = ("probable svm",)
"""What the client must compute; the parties can take the last steps of others, at a price."""


REFUSED: Mapping[str, tuple[Any, Any, str]] = {
    "neighbours by distance": (
        KNeighborsRegressor(3, weights="distance"),
        WAVE,
        r"wei_Reciprocal .*weights='uniform' gives the same numbers",
    ),
    "gaussian process of classes": (
        GaussianProcessClassifier(),
        TWO[:40],
        r"solve_Solve \(GaussianProcessClassifier\).* take SVC",
    ),
    "distances by one operator": (
        GaussianProcessRegressor(),
        WAVE,
        r"CDist.* Export without the option",
    ),
    "quantiles": (
        make_pipeline(QuantileTransformer(n_quantiles=10), LogisticRegression()),
        TWO,
        r"\(QuantileTransformer\).* Transform at the client",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told_with_what_to_do(name: str) -> None:
    estimator, targets, message = REFUSED[name]
    estimator.fit(X[: len(targets)], targets)
    options = {GaussianProcessRegressor: {"optim": "cdist"}} if "distances" in name else None
    proto = to_onnx(estimator, X[:1], options=options)
    rows = [row[None] for row in X[:60]]
    with pytest.raises(UnsupportedModel, match=message) as refusal:
        compile(proto, calibration=rows, smooth="piecewise")
    assert len(refusal.value.problems) == 1


def test_a_gaussian_process_of_classes_gives_labels_alone() -> None:
    """As the message says: ONNX Runtime runs what is left without probabilities. In fixed point a
    row near the border may be on its other side."""
    process = GaussianProcessClassifier().fit(X[:40], TWO[:40])
    rows = [row[None] for row in X]
    gp = compile(to_onnx(process, X[:1]), calibration=rows[:40], smooth="piecewise", reveal="label")
    outputs = [execute(gp.program, gp.weights, [row]).outputs["output_label"] for row in rows]
    assert np.mean(np.ravel(outputs) == process.predict(X)) > 0.97
    plain = run_plaintext(gp.source, [{"X": row} for row in rows], ["output_label"])
    assert np.ravel(plain["output_label"]).tolist() == process.predict(X).tolist()


def test_equal_weights_are_what_the_exporter_writes_of_distances() -> None:
    """As the message says."""
    estimators = [
        KNeighborsRegressor(3, weights=kind).fit(X[:40], WAVE) for kind in ("distance", "uniform")
    ]
    proto = to_onnx(estimators[0], X[:1])
    outputs = run_plaintext(proto, [{"X": row[None]} for row in X[40:80]], ["variable"])["variable"]
    expected = estimators[1].predict(X[40:80])
    np.testing.assert_allclose(np.ravel(outputs).tolist(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SCORED)
def test_a_head_that_tells_less_needs_the_servers_leave(name: str) -> None:
    if name not in ALONE:
        document = json.loads(compile(exported(name), smooth="piecewise").program.to_public_bytes())
        assert {"piecewise", "mul"} <= {operation["op"] for operation in document["operations"]}
    else:
        with pytest.raises(UnsupportedModel, match="--reveal scores"):
            compile(exported(name))
    compared(name, "scores")


@pytest.mark.parametrize(
    ("suite", "reveal", "name"),
    [
        ("gmw", "outputs", "network, three"),
        ("fss", "label", "network, three"),
        ("gmw", "label", "polynomial svm, votes"),
        ("fss", "outputs", "radial svm, three"),
        ("gmw", "outputs", "isotonic"),
        ("fss", "outputs", "isotonic"),
        ("gmw", "outputs", "votes"),
        ("fss", "outputs", "votes"),
        ("gmw", "outputs", "powers"),
        ("fss", "outputs", "powers"),
    ],
)
def test_parties_give_the_same(suite: str, reveal: str, name: str) -> None:
    rows = [row[None] for row in X[:40]]
    result = privet.run(exported(name), rows[:1], suite=suite, reveal=reveal, calibration=rows)
    same(result.outputs, result.reference)
    assert result.argmax_agrees
    assert result.max_fixed_point_error == 0
    assert list(result.outputs) == ["output_label", "output_probability"][: len(result.outputs)]


@pytest.mark.parametrize(
    ("name", "suite"),
    combinations([name for name in MODELS if name.startswith("gaussian")], ["gmw", "fss"]),
)
def test_parties_give_the_same_number(suite: str, name: str) -> None:
    rows = [row[None] for row in X[:60]]
    result = privet.run(exported(name), rows[50:51], suite=suite, calibration=rows)
    same(result.outputs, result.reference)
    assert result.max_fixed_point_error == 0


@pytest.mark.parametrize("suite", ["gmw", pytest.param("fss", marks=pytest.mark.slow)])
def test_a_gaussian_process_tells_its_deviation(suite: str) -> None:
    """An output without a shape; far from points that it was fitted on deviations are larger."""
    process = GaussianProcessRegressor(RBF() + WhiteKernel()).fit(X[:40], WAVE)
    options = {GaussianProcessRegressor: {"return_std": True}}
    proto = to_onnx(process, X[:1], options=options)
    rows = [row[None] for row in X[40:]]
    result = privet.run(proto, rows[:1], suite=suite, calibration=rows)
    assert list(result.outputs) == ["GPmean", "GPcovstd"]
    same(result.outputs, result.reference)
    assert result.accuracy().warning is None


@pytest.mark.parametrize("suite", ["stream", pytest.param("ckks", marks=pytest.mark.go)])
def test_the_head_is_above_the_suites(suite: str) -> None:
    rows = [row[None] for row in X[:20]]
    result = privet.run(exported("logistic"), rows[:1], suite=suite, calibration=rows)
    same(result.outputs, result.reference)
    assert result.calibration == "samples"


def test_a_batch_of_rows() -> None:
    result = privet.run(exported("pipeline"), [X[:3]], suite="fss", batch=4, input_range=(-4, 4))
    same(result.outputs, result.reference)
    assert result.samples == 3


def test_nothing_public_depends_on_vectors_or_coefficients() -> None:
    plain = exported("radial svm, votes")
    variant = onnx.ModelProto()
    variant.CopyFrom(plain)
    for attribute in variant.graph.node[0].attribute:
        if attribute.name in ("coefficients", "support_vectors", "rho"):
            attribute.floats[:] = [-value for value in attribute.floats[::-1]]
        if attribute.name == "vectors_per_class":
            attribute.ints[:] = attribute.ints[::-1]
    rows = [row[None] for row in X[:40]]
    programs = [
        compile(proto, smooth="piecewise", reveal="label", calibration=rows, headroom=10).program
        for proto in (plain, variant)
    ]
    public = [json.loads(program.to_public_bytes()) for program in programs]
    assert public[0].pop("weights_commitment") != public[1].pop("weights_commitment")
    assert public[0] == public[1]
