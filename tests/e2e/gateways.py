"""A gateway before a service, and Triton's own client library before the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import tritonclient.grpc
import tritonclient.http
from tests.e2e.processes import Running, running
from tests.e2e.test_commands import DIGITS, MODELS

HTTP: ModuleType = tritonclient.http
GRPC: ModuleType = tritonclient.grpc

Array = npt.NDArray[Any]


class Gateway:
    """A running gateway: its process, and where it listens by protocol."""

    def __init__(self, process: Running, places: dict[str, str]) -> None:
        self.process = process
        self.places = places

    def client(self, library: ModuleType, **options: Any) -> Any:
        """A client of Triton's library."""
        place = self.places["grpc" if library is GRPC else "rest"]
        return library.InferenceServerClient(place, **options)

    def infer(
        self, library: ModuleType, model: str, array: Array, kind: str = "FP32", **options: Any
    ) -> Array:
        """The logits that the library gets for the digits network."""
        with self.client(library) as client:
            answer = client.infer(model, [tensor(library, array, kind)], **options)
        logits: Array = answer.as_numpy("logits")
        return logits

    def at_once(self, model: str, arrays: list[Array]) -> list[Array]:
        """As `infer` for all arrays at the same time: the first half over HTTP, the rest over gRPC,
        each from a thread of its own."""
        half = len(arrays) // 2
        with (
            ThreadPoolExecutor(len(arrays) - half) as threads,
            self.client(HTTP, concurrency=half) as client,
        ):
            # The library's HTTP client stays on one thread, and has its own way to ask at once.
            first = [client.async_infer(model, [tensor(HTTP, array)]) for array in arrays[:half]]
            rest = [threads.submit(self.infer, GRPC, model, array) for array in arrays[half:]]
            answers = [answer.get_result().as_numpy("logits") for answer in first]
            return answers + [answer.result() for answer in rest]


def tensor(library: ModuleType, array: Array, kind: str = "FP32", **options: Any) -> Any:
    """An input of the digits network, as the library wants it."""
    value = library.InferInput("input", list(array.shape), kind)
    value.set_data_from_numpy(array, **options)
    return value


@contextmanager
def gateway(
    service: str, keys: Path, state: Path, *options: object, log: Path | None = None
) -> Iterator[Gateway]:
    """Runs a gateway on free ports, for the service at an address; its log goes to a file."""
    words = ["gateway", "--server", f"https://{service}", "--keys", keys, "--state", state]
    words += ["--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *options]
    with running(*words, log=log) as process:
        line = process.next()
        yield Gateway(process, {name: line[name] for name in ("rest", "grpc")})


IMAGES: Array = np.load(MODELS / "digits-cnn.npz")["inputs"]
"""Digits, FP32, shape `[n, 1, 8, 8]`."""


def expected(images: Array) -> Array:
    """What the digits network says of images, in the clear."""
    session = onnxruntime.InferenceSession(DIGITS)
    return np.concatenate([session.run(None, {"input": image[None]})[0] for image in images])


def assert_right(logits: Array, images: Array) -> None:
    """Fails unless these are the logits of the images, up to rounding."""
    right = expected(images)
    assert logits.shape == right.shape
    np.testing.assert_allclose(logits, right, rtol=0, atol=0.1)
    assert not np.array_equal(logits, right.astype(logits.dtype))
