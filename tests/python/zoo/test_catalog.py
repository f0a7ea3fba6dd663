"""The catalog against the numbers that the models' papers and their usual implementations give."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet import zoo

ROOT = Path(__file__).resolve().parents[3]

# Parameters, multiply-accumulates, ReLUs. Those of the dense networks follow from their widths.
PUBLISHED = {
    "alexnet": (130_525_216, None, None),
    "vgg16": (138_357_544, 15_470_264_320, 13_555_712),
    "squeezenet": (1_235_496, 352_540_352, None),
    "resnet20": (272_474, 40_813_184, 188_416),
    "resnet50": (25_557_032, 4_089_184_256, 9_608_704),
    "bert-tiny": (396_544, None, 0),
    "bert-base": (85_054_464, None, 0),
    "vit-tiny": (5_717_416, None, 0),
    "gpt2": (124_439_808 - (1024 - 32) * 768, None, 0),
    "mnist-1": (785 * 128 + 129 * 128 + 129 * 10, 784 * 128 + 128 * 128 + 1280, 256),
    "breast": (31 * 64 + 65 * 32 + 33 * 2, 30 * 64 + 64 * 32 + 64, 96),
    "nn50": (10 + 677 * 92 + 48 * 93 * 92 + 93 * 10, None, 0),
}


def test_names_are_those_of_the_papers() -> None:
    assert " ".join(zoo.names()) == (
        "m1 m1-silu m2 hinet alexnet vgg16 mnist-1 mnist-2 mnist-3 breast heart cardio vgg13-cifar "
        "vgg16-cifar vgg19-cifar nn5 nn20 nn50 mlp-square squeezenet resnet20 resnet50 bert-tiny "
        "bert-tiny-64 bert-tiny-256 bert-base vit-tiny gpt2 gpt2-cached llama-block"
    )
    assert " ".join(zoo.trained()) == "breast-mlp digits-cnn digits-vit docs-gpt docs-bert"


@pytest.mark.parametrize("name", PUBLISHED)
def test_costs_match_published_numbers(name: str) -> None:
    entry = zoo.describe(name)
    counts = (entry.parameters, entry.multiply_accumulates, entry.relus)
    for expected, actual in zip(PUBLISHED[name], counts, strict=True):
        assert expected is None or actual == expected


@pytest.mark.parametrize(("layers", "published"), [(20, 754e3), (50, 1e6)])
def test_deep_networks_of_slytherin_have_its_parameters(layers: int, published: float) -> None:
    """The paper counts a convolution as the matrix by which its framework multiplies."""
    matrix = (28 * 28 + 1) * 26 * 26
    convolution = 3 * 3 + 1
    written_out = zoo.describe(f"nn{layers}").parameters - convolution + matrix
    assert written_out == pytest.approx(published, rel=0.01)


def test_squeezenet_reaches_the_published_relus_once_its_first_pooling_comes_first() -> None:
    saved = 64 * (113**2 - 56**2)
    assert round((zoo.describe("squeezenet").relus - saved) / 1e6, 2) == 2.03


def test_an_entry_says_where_its_weights_come_from() -> None:
    assert {zoo.describe(name).weights for name in zoo.names()} == {"random"}
    assert {zoo.describe(name).weights for name in zoo.trained()} == {"trained"}
    assert all(zoo.describe(name).name == name for name in zoo.names())


def test_an_unknown_name_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="resnet20"):
        zoo.describe("resnet-20")
    with pytest.raises(KeyError, match="resnet20"):
        zoo.build("resnet-20", tmp_path)


def test_a_trained_model_is_not_built_from_a_seed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"zoo/models/digits-cnn\.onnx"):
        zoo.build("digits-cnn", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_page_on_models_shows_the_table_of_today() -> None:
    page = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
    assert zoo.table() in page
