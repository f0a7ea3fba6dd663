"""Folders of data sets as users have them, small ones made here, and training on them."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from privet.errors import InputError
from privet.research.papers import datasets, items, training
from privet.research.papers.datasets import CIFAR10, IMAGENET, MNIST, Samples
from privet.research.papers.paper import paper
from privet.research.papers.workplace import Workplace
from privet.zoo.perceptron import WIDTHS


def idx(array: datasets.Array) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def digits(count: int, seed: int) -> tuple[datasets.Array, datasets.Array]:
    """Images whose class is where they are bright."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 10, count, dtype=np.uint8)
    images = generator.integers(0, 60, (count, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 2] += 190
    return images, labels


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """As torchvision leaves it, two folders below, one part gzipped."""
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for part, count, pack in (("train", 600, gzip.compress), ("t10k", 50, bytes)):
        images, labels = digits(count, count)
        ending = ".gz" if pack is gzip.compress else ""
        (folder / f"{part}-images-idx3-ubyte{ending}").write_bytes(pack(idx(images)))
        (folder / f"{part}-labels-idx1-ubyte{ending}").write_bytes(pack(idx(labels)))
    return tmp_path


def test_mnist_is_read_where_it_lies(mnist: Path) -> None:
    images, labels = digits(50, 50)
    data = datasets.read(mnist, MNIST)
    assert data.images.shape == (50, 1, 28, 28)
    assert np.array_equal(np.rint(255 * data.images[:, 0]), images)
    assert np.array_equal(data.labels, labels)
    assert len(datasets.read(mnist, MNIST, train=True, limit=7).labels) == 7
    assert datasets.has(mnist, MNIST)
    assert not datasets.has(mnist, CIFAR10)
    assert not datasets.has(mnist, IMAGENET)


def test_a_file_that_is_cut_short_is_refused(mnist: Path) -> None:
    path = mnist / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="39199 elements, not those of its shape"):
        datasets.read(mnist, MNIST)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="is no IDX file of 3 axes"):
        datasets.read(mnist, MNIST)
    path.unlink()
    with pytest.raises(InputError, match="has no file t10k-images"):
        datasets.read(mnist, MNIST)


def test_cifar_is_the_same_in_both_versions(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    pixels = generator.integers(0, 256, (6, 3072), dtype=np.uint8)
    labels = generator.integers(0, 10, 6, dtype=np.uint8)
    binary, python = tmp_path / "a" / "cifar-10-batches-bin", tmp_path / "b"
    binary.mkdir(parents=True)
    python.mkdir()
    records = np.concatenate([labels[:, None], pixels], axis=1)
    (binary / "test_batch.bin").write_bytes(records.tobytes())
    batch = {b"data": pixels, b"labels": labels.tolist(), b"batch_label": b"testing batch 1 of 1"}
    (python / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    from_binary, from_python = (
        datasets.read(path, CIFAR10, limit=5) for path in (binary.parent, python)
    )
    assert from_binary.images.shape == (5, 3, 32, 32)
    assert np.array_equal(from_binary.images, from_python.images)
    assert np.array_equal(from_binary.labels, labels[:5])
    assert np.array_equal(from_python.labels, labels[:5])


class Code:
    """What a pickle could do."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("ran",)


def test_a_pickle_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_batch").write_bytes(pickle.dumps({b"data": Code()}))
    with pytest.raises(InputError, match=r"it names posix\.mkdir"):
        datasets.read(tmp_path, CIFAR10)
    assert not (tmp_path / "ran").exists()


def test_imagenet_is_cropped_and_labelled_by_its_folders(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / "val" / f"n{number:08}").mkdir(parents=True)
    grey = Image.new("RGB", (512, 300), (124, 116, 104))
    for name in ("n00000003/b.png", "n00000007/a.png"):
        grey.save(tmp_path / "val" / name)
    data = datasets.read(tmp_path, IMAGENET, limit=1000)
    assert data.images.shape == (2, 3, 224, 224)
    assert data.labels.tolist() == [3, 7]
    assert np.abs(data.images).max() < 0.01
    (tmp_path / "val" / "n00000000").rmdir()
    with pytest.raises(InputError, match="no 1000 folders"):
        datasets.read(tmp_path, IMAGENET)


def test_gradients_are_those_of_finite_differences() -> None:
    generator = np.random.default_rng(3)
    shapes = ((4, 5), (4,), (3, 4), (3,))
    weights = [generator.standard_normal(shape) for shape in shapes]
    inputs, labels = generator.standard_normal((6, 5)), generator.integers(0, 3, 6)

    def loss() -> float:
        hidden = np.maximum(inputs @ weights[0].T + weights[1], 0)
        scores = hidden @ weights[2].T + weights[3]
        return float(np.mean(np.log(np.exp(scores).sum(1)) - scores[np.arange(6), labels]))

    gradients = training.gradients(weights, inputs, labels)
    for weight, gradient in zip(weights, gradients, strict=True):
        place = (0,) * weight.ndim
        before, small = weight[place], 1e-6
        weight[place] = before + small
        above = loss()
        weight[place] = before - small
        below = loss()
        weight[place] = before
        assert gradient[place] == pytest.approx((above - below) / (2 * small), abs=1e-6)


def test_the_same_command_has_rows_for_data_that_is_there(mnist: Path, tmp_path: Path) -> None:
    article = paper("ppstream")
    workplace = Workplace(tmp_path / "out", quick=True, data=mnist)
    grid = items.run(article, article.item("table-5"), workplace).grid
    assert float(grid.rows["MNIST-1"][-1] or 0) > 95
    assert "MNIST-2" not in grid.rows
    without = items.run(
        article, article.item("table-5"), Workplace(tmp_path / "out", quick=True)
    ).grid
    assert "MNIST-1" not in without.rows


def test_a_model_beside_the_data_is_taken(mnist: Path, tmp_path: Path) -> None:
    noise = np.random.default_rng(5)
    samples = Samples(noise.random((64, 1, 28, 28), np.float32), noise.integers(0, 10, 64))
    training.train("mnist-1", samples, mnist / "mnist-1.onnx", epochs=1)
    article = paper("ppstream")
    grid = items.run(
        article, article.item("table-5"), Workplace(tmp_path, quick=True, data=mnist)
    ).grid
    assert float(grid.rows["MNIST-1"][-1] or 0) < 60
    assert "mnist-1" in WIDTHS
