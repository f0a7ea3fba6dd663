"""Compiled programs on disk, so that a server that starts again offers the same program.

A compilation draws a fresh salt and so a fresh program hash, and material belongs to one hash:
without this, a restart would strand all material.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privet.compiler.compile import compile
from privet.compiler.graph.input_shapes import InputShapes

Array = npt.NDArray[np.generic]


RULES = 3
"""Which rules of the compiler a folder was made by; one that others made is not used."""


def compile_once(
    model: Path,
    folder: Path,
    *,
    bits: int | None,
    scale: int | None,
    calibration: Sequence[Array | Mapping[str, Array]] | None,
    input_range: tuple[float, float] | None,
    name: str | None,
    batch: int = 1,
    weight_scale: int | None = None,
    relu: str = "exact",
    smooth: str = "polynomial",
    sound: bool = False,
    reveal: str = "outputs",
    client_side: bool = False,
    input_shapes: InputShapes | None = None,
) -> Path:
    """A folder with the program that this file and these options compile to, below `folder`.

    What was compiled before is not compiled again.

    # Errors
    Those of `privet.compile`.
    """
    digest = hashlib.sha256(model.read_bytes())
    options = {
        "rules": RULES,
        "bits": bits,
        "scale": scale,
        "weight_scale": weight_scale,
        "input_range": input_range,
        "name": name,
        "batch": batch,
        "relu": relu,
        "smooth": smooth,
        "sound": sound,
        "reveal": reveal,
        "client_side": client_side,
        "input_shapes": {name: list(shape) for name, shape in (input_shapes or {}).items()},
    }
    digest.update(json.dumps(options).encode())
    for sample in calibration or []:
        for array in sample.values() if isinstance(sample, Mapping) else [sample]:
            digest.update(np.ascontiguousarray(array).tobytes())
    target = folder / digest.hexdigest()[:32]
    if not target.exists():
        compiled = compile(
            model,
            bits=bits,
            scale=scale,
            weight_scale=weight_scale,
            relu=relu,
            smooth=smooth,
            calibration=calibration,
            input_range=input_range,
            name=name,
            batch=batch,
            sound=sound,
            reveal=reveal,
            client_side=client_side,
            input_shapes=input_shapes,
        )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        compiled.save(partial)
        partial.chmod(0o700)
        partial.rename(target)
    return target
