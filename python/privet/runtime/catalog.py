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
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.compiler.compile import compile

Array = npt.NDArray[np.generic]


RULES = 4
"""Which rules of the compiler a folder was made by; one that others made is not used."""


OPTIONS: Mapping[str, Any] = {
    "bits": None,
    "scale": None,
    "weight_scale": None,
    "input_range": None,
    "name": None,
    "batch": 1,
    "relu": "exact",
    "smooth": "polynomial",
    "sound": False,
    "widest": 0,
    "reveal": "outputs",
    "client_side": False,
    "input_shapes": None,
}
"""What a folder is named by besides the model and its calibration, in this order: options of
`privet.compile`, with what they are where nobody says more."""


def compile_once(
    model: Path,
    folder: Path,
    calibration: Sequence[Array | Mapping[str, Array]] | None = None,
    **overrides: Any,
) -> Path:
    """A folder with the program that this file and these `OPTIONS` compile to, below `folder`.

    What was compiled before is not compiled again.

    Raises those of `privet.compile`.
    """
    options = {**OPTIONS, **overrides}
    shapes = {name: list(shape) for name, shape in (options["input_shapes"] or {}).items()}
    digest = hashlib.sha256(model.read_bytes())
    digest.update(json.dumps({"rules": RULES, **options, "input_shapes": shapes}).encode())
    for sample in calibration or []:
        for array in sample.values() if isinstance(sample, Mapping) else [sample]:
            digest.update(np.ascontiguousarray(array).tobytes())
    target = folder / digest.hexdigest()[:32]
    if not target.exists():
        compiled = compile(model, calibration=calibration, **options)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        compiled.save(partial)
        partial.chmod(0o700)
        partial.rename(target)
    return target
