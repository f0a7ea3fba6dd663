"""Calibration samples from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privet.errors import InputError

Array = npt.NDArray[np.generic]

Sample = Array | Mapping[str, Array]


def read_samples(path: Path) -> list[Sample]:
    """Calibration samples, one along the first axis: a .npy for a model with one input, or a .npz
    with an array for each input, by name.

    # Errors
    `InputError` if the file cannot be read or its arrays hold different numbers of samples.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as calibration samples: {error}") from error
    counts = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(counts) != 1 or counts == {0}:
        raise InputError(f"{path}: every array needs the same number of samples, at least one")
    samples = [{name: array[i : i + 1] for name, array in arrays.items()} for i in range(*counts)]
    return [sample.get("", sample) for sample in samples]
