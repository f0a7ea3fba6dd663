"""The page of models: families of estimators, exported and run, a row for each in each suite.

    python -m benches.families --write

replaces the table in docs/reference/models.md by what it measures (minutes); with `--only PART`,
the rows of families with that in their name alone.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from tests.python.compiler.graph.exported import exported as drawn

import privet
from benches.tasks import Floats
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.codec import as_tensor
from privet.compiler.executor.reference import run_plaintext
from privet.compiler.executor.samples import fill
from privet.suites import Suite

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "models.md"
FIXTURES = ROOT / "tests" / "python" / "compiler" / "graph"
EXPORTED = FIXTURES / "exported_trees"
BEGIN, END = "<!-- families: python -m benches.families -->\n", "<!-- end of families -->\n"
SUITES: Mapping[str, Suite] = {"gmw": privet.Gmw(), "fss": privet.Fss()}
COLUMNS = (
    *("Family", "Exported by", "Suite", "Offline, s", "Online, s", "Offline, MB", "Online, MB"),
    "Agreement",
)
RULE = "|---|---|---|---:|---:|---:|---:|---|\n"
SKLEARN = "`skl2onnx.to_onnx(model, X[:1])`"
ROWS = 100
TEN: Mapping[str, Any] = {"n_estimators": 10, "random_state": 0}


@dataclass(frozen=True)
class Family:
    """A model with inputs to calibrate it and to compare it on, and how it was exported."""

    name: str
    exporter: str
    build: Callable[[], tuple[onnx.ModelProto, list[Floats], list[Floats]]]
    reveal: str = "outputs"


def _sklearn(estimator: Callable[[], Any], data: str) -> Callable[[], Any]:
    """An estimator behind a scaler, fitted on half of a data set of scikit-learn."""

    def build() -> tuple[onnx.ModelProto, list[Floats], list[Floats]]:
        from skl2onnx import to_onnx
        from sklearn import datasets
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
        x = x.astype(np.float32)
        instance = estimator()
        trees = "ensemble" in type(instance).__module__ and not hasattr(instance, "voting")
        model = instance if trees else make_pipeline(StandardScaler(), instance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = to_onnx(model.fit(x[::2], y[::2]), x[:1])
        return exported, list(x[::2][:, None]), list(x[1::2][:ROWS, None])

    return build


def _file(name: str) -> Callable[[], Any]:
    """A model that was exported before, with the rows it is tested on."""

    def build() -> tuple[onnx.ModelProto, list[Floats], list[Floats]]:
        rows = list(np.load(EXPORTED / "rows.npz")[f"x_{name.split('_')[1]}"][:, None])
        return onnx.load(EXPORTED / f"{name}.onnx"), [], rows

    return build


def _network(name: str) -> Callable[[], Any]:
    """A network that was exported before, in a folder of fixtures, with drawn weights and inputs;
    what are rows of tables are numbers up to 6."""

    def build() -> tuple[onnx.ModelProto, list[Floats], list[Floats]]:
        folder, file = name.split("/")
        model = (
            drawn(file) if folder == "exported_networks" else onnx.load(FIXTURES / f"{name}.onnx")
        )
        (entry,) = model.graph.input
        kind = entry.type.tensor_type
        shape = [dim.dim_value or 1 for dim in kind.shape.dim]
        rng = np.random.default_rng(0)
        count = 8 if folder == "exported_networks" else 28
        whole = kind.elem_type == onnx.TensorProto.INT64
        rows: list[Any] = [
            rng.integers(0, 7, shape) if whole else rng.standard_normal(shape).astype(np.float32)
            for _ in range(count)
        ]
        return model, rows[: count // 2], rows[count // 2 :]

    return build


DYNAMO, SCRIPT = (f"`torch.onnx.export(..., dynamo={value})`" for value in (True, False))
KERAS = "`tf2onnx.convert.from_function`"
NETWORKS = (
    ("U-Net, 16x16", DYNAMO, "exported_small/unet_dynamo"),
    ("Autoencoder", SCRIPT, "exported_small/autoencoder_script"),
    ("`EmbeddingBag`", SCRIPT, "exported_small/bag_script"),
    ("Embeddings of categories", DYNAMO, "exported_small/categories_dynamo"),
    ("LSTM, 5 steps", DYNAMO, "exported_recurrent/lstm_torch_dynamo"),
    ("GRU, 5 steps", KERAS, "exported_recurrent/gru_keras_loop"),
    ("Convolutions", KERAS, "exported_small/convolutions_keras"),
    ("Dense network", KERAS, "exported_small/dense_keras"),
    ("SqueezeNet, narrow", SCRIPT, "exported_networks/squeezenet_script"),
    ("ShuffleNet v2, narrow", DYNAMO, "exported_networks/shufflenet_v2_dynamo"),
)
"""Networks by their title, exporter and file."""


def _digits() -> tuple[onnx.ModelProto, list[Floats], list[Floats]]:
    folder = ROOT / "zoo" / "models"
    rows = np.load(folder / "digits-cnn.npz")["inputs"][:ROWS]
    samples = np.load(folder / "digits-cnn-samples.npy")
    return onnx.load(folder / "digits-cnn.onnx"), list(samples[:, None]), list(rows[:, None])


def _quantised() -> tuple[onnx.ModelProto, list[Floats], list[Floats]]:
    """The digits' convolutions in int8, as ONNX Runtime quantises them."""
    from onnxruntime import quantization

    model, samples, rows = _digits()
    name = model.graph.input[0].name
    feeds = iter([{name: row} for row in samples])

    class Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Floats] | None:
            return next(feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quantised.onnx"
        quantization.quantize_static(model, path, Samples())
        return onnx.load(path), samples, rows


def families() -> Iterator[Family]:
    """Every family of the page."""
    from sklearn import (
        calibration,
        ensemble,
        gaussian_process,
        linear_model,
        mixture,
        multiclass,
        naive_bayes,
        neighbors,
        neural_network,
        pipeline,
        preprocessing,
        svm,
        tree,
    )
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    logistic = linear_model.LogisticRegression
    noisy = ConstantKernel() * RBF() + WhiteKernel()
    voters = [("bayes", naive_bayes.GaussianNB()), ("linear", logistic())]

    estimators: list[tuple[str, Callable[[], Any], str, str]] = [
        ("Logistic regression", logistic, "breast_cancer", "outputs"),
        ("Ridge regression", linear_model.Ridge, "diabetes", "outputs"),
        ("`RidgeClassifier`", linear_model.RidgeClassifier, "wine", "outputs"),
        ("`SVC`, radial, two classes", svm.SVC, "breast_cancer", "outputs"),
        ("`SVC`, radial, ten classes", svm.SVC, "digits", "label"),
        ("`SVC`, polynomial", lambda: svm.SVC(kernel="poly"), "wine", "scores"),
        ("`SVR`, radial", lambda: svm.SVR(C=10), "diabetes", "outputs"),
        ("`MLPClassifier`", neural_network.MLPClassifier, "digits", "outputs"),
        (
            "Random forest, 100 trees",
            lambda: ensemble.RandomForestClassifier(max_depth=6, random_state=0),
            *("breast_cancer", "outputs"),
        ),
        (
            "`AdaBoostClassifier`, 10 trees of depth 2",
            lambda: ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), **TEN),
            *("wine", "outputs"),
        ),
        (
            "`AdaBoostRegressor`, 10 trees",
            lambda: ensemble.AdaBoostRegressor(**TEN),
            *("diabetes", "outputs"),
        ),
        (
            "`OneVsOneClassifier`",
            lambda: multiclass.OneVsOneClassifier(logistic()),
            *("wine", "outputs"),
        ),
        ("`KNeighborsClassifier`, 89 points", neighbors.KNeighborsClassifier, "wine", "outputs"),
        ("`PoissonRegressor`", linear_model.PoissonRegressor, "diabetes", "outputs"),
        ("`GaussianNB`", naive_bayes.GaussianNB, "wine", "outputs"),
        ("`GaussianMixture`, 3 components", lambda: mixture.GaussianMixture(3), "wine", "outputs"),
        (
            "Gaussian process with noise, 89 points",
            lambda: gaussian_process.GaussianProcessRegressor(noisy, normalize_y=True),
            *("wine", "outputs"),
        ),
        (
            "`CalibratedClassifierCV`, isotonic",
            lambda: calibration.CalibratedClassifierCV(svm.LinearSVC(), method="isotonic", cv=3),
            *("wine", "outputs"),
        ),
        (
            "`VotingClassifier` of naive Bayes and a linear model",
            lambda: ensemble.VotingClassifier(voters, flatten_transform=False),
            *("wine", "outputs"),
        ),
        (
            "`PowerTransformer`, logistic regression",
            lambda: pipeline.make_pipeline(preprocessing.PowerTransformer(), logistic()),
            *("wine", "outputs"),
        ),
        (
            "Gradient boosting, 100 trees",
            lambda: ensemble.GradientBoostingRegressor(random_state=0),
            *("diabetes", "outputs"),
        ),
    ]
    for name, estimator, data, reveal in estimators:
        yield Family(f"{name} ({data})", SKLEARN, _sklearn(estimator, data), reveal)
    boosters = "`onnxmltools.convert_{}(model, initial_types=...)`"
    yield Family("Histogram boosting, 5 rounds", SKLEARN, _file("hist_many"))
    yield Family("LightGBM, 5 rounds", boosters.format("lightgbm"), _file("lightgbm_many"))
    yield Family("XGBoost, 5 rounds", boosters.format("xgboost"), _file("xgboost_many"))
    yield Family(
        "CatBoost, 5 rounds", '`model.save_model(..., format="onnx")`', _file("catboost_many")
    )
    for name, exporter, file in NETWORKS:
        yield Family(f"{name}, drawn weights", exporter, _network(file))
    yield Family("Convolutions (digits)", "`zoo/train/export.py`", _digits)
    static = "`onnxruntime.quantization.quantize_static`"
    yield Family("Convolutions in int8 (digits)", static, _quantised)


def rows_of(family: Family, repeat: int) -> Iterator[str]:
    """A row for each suite."""
    model, samples, rows = family.build()
    for name, suite in SUITES.items():
        compiled = compile(
            model, **vars(suite.precision), calibration=samples or None, reveal=family.reveal
        )
        outputs = [output.name for output in compiled.source.graph.output]
        pairs = []
        for row in rows:
            reference = run_plaintext(
                compiled.source, [{compiled.program.given[0].name: row}], outputs
            )
            feeds, _ = fill(compiled.program, [row])
            pairs.append((execute(compiled.program, compiled.weights, feeds).outputs, reference))
        runs = [privet.run(compiled, rows[:1], suite=suite) for _ in range(repeat)]
        assert all(run.max_fixed_point_error == 0 for run in runs)
        cells = [family.name, family.exporter, f"`{name}`"]
        for phase in ("offline", "online"):
            cells.append(f"{np.median([getattr(run, phase).seconds for run in runs]):.2g}")
        for phase in ("offline", "online"):
            cost = getattr(runs[0], phase)
            total = cost.bytes_client + cost.bytes_server + cost.bytes_dealer
            cells.append(f"{total / 1e6:.2g}")
        if family.reveal != "outputs":
            cells[0] += f", `--reveal {family.reveal}`"
        yield f"| {' | '.join([*cells, agreement(pairs)])} |\n"


def agreement(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> str:
    """Labels that are ONNX Runtime's, or the largest error of what the spread of outputs is."""
    labels = [name for name, array in pairs[0][1].items() if array.dtype.kind in "iU"]
    if labels:
        same = sum(
            actual[labels[0]].tolist() == reference[labels[0]].tolist()
            for actual, reference in pairs
        )
        return f"{same} of {len(pairs)} labels"
    actual, reference = (
        np.concatenate([as_tensor(next(iter(pair[side].values()))).ravel() for pair in pairs])
        for side in (0, 1)
    )
    error = np.abs(actual - reference).max() / np.ptp(reference)
    return f"{error:.1g} of the spread, {len(pairs)} rows"


def table(page: str) -> list[str]:
    """The rows that a page has now."""
    body = page.split(BEGIN)[1].split(END)[0]
    return [line for line in body.splitlines(keepends=True) if line.startswith("| ")][1:]


def main() -> None:
    """Measures, prints and with `--write` replaces the table, or rows of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the table of the page")
    parser.add_argument("--only", default="", help="families whose name has this in it")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which medians are taken")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    old_rows = table(page)
    lines = [f"| {' | '.join(COLUMNS)} |\n", RULE]
    for family in families():
        if options.only in family.name:
            for row in rows_of(family, options.repeat):
                print(row, end="", flush=True)  # noqa: T201
                lines.append(row)
        else:
            names = f"| {family.name} | ", f"| {family.name}, `--reveal {family.reveal}` | "
            lines += [row for row in old_rows if row.startswith(names)]
    runs = f"medians of {options.repeat} runs" if options.repeat > 1 else "one run"
    header = f"Measured on {datetime.now(UTC):%d %B %Y}: {runs} of one row each.\n\n"
    if options.only:
        header = page.split(BEGIN)[1].split("| Family")[0]
    if options.write:
        whole = re.escape(BEGIN) + ".*" + re.escape(END)
        text = BEGIN + header + "".join(lines) + END
        PAGE.write_text(re.sub(whole, lambda _: text, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
