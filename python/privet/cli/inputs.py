"""Inputs from files: .npy, .npz and images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privet.compiler.executor.codec import in_order, with_sample_axis
from privet.errors import InputError
from privet.runtime.calibration import load_arrays

Array = npt.NDArray[np.generic]

IMAGES = {".png", ".jpg", ".jpeg", ".bmp"}


def read_inputs(
    paths: Sequence[Path], shapes: Mapping[str, tuple[int, ...]], batch: int = 1
) -> list[Array]:
    """The samples in all files, stacked, for a program that takes `batch` samples at once.

    `shapes` are those of the program's inputs, by name and in order. A file holds a sample, or
    several.

    Raises `InputError` if a file cannot be read or does not fit; on several files without a batch.
    """
    if len(paths) > 1 and batch == 1:
        raise InputError(
            f"{len(paths)} inputs given, and the program takes one sample at a time: compile it "
            "with --batch"
        )
    single = {name: shape if batch == 1 else (1, *shape[1:]) for name, shape in shapes.items()}
    samples = [read_input(path, single) for path in paths]
    if len(samples) == 1:
        return samples[0]
    try:
        return [np.concatenate(arrays) for arrays in zip(*samples, strict=True)]
    except ValueError as error:
        raise InputError(f"the samples do not have the same shapes: {error}") from error


def read_input(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> list[Array]:
    """The arrays in `path` for inputs of these shapes, each beginning with a batch axis of 1.

    An image serves a model with one input `[1, channels, height, width]` of 1 or 3 channels: it is
    made grey or colour, resized, and scaled to [0, 1]. A .npy holds one input, an .npz one array
    for each, by name; in order only where numpy named them (`arr_0`, ...). A missing batch axis of
    1 is added.

    Raises `InputError` if the file cannot be read or does not fit.
    """
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        return [_image(path, shapes)]
    if suffix not in (".npy", ".npz"):
        raise InputError(f"{path}: a .npy, .npz or image file is needed")
    by_name = load_arrays(path)
    arrays = list(by_name.values())
    if suffix == ".npz":
        arrays = [by_name[name] for name in in_order(str(path), list(by_name), list(shapes))]
    return [
        with_sample_axis(array, shape)
        for array, shape in zip(arrays, shapes.values(), strict=False)
    ] + arrays[len(shapes) :]


def read_labels(path: Path | None, model: Path | None) -> list[str]:
    """Class names: lines of a text file, or `classes` of a JSON card, by default the one beside
    the model; empty if there is none."""
    card = path or (model.with_suffix(".json") if model else None)
    if card is None or not card.exists():
        if path is not None:
            raise InputError(f"{path} does not exist")
        return []
    text = card.read_text()
    if card.suffix != ".json":
        return text.splitlines()
    try:
        classes = json.loads(text).get("classes", [])
    except (ValueError, AttributeError) as error:
        raise InputError(f"{card} is not a JSON card with classes: {error}") from error
    return [str(name) for name in classes]


def _image(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> Array:
    from PIL import Image

    input_shapes = list(shapes.values())
    if (
        len(input_shapes) != 1
        or len(input_shapes[0]) != 4
        or input_shapes[0][0] != 1
        or input_shapes[0][1] not in (1, 3)
    ):
        raise InputError(
            f"{path}: an image serves a model with one input [1, 1 or 3, height, width], and this "
            f"one takes {[list(shape) for shape in input_shapes]}; give a .npy or .npz file"
        )
    _, channels, height, width = input_shapes[0]
    try:
        with Image.open(path) as image:
            fitted = image.convert("L" if channels == 1 else "RGB")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if fitted.size != (width, height):
        fitted = fitted.resize((width, height), Image.Resampling.BICUBIC)
    pixels = np.asarray(fitted, dtype=np.float32) / 255
    return (pixels[None] if channels == 1 else pixels.transpose(2, 0, 1))[None]
