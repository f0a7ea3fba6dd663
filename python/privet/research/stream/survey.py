"""A model's stages surveyed before anything is started: their times, allocations, what a request's
material costs ahead of time, and scaling."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from privet import keys
from privet.compiler.compile import compile
from privet.errors import InputError, Misuse
from privet.research.stream.scaling import ParameterScaling, choose
from privet.runtime.credentials import Credentials
from privet.stream.allocation import OBJECTIVES, Allocation, Side, StageServer, allocate
from privet.stream.cipher import Cipher
from privet.stream.preprocessing import (
    PreparingData,
    PreparingModel,
    PreprocessingAddress,
    Rules,
    name_of,
)
from privet.stream.profile import StageTimes, profile
from privet.stream.service import server_of
from privet.suites import make_policy
from privet.suites.spawned import compute

SIDES: tuple[Side, ...] = ("model", "data")


def survey(
    model: Path,
    words: Sequence[str],
    per_core: int,
    cipher: Cipher,
    samples: Any,
    input_range: tuple[float, float] | None,
) -> tuple[list[StageTimes], dict[str, Allocation], MaterialCost | None]:
    """A model's stages, measured, their allocation to servers (`NAME:CORES:SIDE`) by each
    objective, and over BFV what a material entry costs ahead of time."""
    compiled = compile(model, calibration=samples, input_range=input_range, smooth="function")
    servers = []
    for word in words:
        server_text, _, side = word.rpartition(":")
        if side not in SIDES:
            raise Misuse(f"{word!r} is not NAME:CORES:model or NAME:CORES:data")
        servers.append(StageServer(*server_of(server_text), "model" if side == "model" else "data"))
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    stages = profile(public, cipher, private)
    table = [stage.stage for stage in stages]
    allocations: dict[str, Allocation] = {
        objective: allocate(table, servers, objective, per_core=per_core)
        for objective in OBJECTIVES
    }
    return stages, allocations, measure_material(public, private) if cipher.masked else None


def scaling_of(model: Path, calibration: Path) -> ParameterScaling:
    """The scaling of a model with one input, by the samples and labels in a file. Raises
    `InputError` if the file has no samples."""
    source = onnx.load(model)
    entries = [entry for entry in source.graph.input if entry.name not in _constants(source)]
    if len(entries) != 1:
        raise Misuse("parameter scaling reads samples for models with one input")
    try:
        data = np.load(calibration, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{calibration} cannot be read as samples: {error}") from error
    arrays = {"inputs": data} if isinstance(data, np.ndarray) else dict(data)
    if "inputs" not in arrays:
        raise InputError(f"{calibration} needs an array `inputs`, and `labels` if there are any")
    samples = [{entries[0].name: array[None]} for array in arrays["inputs"]]
    return choose(source, samples, arrays.get("labels"))


def _constants(model: onnx.ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}


SECONDS = 300.0
"""Deadline of a message."""


@dataclass(frozen=True)
class MaterialCost:
    """Of the first entry, with keys and what else a session makes once, and of a later one.

    Seconds on this machine and processor seconds of both sides, and bytes that each side sent.
    """

    first_seconds: float
    seconds: float
    cpu_seconds: float
    bytes_data: int
    bytes_model: int


def measure_material(public: bytes, weights: bytes, entries: int = 3) -> MaterialCost:
    """Prepares a first entry and `entries` more, in a process of its own."""
    return compute(_measure_material, public, weights, entries)


def _measure_material(public: bytes, weights: bytes, entries: int) -> MaterialCost:
    with tempfile.TemporaryDirectory() as folder:
        keys.make(Path(folder))
        data_keys, model_keys = (
            Credentials.from_directory(folder, party) for party in ("client", "server")
        )
        rules = Rules(make_policy(revealed_values=True).text(), folder)
        model = PreparingModel(public, weights, model_keys.files, SECONDS, rules)
        data = PreparingData(public, data_keys.files, SECONDS)
        address = PreprocessingAddress("127.0.0.1", model.listen("127.0.0.1", 0), "127.0.0.1")
        # The model provider's parts pile up otherwise, and preparations wait.
        fetching = threading.Thread(
            target=lambda: [model.fetch(SECONDS) for _ in range(1 + entries)], daemon=True
        )
        fetching.start()
        _, first = data.prepare(address, name_of(bytes(16), 1))
        began, worked = time.perf_counter(), time.process_time()
        for number in range(entries):
            _, cost = data.prepare(address, name_of(bytes(16), 2 + number))
        seconds = (time.perf_counter() - began) / entries
        cpu_seconds = (time.process_time() - worked) / entries
        fetching.join()
        model.close()
    return MaterialCost(first.seconds, seconds, cpu_seconds, cost.bytes_client, cost.bytes_server)
