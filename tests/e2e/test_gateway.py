"""`privet gateway` before `privet serve`, asked by Triton's own client library, unmodified."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.e2e.gateways import (
    GRPC,
    HTTP,
    IMAGES,
    Gateway,
    assert_right,
    expected,
    gateway,
    tensor,
)
from tests.e2e.services import DIGITS_CONFIG, Scene, put_digits, serving
from tests.e2e.test_commands import key_folder, privet
from tritonclient.utils import InferenceServerException

from privet.runtime import MaterialStore

__all__ = ["key_folder"]

BOTH = pytest.mark.parametrize("library", [HTTP, GRPC], ids=["http", "grpc"])
SEVEN = IMAGES[:1]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, key_folder: Path) -> Iterator[Scene]:
    """A service of the digits network, for one sample and for two at once."""
    folder = tmp_path_factory.mktemp("service")
    put_digits(folder / "repository")
    put_digits(folder / "repository", config=DIGITS_CONFIG + "batch = 2\n", name="pairs")
    with serving(folder, key_folder, "--requests-per-minute", 100_000) as scene:
        yield scene


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def front(service: Scene, key_folder: Path, state: Path) -> Iterator[Gateway]:
    """A gateway before it."""
    with gateway(service.address, key_folder, state) as gateway_process:
        yield gateway_process


def test_what_a_gateway_tells_of_its_models(front: Gateway) -> None:
    with front.client(HTTP) as client:
        before = client.get_inference_statistics("digits")["model_stats"][0]
        client.infer("digits", [tensor(HTTP, SEVEN)])
        after = client.get_inference_statistics("digits")["model_stats"][0]
        index = {row["name"]: row["state"] for row in client.get_model_repository_index()}
        config = client.get_model_config("pairs")
    assert after["inference_count"] == before["inference_count"] + 1
    assert index == {"digits": "READY", "pairs": "READY"}
    assert (config["max_batch_size"], config["input"][0]["dims"]) == (2, [1, 8, 8])
    assert config["input"][0]["data_type"] == "TYPE_FP32"
    with urllib.request.urlopen(f"http://{front.places['rest']}/metrics") as answer:
        assert b'privet_gateway_requests_total{model="digits",outcome="done"}' in answer.read()


def test_a_model_of_another_suite_is_not_ready(
    service: Scene, key_folder: Path, tmp_path: Path
) -> None:
    with gateway(service.address, key_folder, tmp_path, "--suite", "ckks") as other:  # noqa: SIM117
        with other.client(HTTP) as client:
            assert client.is_server_ready()
            assert not client.is_model_ready("digits")
            assert client.get_model_repository_index()[0]["state"] == "UNAVAILABLE"


def test_grpc_tells_what_http_does(front: Gateway) -> None:
    with front.client(GRPC) as client:
        client.infer("digits", [tensor(GRPC, SEVEN)])
        (stats,) = client.get_inference_statistics("digits").model_stats
        every = client.get_inference_statistics().model_stats
        index = client.get_model_repository_index().models
        config = client.get_model_config("pairs").config
        extensions = set(client.get_server_metadata().extensions)
        with pytest.raises(GRPC.InferenceServerException, match="elsewhere"):
            client.get_model_config("elsewhere")
    with front.client(HTTP) as client:
        (row,) = client.get_inference_statistics("digits")["model_stats"]
        assert extensions == set(client.get_server_metadata()["extensions"])
        assert client.get_model_config("pairs")["max_batch_size"] == config.max_batch_size == 2
    assert stats.inference_count == row["inference_count"] > 0
    assert stats.inference_stats.success.ns == row["inference_stats"]["success"]["ns"] > 0
    assert {model.name for model in every} == {"digits", "pairs"}
    assert {model.name: model.state for model in index} == {"digits": "READY", "pairs": "READY"}
    (entry,) = config.input
    assert (list(entry.dims), entry.data_type) == ([1, 8, 8], 11)


def test_requests_of_several_applications_are_one_inference(
    service: Scene, key_folder: Path, tmp_path: Path
) -> None:
    with gateway(service.address, key_folder, tmp_path, "--batch-delay", 60_000) as front:
        answers = front.at_once("pairs", [IMAGES[:1], IMAGES[1:2]])
        alone = front.infer(HTTP, "digits", IMAGES[:1])
        # Who will have gone before others come is asked for alone.
        with front.client(GRPC) as client:
            answer = client.infer("pairs", [tensor(GRPC, IMAGES[:1])], client_timeout=50.0)
        assert_right(answer.as_numpy("logits"), IMAGES[:1])
        with front.client(HTTP) as client:
            (row,) = client.get_inference_statistics("pairs")["model_stats"]
            with pytest.raises(HTTP.InferenceServerException, match="magnitudes up to"):
                client.infer("digits", [tensor(HTTP, 1e6 * IMAGES[:1])])
            (single,) = client.get_inference_statistics("digits")["model_stats"]
        with urllib.request.urlopen(f"http://{front.places['rest']}/metrics") as answer:
            assert b'privet_gateway_inferences_total{model="pairs"} 2' in answer.read()
    for logits, image in zip([*answers, alone], [*IMAGES[:2, None], IMAGES[:1]], strict=True):
        assert_right(logits, image)
    assert (row["inference_count"], row["execution_count"]) == (3, 2)
    assert (single["inference_count"], single["execution_count"]) == (1, 1)


@BOTH
def test_a_prediction(front: Gateway, library: ModuleType) -> None:
    with front.client(library) as client:
        answer = client.infer("digits", [tensor(library, SEVEN)], request_id="seven")
    assert_right(answer.as_numpy("logits"), SEVEN)
    assert answer.as_numpy("logits").dtype == np.float32
    response = answer.get_response()
    if library is HTTP:
        assert (response["id"], response["model_version"]) == ("seven", "1")
        assert response["parameters"]["suite"] == "gmw"
    else:
        assert (response.id, response.model_version) == ("seven", "1")
        assert response.parameters["suite"].string_param == "gmw"


@BOTH
def test_health_and_metadata(front: Gateway, library: ModuleType) -> None:
    with front.client(library) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("digits")
        assert client.is_model_ready("digits", "1")
        options = {"as_json": True} if library is GRPC else {}
        assert client.get_server_metadata(**options)["name"] == "privet"
        metadata = client.get_model_metadata("pairs", **options)
    (input_spec,), (output_spec,) = metadata["inputs"], metadata["outputs"]
    assert (input_spec["name"], input_spec["datatype"]) == ("input", "FP32")
    assert [int(size) for size in input_spec["shape"]] == [-1, 1, 8, 8]
    assert (output_spec["name"], [int(size) for size in output_spec["shape"]]) == (
        "logits",
        [-1, 10],
    )


@BOTH
@pytest.mark.parametrize("model", ["digits", "pairs"])
def test_any_number_of_samples(front: Gateway, library: ModuleType, model: str) -> None:
    assert_right(front.infer(library, model, IMAGES[:3]), IMAGES[:3])


@BOTH
@pytest.mark.parametrize("kind", ["FP64", "FP16", "UINT8"])
def test_types_of_inputs(front: Gateway, library: ModuleType, kind: str) -> None:
    dtype = {"FP64": np.float64, "FP16": np.float16, "UINT8": np.uint8}[kind]
    image = np.rint(SEVEN).astype(dtype)
    assert_right(front.infer(library, "digits", image, kind), image.astype(np.float32))


def test_tensors_in_json(front: Gateway) -> None:
    with front.client(HTTP) as client:
        outputs = [HTTP.InferRequestedOutput("logits", binary_data=False)]
        input_tensor = tensor(HTTP, SEVEN, binary_data=False)
        answer = client.infer("digits", [input_tensor], outputs=outputs)
    assert isinstance(answer.get_response()["outputs"][0]["data"], list)
    assert_right(answer.as_numpy("logits"), SEVEN)


def test_numbers_in_messages(front: Gateway) -> None:
    input_tensor = tensor(GRPC, SEVEN)
    input_tensor._raw_content = None
    input_tensor._input.contents.fp32_contents.extend(SEVEN.ravel().tolist())
    with front.client(GRPC) as client:
        answer = client.infer("digits", [input_tensor])
    assert_right(answer.as_numpy("logits"), SEVEN)


def test_compressed_requests(front: Gateway) -> None:
    for way in ("gzip", "deflate"):
        assert_right(front.infer(HTTP, "digits", SEVEN, request_compression_algorithm=way), SEVEN)


@BOTH
@pytest.mark.parametrize(
    ("model", "array", "options", "status", "problem"),
    [
        ("nothing", SEVEN, {}, 404, "there is no model nothing"),
        ("digits", SEVEN, {"model_version": "7"}, 404, "version 7"),
        ("digits", SEVEN, {"model_version": "new"}, 400, "versions are numbers"),
        ("digits", SEVEN[0], {}, 400, "has shape"),
        ("digits", SEVEN * 1e6, {}, 400, "magnitudes up to"),
        ("digits", SEVEN * np.float32("nan"), {}, 400, "NaN"),
        ("digits", SEVEN, {"sequence_id": 3}, 400, "keep no state"),
        ("digits", SEVEN, {"timeout": -1}, 400, "microseconds"),
    ],
    ids=["model", "version", "no version", "shape", "magnitude", "nan", "sequence", "timeout"],
)
def test_refusals(
    front: Gateway,
    library: ModuleType,
    model: str,
    array: Any,
    options: dict[str, Any],
    status: int,
    problem: str,
) -> None:
    with pytest.raises(InferenceServerException, match=problem) as excinfo:
        front.infer(library, model, array, **options)
    names = {404: "StatusCode.NOT_FOUND", 400: "StatusCode.INVALID_ARGUMENT"}
    assert excinfo.value.status() == (str(status) if library is HTTP else names[status])


@BOTH
def test_names_that_the_model_lacks(front: Gateway, library: ModuleType) -> None:
    other = library.InferInput("image", [1], "FP32")
    other.set_data_from_numpy(np.zeros(1, np.float32))
    with front.client(library) as client:
        with pytest.raises(InferenceServerException, match="unknown: image"):
            client.infer("digits", [other])
        outputs = [library.InferRequestedOutput("scores")]
        with pytest.raises(InferenceServerException, match="no output scores; there is logits"):
            client.infer("digits", [tensor(library, SEVEN)], outputs=outputs)


@BOTH
def test_a_timeout_that_is_too_short(front: Gateway, library: ModuleType) -> None:
    with pytest.raises(InferenceServerException, match=r"timed out|no result within") as excinfo:
        front.infer(library, "pairs", IMAGES[:40], timeout=100_000)
    assert excinfo.value.status() in ("504", "StatusCode.DEADLINE_EXCEEDED")
    with pytest.raises(InferenceServerException, match=r"no result within 0\.001 s") as excinfo:
        front.infer(library, "digits", SEVEN, timeout=1000)
    assert excinfo.value.status() in ("504", "StatusCode.DEADLINE_EXCEEDED")


def test_notices_are_kept_ahead_and_used(key_folder: Path, tmp_path: Path) -> None:
    put_digits(tmp_path / "repository")
    state = tmp_path / "client"

    def stock() -> set[str]:
        return {entry.id for entry in MaterialStore(state).entries()}

    def two() -> set[str] | None:
        return material if len(material := stock()) == 2 else None

    with serving(tmp_path, key_folder) as scene:
        with gateway(scene.address, key_folder, state, "--ahead", "digits=2") as front:
            ready = _until(two)
            front.infer(HTTP, "digits", SEVEN)
            assert len(ready - stock()) == 1
            entries = _until(two)
            assert front.process.end(signal.SIGTERM) == 0
        # They are there for the next gateway, which announces no more than it needs.
        with gateway(scene.address, key_folder, state, "--ahead", "digits=2") as front:
            front.infer(GRPC, "digits", SEVEN)
            assert len(entries - stock()) == 1
            assert len(entries & _until(two)) == 1


def test_fifty_clients_at_once(front: Gateway) -> None:
    images = [IMAGES[index : index + 1] for index in range(50)]
    answers = front.at_once("digits", images)
    np.testing.assert_allclose(
        np.concatenate(answers), expected(np.concatenate(images)), rtol=0, atol=0.1
    )


def test_bodies_that_are_none_of_the_protocol(front: Gateway) -> None:
    good = {"name": "input", "shape": [1, 1, 8, 8], "datatype": "FP32"}
    for body, problem in [
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        ({"inputs": {}}, "'inputs' is no list"),
        ({"inputs": [{"name": 3}]}, "'name' is missing"),
        ({"inputs": [good]}, "has no data"),
        ({"inputs": [good | {"data": [0.5]}]}, "has 64 elements; 1 were given"),
        ({"inputs": [good | {"data": ["x"]}]}, "cannot be read as FP32"),
        ({"inputs": [good | {"shape": [-1], "data": []}]}, "negative length"),
        ({"inputs": [good | {"datatype": "BYTES", "data": []}]}, "elements; 0 texts were given"),
        ({"inputs": [good | {"datatype": "BYTES", "data": ["7"] * 64}]}, "real numbers are needed"),
        ({"inputs": [good | {"datatype": "STRING", "data": []}]}, "has type STRING"),
        ({"inputs": [good | {"parameters": {"binary_data_size": 8}}]}, "0 bytes are left"),
        ({"inputs": [good | {"parameters": {"shared_memory_region": "r"}}]}, "no part of what"),
    ]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer = _post(front, "/v2/models/digits/infer", raw)
        assert (status, problem in answer["error"]) == (400, True), answer


def test_plaintext_is_not_taken_from_other_machines(key_folder: Path, tmp_path: Path) -> None:
    words = ["gateway", "--server", "https://localhost:1", "--keys", key_folder]
    reply = privet(*words, "--state", tmp_path, "--listen", "0.0.0.0:0", code=2)
    assert "not this machine alone" in reply["error"]["message"]
    reply = privet(*words, "--state", tmp_path, "--listen", "off", "--grpc", "off", code=2)
    assert "both off" in reply["error"]["message"]


def test_an_endpoint_with_tls(service: Scene, key_folder: Path, state: Path) -> None:
    tls_options = [
        "--tls-certificate",
        key_folder / "server.pem",
        "--tls-key",
        key_folder / "server.key",
    ]
    tls_options += ["--tls-clients", key_folder / "ca.pem"]
    files = [str(key_folder / name) for name in ("ca.pem", "client.key", "client.pem")]
    with gateway(service.address, key_folder, state, *tls_options) as front:
        place = f"localhost:{front.places['grpc'].rpartition(':')[2]}"
        options = dict(
            zip(("root_certificates", "private_key", "certificate_chain"), files, strict=True)
        )
        with GRPC.InferenceServerClient(place, ssl=True, **options) as client:
            answer = client.infer("digits", [tensor(GRPC, SEVEN)])
            assert_right(answer.as_numpy("logits"), SEVEN)
        with (
            GRPC.InferenceServerClient(place, ssl=True, root_certificates=files[0]) as stranger,
            pytest.raises(InferenceServerException),
        ):
            stranger.is_server_live()
        place = f"localhost:{front.places['rest'].rpartition(':')[2]}"
        tls = {"ca_certs": files[0], "keyfile": files[1], "certfile": files[2]}
        with HTTP.InferenceServerClient(place, ssl=True, ssl_options=tls) as client:
            assert client.is_server_ready()
        assert front.process.end(signal.SIGTERM) == 0


def test_a_service_that_is_away(key_folder: Path, tmp_path: Path) -> None:
    with gateway("localhost:1", key_folder, tmp_path, "--patience", 0.5) as front:
        for library in (HTTP, GRPC):
            with front.client(library) as client:
                assert client.is_server_live()
                assert not client.is_server_ready()
            with pytest.raises(InferenceServerException, match="cannot be reached") as excinfo:
                front.infer(library, "digits", SEVEN)
            assert excinfo.value.status() in ("503", "StatusCode.UNAVAILABLE")


def _until(look: Any, seconds: float = 60.0) -> Any:
    """What `look` gives once that is something."""
    limit = time.monotonic() + seconds
    while not (result := look()):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return result


def _post(front: Gateway, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"http://{front.places['rest']}{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
