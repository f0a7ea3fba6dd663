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
from privet.compiler.graph.input_shapes import InputShapes

Array = npt.NDArray[np.generic]


RULES = 2
"""Which rules of the compiler a folder was made by; one that others made is not used."""


def compile_once(
    model: Path,
    folder: Path,
    *,
    bits: int,
    scale: int,
    calibration: Sequence[Array | Mapping[str, Array]] | None,
    input_range: tuple[float, float] | None,
    name: str | None,
    batch: int = 1,
    weight_scale: int | None = None,
    relu: str = "exact",
    smooth: str = "polynomial",
    sound: bool = False,
    reveal: str = "outputs",
    input_shapes: InputShapes | None = None,
) -> Path:
    """A folder with the program that this file and these options compile to, below `folder`.

    What was compiled before is not compiled again.

    # Errors
    Those of `privet.compile`.
    """
    digest = hashlib.sha256(model.read_bytes())
    options: list[Any] = [RULES, bits, scale, input_range, name, batch]
    if weight_scale not in (None, scale) or relu != "exact":
        options += [weight_scale, relu]
    if smooth != "polynomial":
        options.append(smooth)
    if sound:
        options.append("sound")
    if reveal != "outputs" or input_shapes:
        options += [reveal, input_shapes]
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
            input_shapes=input_shapes,
        )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")
        compiled.save(partial)
        partial.chmod(0o700)
        partial.rename(target)
    return target
