"""A model's stages surveyed before anything is started: their times, allocations, and scaling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from privet.compile import compile
from privet.errors import InputError, Misuse
from privet.research.stream.rehearsal import PieceCost, rehearse
from privet.research.stream.scaling import Scaling, choose
from privet.stream.allocation import OBJECTIVES, Allocation, Server, Side, allocate
from privet.stream.cipher import Cipher
from privet.stream.profile import StageTimes, profile
from privet.stream.service import server_of

SIDES: tuple[Side, ...] = ("model", "data")


def survey(
    model: Path,
    words: Sequence[str],
    per_core: int,
    cipher: Cipher,
    samples: Any,
    input_range: tuple[float, float] | None,
) -> tuple[list[StageTimes], dict[str, Allocation], PieceCost | None]:
    """A model's stages, measured, their allocation to servers (`NAME:CORES:SIDE`) by each
    objective, and over BFV what a piece costs ahead of time."""
    compiled = compile(model, calibration=samples, input_range=input_range, smooth="function")
    servers = []
    for word in words:
        rest, _, side = word.rpartition(":")
        if side not in SIDES:
            raise Misuse(f"{word!r} is not NAME:CORES:model or NAME:CORES:data")
        servers.append(Server(*server_of(rest), "model" if side == "model" else "data"))
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    stages = profile(public, cipher, private)
    table = [it.stage for it in stages]
    found: dict[str, Allocation] = {
        it: allocate(table, servers, it, per_core=per_core) for it in OBJECTIVES
    }
    return stages, found, rehearse(public, private) if cipher.masked else None


def scaling_of(model: Path, calibration: Path) -> Scaling:
    """The scaling of a model with one input, by the samples and labels in a file.

    # Errors
    `InputError` if the file has no samples.
    """
    source = onnx.load(model)
    entries = [it for it in source.graph.input if it.name not in _constants(source)]
    if len(entries) != 1:
        raise Misuse("parameter scaling reads samples for models with one input")
    try:
        loaded = np.load(calibration, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{calibration} cannot be read as samples: {error}") from error
    arrays = {"inputs": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    if "inputs" not in arrays:
        raise InputError(f"{calibration} needs an array `inputs`, and `labels` if there are any")
    samples = [{entries[0].name: array[None]} for array in arrays["inputs"]]
    return choose(source, samples, arrays.get("labels"))


def _constants(model: onnx.ModelProto) -> set[str]:
    return {tensor.name for tensor in model.graph.initializer}
