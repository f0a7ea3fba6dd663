"""Arrays from files of numpy, and calibration samples from these."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privet.errors import InputError

Array = npt.NDArray[np.generic]

Sample = Array | Mapping[str, Array]


def load_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz by their names, or the only one of a .npy under the name "". Raises
    `InputError` if the file is no such file, or holds Python objects."""
    if path.suffix.lower() not in (".npy", ".npz"):
        raise InputError(f"{path}: a .npy or .npz file is needed, as numpy.save and savez write it")
    try:
        data = np.load(path, allow_pickle=False)
        return {"": data} if isinstance(data, np.ndarray) else dict(data)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = str(error)
        if "pickle" in reason:
            reason = (
                "it is no file of numpy, or holds Python objects: save numbers, and texts by "
                "array.astype(str)"
            )
        raise InputError(f"{path} cannot be read: {reason}") from error


def read_samples(path: Path) -> list[Sample]:
    """Calibration samples, one along the first axis: a .npy for a model with one input, or a .npz
    with an array for each input, by name; in order only where numpy named them (`arr_0`, ...).
    Raises `InputError` if the file cannot be read or its arrays hold different numbers of
    samples."""
    arrays = load_arrays(path)
    counts = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(counts) != 1 or counts == {0}:
        raise InputError(f"{path}: every array needs the same number of samples, at least one")
    samples = [{name: array[i] for name, array in arrays.items()} for i in range(*counts)]
    return [sample.get("", sample) for sample in samples]
