"""Experiment 1: the accuracy that scaling factors leave, on samples that training saw or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from privet.errors import Misuse
from privet.research.papers.datasets import CIFAR10, MNIST, Array
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.workplace import Workplace
from privet.research.stream.scaling import MOST_DECIMALS, choose

TRAINED = {"Breast": "breast-mlp", "digits (CNN)": "digits-cnn"}
"""Models of the zoo that are trained, each with samples that training did not see."""

GIVEN = {
    "MNIST-1": ("mnist-1", MNIST),
    "MNIST-2": ("mnist-2", MNIST),
    "MNIST-3": ("mnist-3", MNIST),
    "CIFAR-10-1": ("vgg13-cifar", CIFAR10),
    "CIFAR-10-2": ("vgg16-cifar", CIFAR10),
    "CIFAR-10-3": ("vgg19-cifar", CIFAR10),
}
"""The paper's models of data that a user may have."""

MOST_SEEN = 10_000
"""Training samples of such data that are looked at."""

DIGIT = 16.0
"""The brightest pixel of scikit-learn's digits."""


@dataclass(frozen=True)
class AccuracyCase:
    """A model's file, inputs `[n, ...]` for it, and their labels `[n]`."""

    model: Path
    inputs: Array
    labels: Array


def table_4(at: Workplace) -> Grid:
    return _accuracies(at, {**_training_cases(at), **_user_cases(at, train=True)})


def table_5(at: Workplace) -> Grid:
    return _accuracies(at, {**_unseen(at), **_user_cases(at, train=False)})


def _unseen(at: Workplace) -> dict[str, AccuracyCase]:
    """What training of the zoo's models left out, which lies beside them."""
    cases = {}
    for title, name in TRAINED.items():
        archive = np.load(at.trained(f"{name}.npz"))
        cases[title] = AccuracyCase(
            at.trained(f"{name}.onnx"), archive["inputs"], archive["labels"]
        )
    return cases


def _training_cases(at: Workplace) -> dict[str, AccuracyCase]:
    """What the zoo's models were trained on: scikit-learn's samples that were not left out."""
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise Misuse("training samples come from scikit-learn, which is not installed") from error
    sources = {"Breast": datasets.load_breast_cancer, "digits (CNN)": datasets.load_digits}
    cases = {}
    for title, name in TRAINED.items():
        whole, archive = sources[title](), np.load(at.trained(f"{name}.npz"))
        left_out = {row.astype(np.float32).tobytes() for row in archive["raw"]}
        in_training = [row.astype(np.float32).tobytes() not in left_out for row in whole.data]
        card = json.loads(at.trained(f"{name}.json").read_text())
        if sum(in_training) != card["trained_on"]:
            raise Misuse(f"{name}: {sum(in_training)} samples seen, not {card['trained_on']}")
        inputs = (whole.data[in_training] - card.get("mean", 0.0)) / card.get("std", DIGIT)
        inputs = inputs.astype(np.float32).reshape(-1, *archive["inputs"].shape[1:])
        cases[title] = AccuracyCase(at.trained(f"{name}.onnx"), inputs, whole.target[in_training])
    return cases


def _user_cases(at: Workplace, *, train: bool) -> dict[str, AccuracyCase]:
    """The paper's models of data that the user has."""
    cases = {}
    for title, (name, data) in GIVEN.items():
        model = at.user_model(name, data)
        if model is not None:
            samples = at.user_samples(data, train=train, limit=MOST_SEEN if train else None)
            cases[title] = AccuracyCase(model, samples.images, samples.labels)
    return cases


def _accuracies(at: Workplace, cases: Mapping[str, AccuracyCase]) -> Grid:
    rows: dict[str, list[Cell]] = {}
    for title, case in cases.items():
        at.report(f"{title}, {len(case.labels):,} samples")
        source = onnx.load(case.model)
        constants = {tensor.name for tensor in source.graph.initializer}
        (entry,) = (
            candidate for candidate in source.graph.input if candidate.name not in constants
        )
        shape = [dim.dim_value or 1 for dim in entry.type.tensor_type.shape.dim]
        samples = [{entry.name: array.reshape(shape)} for array in case.inputs]
        scaling = choose(source, samples, case.labels)
        cells: list[Cell] = [100 * accuracy for accuracy in scaling.accuracies]
        missing = MOST_DECIMALS + 1 - len(cells)
        rows[title] = [*cells, *[None] * missing, 100 * scaling.original]
    columns = (f"10^{decimals}" for decimals in range(MOST_DECIMALS + 1))
    return Grid((*columns, "original"), rows)
