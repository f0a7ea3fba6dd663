"""A table with texts and gaps, as a bank has it: what clients may compute is computed there, in
every suite, and through a service and its gateway."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from tests.e2e.gateways import GRPC, HTTP, gateway
from tests.e2e.services import Scene, serving
from tests.e2e.test_commands import key_folder, privet

import privet as api
from privet.compiler.executor.codec import as_tensor
from privet.compiler.executor.reference import run_plaintext
from privet.errors import InputError

__all__ = ["key_folder"]

_RANDOM = np.random.default_rng(3)
NUMBERS = np.asarray(_RANDOM.normal((50.0, 30e3), (12.0, 9e3), (120, 2)), np.float32)
TEXTS = _RANDOM.choice([["clerk", "north"], ["farmer", "south"], ["nurse", "east"]], 120)
GOOD = np.where((NUMBERS[:, 1] > 30e3) ^ (TEXTS[:, 0] == "nurse"), "yes", "no")
NUMBERS[::5, 0] = np.nan
LINEAR, FOREST = "linear", "forest"


def sample(first: int, count: int = 1) -> dict[str, Any]:
    rows = slice(first, first + count)
    return {"numbers": NUMBERS[rows], "texts": TEXTS[rows]}


@cache
def exported(kind: str) -> onnx.ModelProto:
    """A pipeline as scikit-learn's exporter writes it."""
    encoder = OneHotEncoder(handle_unknown="ignore") if kind == LINEAR else OrdinalEncoder()
    last = LogisticRegression() if kind == LINEAR else RandomForestClassifier(8, max_depth=3)
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]),
            ("texts", encoder, [2, 3]),
        ]
    )
    table = np.concatenate([NUMBERS.astype(object), TEXTS.astype(object)], axis=1)
    inputs = [("numbers", FloatTensorType([None, 2])), ("texts", StringTensorType([None, 2]))]
    proto: onnx.ModelProto = to_onnx(
        make_pipeline(columns, last).fit(table, GOOD), initial_types=inputs
    )
    return proto


CALIBRATION = [sample(i) for i in range(100)]


@pytest.mark.parametrize(
    ("kind", "suite"),
    [
        (LINEAR, api.Gmw()),
        (LINEAR, api.Fss()),
        (LINEAR, api.Ckks()),
        (LINEAR, api.Stream()),
        (FOREST, api.Gmw()),
        (FOREST, api.Fss()),
    ],
    ids=str,
)
def test_a_pipeline_runs_in_every_suite(kind: str, suite: api.Suite) -> None:
    result = api.run(
        exported(kind), sample(100), suite=suite, calibration=CALIBRATION, client_side=True
    )
    assert result.argmax_agrees
    assert result.max_abs_error < 5e-3


def test_tables_hand_out_texts_and_numbers_as_objects() -> None:
    inputs = {name: array.astype(object) for name, array in sample(7).items()}
    run = api.run(exported(LINEAR), inputs, suite="fss", calibration=CALIBRATION, client_side=True)
    assert run.argmax_agrees
    assert run.max_abs_error < 5e-3
    inputs["numbers"][0, 0] = "many"
    with pytest.raises(InputError, match="input numbers cannot be read as an array"):
        api.run(exported(LINEAR), inputs, suite="fss", calibration=CALIBRATION, client_side=True)


def test_a_batch_that_is_not_full() -> None:
    result = api.run(
        exported(LINEAR), sample(100, 3), batch=4, calibration=CALIBRATION, client_side=True
    )
    assert result.samples == 3
    assert result.argmax_agrees


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, key_folder: Path) -> Iterator[Scene]:
    """A service that publishes the front of the pipeline."""
    folder = tmp_path_factory.mktemp("service")
    place = folder / "repository" / "credit" / "1"
    place.mkdir(parents=True)
    (place / "model.onnx").write_bytes(exported(LINEAR).SerializeToString())
    arrays: dict[str, Any] = {
        name: np.concatenate([row[name] for row in CALIBRATION]) for name in CALIBRATION[0]
    }
    np.savez(place / "samples.npz", **arrays)
    config = 'client_side = true\ncalibration = "samples.npz"\n'
    (place.parent / "config.toml").write_text(config)
    with serving(folder, key_folder) as scene:
        yield scene


def test_the_command_gives_the_label(service: Scene, key_folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **sample(101))
    words = ["infer", service.address, "--keys", key_folder, "--state", tmp_path / "state"]
    report = privet(*words, "--input", tmp_path / "x.npz")
    expected = run_plaintext(exported(LINEAR), [sample(101)], ["output_label"])
    assert report["output"]["output_label"] == expected["output_label"].tolist()


@pytest.mark.parametrize("library", [HTTP, GRPC], ids=["http", "grpc"])
@pytest.mark.parametrize("binary", [True, False])
def test_texts_go_through_the_gateway(
    service: Scene, key_folder: Path, tmp_path: Path, library: ModuleType, binary: bool
) -> None:
    inputs = sample(102)
    numbers = library.InferInput("numbers", [1, 2], "FP32")
    texts = library.InferInput("texts", [1, 2], "BYTES")
    form = {"binary_data": binary} if library is HTTP else {}
    numbers.set_data_from_numpy(np.nan_to_num(inputs["numbers"], nan=44.0), **form)
    texts.set_data_from_numpy(inputs["texts"].astype(object), **form)
    expected = run_plaintext(
        exported(LINEAR),
        [{**inputs, "numbers": np.nan_to_num(inputs["numbers"], nan=44.0)}],
        ["output_probability"],
    )
    as_json = {"as_json": True} if library is GRPC else {}
    with (
        gateway(service.address, key_folder, tmp_path / "state") as front,
        front.client(library) as client,
    ):
        metadata = client.get_model_metadata("credit", **as_json)
        answer = client.infer("credit", [numbers, texts])
    kinds = {entry["name"]: entry["datatype"] for entry in metadata["inputs"]}
    assert kinds == {"numbers": "FP32", "texts": "BYTES"}
    np.testing.assert_allclose(
        answer.as_numpy("output_probability"), as_tensor(expected["output_probability"]), atol=5e-3
    )
