"""The zoo's models by name: what each one is, what it costs, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from . import bert, gpt, minionn, resnet, slytherin, vgg, vit
from . import trained as training
from .alexnet import alexnet
from .graph import GraphBuilder
from .hinet import hinet
from .initial import draw
from .perceptron import perceptron, squared
from .ppstream import mnist_2
from .squeezenet import squeezenet
from .writer import write

Weights = Literal["random", "trained"]


@dataclass(frozen=True)
class CatalogEntry:
    """A model and its cost for one input.

    `parameters` counts learned weights, `multiply_accumulates` those of convolutions, dense layers
    and matrix products, and `relus` the elements that pass a ReLU.
    """

    name: str
    title: str
    input_shape: tuple[int, ...]
    source: str
    weights: Weights
    parameters: int
    multiply_accumulates: int
    relus: int


@dataclass(frozen=True)
class _Recipe:
    title: str
    source: str
    construct: Callable[[], GraphBuilder]


_MINIONN = "Liu et al., MiniONN (2017)"
_PPSTREAM = "Liu et al., PP-Stream"
_SLYTHERIN = "Intoci et al., slytHErin"
_RESNET = "He et al. (2016)"
_BERT = "Devlin et al. (2019), Turc et al. (2019)"

_RANDOM = {
    "m1": _Recipe("M1, MNIST CNN", _MINIONN, minionn.m1),
    "m1-silu": _Recipe("M1 with averages and SiLU", "after " + _MINIONN, minionn.m1_silu),
    "m2": _Recipe("M2, CIFAR-10 CNN", _MINIONN, minionn.m2),
    "hinet": _Recipe("HiNet, CIFAR-10 CNN", "Jawalkar et al., Orca (2024)", hinet),
    "alexnet": _Recipe("AlexNet, ImageNet", "Krizhevsky et al. (2012), in SHARK's form", alexnet),
    "vgg16": _Recipe("VGG-16, ImageNet", "Simonyan and Zisserman (2015)", vgg.vgg16),
    "mnist-1": _Recipe("MNIST-1, three dense layers", _PPSTREAM, partial(perceptron, "mnist-1")),
    "mnist-2": _Recipe("MNIST-2, one convolution and two dense", _PPSTREAM, mnist_2),
    "mnist-3": _Recipe(
        "MNIST-3, two convolutions and two dense", _PPSTREAM, partial(minionn.m1, "mnist-3")
    ),
    "breast": _Recipe("Breast cancer MLP", _PPSTREAM, partial(perceptron, "breast")),
    "heart": _Recipe("Heart disease MLP", _PPSTREAM, partial(perceptron, "heart")),
    "cardio": _Recipe("Cardiovascular disease MLP", _PPSTREAM, partial(perceptron, "cardio")),
    "vgg13-cifar": _Recipe("VGG13, CIFAR-10", _PPSTREAM, partial(vgg.vgg_cifar, 13)),
    "vgg16-cifar": _Recipe("VGG16, CIFAR-10", _PPSTREAM, partial(vgg.vgg_cifar, 16)),
    "vgg19-cifar": _Recipe("VGG19, CIFAR-10", _PPSTREAM, partial(vgg.vgg_cifar, 19)),
    "nn5": _Recipe("NN5, softplus of degree 2", _SLYTHERIN, slytherin.nn5),
    "nn20": _Recipe("NN20, SiLU of degree 63", _SLYTHERIN, partial(slytherin.deep, 20)),
    "nn50": _Recipe("NN50, softplus of degree 63", _SLYTHERIN, partial(slytherin.deep, 50)),
    "mlp-square": _Recipe("MLP with squares, MNIST", "Ebel et al., Orion (2025)", squared),
    "squeezenet": _Recipe("SqueezeNet v1.1, ImageNet", "Iandola et al. (2016)", squeezenet),
    "resnet20": _Recipe("ResNet-20, CIFAR-10", _RESNET, resnet.resnet20),
    "resnet50": _Recipe("ResNet-50 v1, ImageNet", _RESNET, resnet.resnet50),
    **{
        name: _Recipe(
            f"{size} encoder, {tokens} tokens",
            _BERT,
            partial(bert.encoder, name, layers=layers, heads=heads, width=width, tokens=tokens),
        )
        for name, size, layers, heads, width, tokens in (
            ("bert-tiny", "BERT-Tiny", 2, 2, 128, 128),
            ("bert-tiny-64", "BERT-Tiny", 2, 2, 128, 64),
            ("bert-tiny-256", "BERT-Tiny", 2, 2, 128, 256),
            ("bert-base", "BERT-Base", 12, 12, 768, 128),
        )
    },
    "vit-tiny": _Recipe("ViT-Tiny, ImageNet", "Touvron et al., DeiT (2021)", vit.tiny),
    "gpt2": _Recipe("GPT-2 small, 32 tokens", "Radford et al. (2019)", gpt.small),
    "gpt2-cached": _Recipe(
        "GPT-2 small, token by token", "Radford et al. (2019)", gpt.small_cached
    ),
    "llama-block": _Recipe(
        "A block like LLaMA's, 32 tokens", "after Touvron et al. (2023)", gpt.llama_block
    ),
}

_TRAINED = {
    "breast-mlp": _Recipe(
        "Breast cancer MLP", "zoo/train/breast.py, scikit-learn's data", training.breast_mlp
    ),
    "digits-cnn": _Recipe(
        "8x8 digits CNN", "zoo/train/digits.py, scikit-learn's data", training.digits_cnn
    ),
    "digits-vit": _Recipe(
        "8x8 digits ViT", "zoo/train/digits_vit.py, scikit-learn's data", training.digits_vit
    ),
    "docs-gpt": _Recipe(
        "GPT on characters of docstrings", "zoo/train/docs.py, Python's library", training.docs_gpt
    ),
    "docs-bert": _Recipe(
        "BERT that tells docstrings' modules",
        "zoo/train/docs.py, Python's library",
        training.docs_bert,
    ),
}


def names() -> list[str]:
    """The models that `build` writes: their weights are random."""
    return list(_RANDOM)


def trained() -> list[str]:
    """The models committed as `zoo/models/NAME.onnx`: their weights are trained."""
    return list(_TRAINED)


def describe(name: str) -> CatalogEntry:
    """What the model `name`, random or trained, is and costs. Raises `KeyError` if the zoo has no
    such model."""
    recipe = _recipe(name)
    graph = recipe.construct()
    return CatalogEntry(
        name=name,
        title=recipe.title,
        input_shape=graph.input.shape,
        source=recipe.source,
        weights="trained" if name in _TRAINED else "random",
        parameters=graph.parameters,
        multiply_accumulates=graph.multiply_accumulates,
        relus=graph.relus,
    )


def build(name: str, directory: str | Path) -> Path:
    """Write `directory/NAME.onnx` with random weights and return its path.

    The weights depend on the name alone, so every build gives the same bytes. They show shapes,
    costs and speed, never accuracy.

    Raises `KeyError` if the zoo has no such model; `ValueError` if its weights are trained.
    """
    recipe = _recipe(name)
    if name in _TRAINED:
        raise ValueError(f"{name} is trained, not built: use zoo/models/{name}.onnx")
    graph = recipe.construct()
    if graph.name != name:
        raise AssertionError(f"the builder of {name} made {graph.name}")
    path = Path(directory) / f"{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(graph, path, lambda weight: draw(name, weight))
    return path


def _recipe(name: str) -> _Recipe:
    recipe = _RANDOM.get(name) or _TRAINED.get(name)
    if recipe is None:
        raise KeyError(f"no model {name!r} in the zoo; it has {', '.join([*_RANDOM, *_TRAINED])}")
    return recipe
