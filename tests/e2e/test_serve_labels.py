"""A classifier of scikit-learn behind a service and a gateway: labels and probabilities arrive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.e2e.gateways import GRPC, HTTP, Gateway, gateway
from tests.e2e.services import serving
from tests.e2e.test_commands import key_folder
from tests.e2e.test_scikit_learn import X, exported

from privet.compiler.executor.codec import as_tensor
from privet.compiler.executor.reference import run_plaintext

__all__ = ["key_folder"]

MODEL = "network, three"
CONFIG = "input_range = [-4, 4]\n"


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory, key_folder: Path) -> Iterator[Gateway]:
    """A gateway before a service of one classifier: all its outputs, and its labels alone."""
    folder = tmp_path_factory.mktemp("service")
    for name, config in (("all", CONFIG), ("labels", CONFIG + 'reveal = "label"\n')):
        place = folder / "repository" / name / "1"
        place.mkdir(parents=True)
        (place / "model.onnx").write_bytes(exported(MODEL).SerializeToString())
        (place.parent / "config.toml").write_text(config)
    with (
        serving(folder, key_folder) as scene,
        gateway(scene.address, key_folder, folder / "client") as gateway_process,
    ):
        yield gateway_process


@pytest.mark.parametrize("library", [HTTP, GRPC], ids=["http", "grpc"])
@pytest.mark.parametrize("binary", [True, False])
def test_labels_are_texts_and_maps_are_rows(
    front: Gateway, library: ModuleType, binary: bool
) -> None:
    names = ["output_label", "output_probability"]
    expected = run_plaintext(exported(MODEL), [{"X": X[:1]}], names)
    input_tensor = library.InferInput("X", [1, 5], "FP32")
    input_tensor.set_data_from_numpy(X[:1])
    form = {"binary_data": binary} if library is HTTP else {}
    outputs = [library.InferRequestedOutput(name, **form) for name in names]
    with front.client(library) as client:
        metadata = client.get_model_metadata(
            "all", **({"as_json": True} if library is GRPC else {})
        )
        answer = client.infer("all", [input_tensor], outputs=outputs)
        alone = client.infer("labels", [input_tensor])
    kinds = [(entry["name"], entry["datatype"]) for entry in metadata["outputs"]]
    assert kinds == [("output_label", "BYTES"), ("output_probability", "FP32")]
    label = [
        text.decode() if isinstance(text, bytes) else text for text in answer.as_numpy(names[0])
    ]
    assert label == expected[names[0]].tolist()
    np.testing.assert_allclose(answer.as_numpy(names[1]), as_tensor(expected[names[1]]), atol=5e-3)
    assert alone.as_numpy(names[0]).tolist() == [label[0].encode()]
    assert alone.as_numpy(names[1]) is None
