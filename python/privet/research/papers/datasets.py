"""A folder with MNIST, CIFAR-10 or ImageNet, as they are downloaded: `privet papers run --data`.

MNIST is its four IDX files, gzipped or not; CIFAR-10 its binary or its Python version, unpacked;
ImageNet the validation images in a folder for each of the 1,000 classes (`n01440764`). They may
lie in the folder itself or one or two folders below. Pixels are in [0, 1]; ImageNet's are cropped
and normalised as its networks expect.
"""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from privet.errors import InputError

Array = npt.NDArray[Any]

MNIST, CIFAR10, IMAGENET = "MNIST", "CIFAR-10", "ImageNet"

CLASSES = 1000
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RESIZED, CROPPED = 256, 224
MOST_OF_CLASS = 50
"""Validation images of each class."""

PLACES = ("", "*/", "*/*/")
RECORD = 1 + 3 * 32 * 32
"""Bytes of a sample in CIFAR-10's binary version: its label, then its colours' planes."""


@dataclass(frozen=True)
class Samples:
    """Images `[n, C, H, W]` as a model of the zoo takes them, and their labels `[n]`."""

    images: Array
    labels: Array


def read(folder: Path, name: str, *, train: bool = False, limit: int | None = None) -> Samples:
    """A data set's training samples, or those that it keeps for tests; `limit` of them if given.
    Raises `InputError` if the folder has not got it, or its files are not what they should be."""
    readers = {MNIST: _mnist, CIFAR10: _cifar, IMAGENET: _imagenet}
    return readers[name](folder, train, limit)


def has(folder: Path, name: str) -> bool:
    """Whether a folder has that data set, or seems to."""
    if name == IMAGENET:
        return _classes(folder) is not None
    patterns = ["t10k-images?idx3-ubyte*"] if name == MNIST else ["test_batch.bin", "test_batch"]
    return _first_match(folder, patterns) is not None


def _mnist(folder: Path, train: bool, limit: int | None) -> Samples:
    part = "train" if train else "t10k"
    images = _idx(_find(folder, [f"{part}-images?idx3-ubyte*"], MNIST), 3, limit)
    labels = _idx(_find(folder, [f"{part}-labels?idx1-ubyte*"], MNIST), 1, limit)
    return _samples(images[:, None] / np.float32(255), labels, MNIST)


def _idx(path: Path, axes: int, limit: int | None) -> Array:
    """An array of bytes: 0, 0, 8, the count of axes; the axes, big-endian; the elements."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    head = 4 + 4 * axes
    if len(data) < head or data[:4] != bytes((0, 0, 8, axes)):
        raise InputError(f"{path} is no IDX file of {axes} axes")
    shape = struct.unpack(f">{axes}I", data[4:head])
    elements = np.frombuffer(data, np.uint8, offset=head)
    if elements.size != int(np.prod(shape)):
        raise InputError(f"{path} has {elements.size} elements, not those of its shape {shape}")
    return elements.reshape(shape)[:limit]


def _cifar(folder: Path, train: bool, limit: int | None) -> Samples:
    names = [f"data_batch_{number}" for number in range(1, 6)] if train else ["test_batch"]
    parts = []
    for name in names:
        path = _find(folder, [f"{name}.bin", name], CIFAR10)
        parts.append(_binary(path) if path.suffix == ".bin" else _pickled(path))
        if limit is not None and sum(len(labels) for _, labels in parts) >= limit:
            break
    images, labels = (np.concatenate(arrays)[:limit] for arrays in zip(*parts, strict=True))
    return _samples(images.reshape(-1, 3, 32, 32) / np.float32(255), labels, CIFAR10)


def _binary(path: Path) -> tuple[Array, Array]:
    data = np.frombuffer(path.read_bytes(), np.uint8)
    if data.size % RECORD:
        raise InputError(f"{path} is no file of CIFAR-10's binary version")
    records = data.reshape(-1, RECORD)
    return records[:, 1:], records[:, 0]


class _Arrays(pickle.Unpickler):
    """Reads arrays of NumPy and nothing else, so that a file cannot run code."""

    ALLOWED = frozenset(
        {
            ("numpy", "dtype"),
            ("numpy", "ndarray"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _pickled(path: Path) -> tuple[Array, Array]:
    try:
        document = _Arrays(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        images, labels = np.asarray(document[b"data"]), np.asarray(document[b"labels"])
        return images.reshape(-1, RECORD - 1), labels
    except (pickle.UnpicklingError, KeyError, TypeError, ValueError, EOFError) as error:
        raise InputError(f"{path} is no file of CIFAR-10's Python version: {error}") from error


def _imagenet(folder: Path, train: bool, limit: int | None) -> Samples:
    """Of `limit` images each class in turn gives one; there are none to train with."""
    if train:
        raise InputError("of ImageNet only the validation images are read")
    if (classes := _classes(folder)) is None:
        raise InputError(f"{folder} has no {CLASSES} folders of ImageNet's classes (n01440764)")
    ranks = MOST_OF_CLASS if limit is None else -(-limit // CLASSES)
    files = [
        (path, label)
        for rank in range(ranks)
        for label, class_folder in enumerate(classes)
        for path in sorted(class_folder.iterdir())[rank : rank + 1]
    ][:limit]
    return _samples(
        np.stack([_photo(path) for path, _ in files]), [label for _, label in files], IMAGENET
    )


def _classes(folder: Path) -> list[Path] | None:
    """The folders of all classes, in the order of labels."""
    for place in PLACES:
        folders = sorted(path for path in folder.glob(f"{place}n{'[0-9]' * 8}") if path.is_dir())
        if len(folders) == CLASSES:
            return folders
    return None


def _photo(path: Path) -> Array:
    """The middle of an image, its shorter side scaled to 256 pixels, as `[3, 224, 224]`."""
    with Image.open(path) as image:
        scale = RESIZED / min(image.size)
        size = tuple(max(CROPPED, round(scale * side)) for side in image.size)
        pixels = np.asarray(image.convert("RGB").resize((size[0], size[1])), np.float32) / 255
    top, left = ((side - CROPPED) // 2 for side in pixels.shape[:2])
    middle = pixels[top : top + CROPPED, left : left + CROPPED]
    mean, deviation = (np.array(values, np.float32) for values in (MEAN, DEVIATION))
    normal = (middle - mean) / deviation
    return np.asarray(normal.transpose(2, 0, 1), np.float32)


def _samples(images: Array, labels: Sequence[int] | Array, name: str) -> Samples:
    if len(images) != len(labels) or not len(images):
        raise InputError(f"{name} has {len(images)} images and {len(labels)} labels")
    return Samples(np.asarray(images, np.float32), np.asarray(labels, np.int64))


def _find(folder: Path, patterns: Sequence[str], name: str) -> Path:
    if (path := _first_match(folder, patterns)) is None:
        raise InputError(f"{folder} has no file {patterns[0]} of {name}")
    return path


def _first_match(folder: Path, patterns: Sequence[str]) -> Path | None:
    """The first file of a pattern, in the folder or one or two below."""
    for place in PLACES:
        for pattern in patterns:
            for path in sorted(folder.glob(place + pattern)):
                if path.is_file():
                    return path
    return None
