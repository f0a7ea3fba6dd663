"""A server of a small model and clients of it, with what both sides saw."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.runtime import Client, Credentials, Finished, Result, Server
from privet.suites import make_policy

Array = npt.NDArray[np.float64]

SOON = 20.0
"""Seconds within which everything here must have ended; far above what it takes."""

INPUT = np.array([[0.5, -0.25, 1.0, 0.75]])
"""An input of the model."""


def small_model(seed: int = 0, name: str = "small") -> Compiled:
    """A compiled perceptron from 4 to 3 numbers with a hidden layer of 8; `x` stays within 2."""
    rng = np.random.default_rng(seed)
    tensors = {
        "w1": rng.uniform(-1, 1, (4, 8)).astype(np.float32),
        "w2": rng.uniform(-1, 1, (8, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], "hidden"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w2"], ["y"], "out"),
    ]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(array, key) for key, array in tensors.items()],
    )
    opset: onnx.OperatorSetIdProto = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    return compile(model, calibration=[{"x": np.ones((1, 4), np.float32)}], name=name)


@dataclass
class Scene:
    """Where a test's parties keep their things; `compiled` is what the servers offer."""

    folder: Path
    keys: Path
    compiled: Compiled
    finished: queue.Queue[Finished] = field(default_factory=queue.Queue)

    @contextmanager
    def server(self, timeout: float = SOON) -> Iterator[Server]:
        """A server in this process that tells `finished` of everything."""
        credentials = Credentials.from_directory(self.keys, "server")
        with Server(
            credentials,
            state=self.folder / "server",
            timeout=timeout,
            on_finished=self.finished.put,
        ) as server:
            server.add(self.compiled.program, self.compiled.weights)
            yield server.start()

    def client(self, port: int, *, state: str = "client", **options: Any) -> Client:
        """A client of the server that listens on `port` of this machine."""
        options = {"timeout": SOON, **options}
        credentials = Credentials.from_directory(options.pop("keys", self.keys), "client")
        return Client("localhost", port, credentials, state=self.folder / state, **options)

    def next_failure(self) -> Finished:
        """What the server tells of the next session that fails."""
        while True:
            finished = self.finished.get(timeout=SOON)
            if finished.error is not None:
                return finished

    def check(self, result: Result, sample: Array = INPUT) -> None:
        """Fails unless `result` is the prediction for `sample`, up to rounding."""
        expected = execute(self.compiled.program, self.compiled.weights, {"x": sample})
        assert np.abs(result.outputs["y"] - expected.outputs["y"]).max() < 0.01

    def assert_serves(self, port: int) -> None:
        """An honest client, with a store of its own, gets a right answer."""
        with self.client(port, state="honest") as client:
            self.check(client.infer([INPUT]))

    @contextmanager
    def process(self, role: str, **job: Any) -> Iterator[subprocess.Popen[str]]:
        """A party as a process of its own; it is killed at the end if it still runs."""
        self.compiled.save(self.folder / "program")
        common = {
            "role": role,
            "keys": str(self.keys),
            "state": str(self.folder / role),
            "timeout": SOON,
            "memory": None,
            "policy": make_policy().text(),
            "program": str(self.folder / "program"),
        }
        path = self.folder / f"{role}.json"
        path.write_text(json.dumps({**common, **job}))
        script = Path(__file__).with_name("doomed_client.py")
        words = ["-m", "privet.runtime.process"] if role == "server" else [str(script)]
        with subprocess.Popen(
            [sys.executable, *words, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def server_process(self) -> Iterator[tuple[subprocess.Popen[str], int]]:
        """A server as a process of its own, and its port."""
        with self.process("server") as process:
            assert process.stdout is not None
            yield process, int(json.loads(process.stdout.readline())["port"])
