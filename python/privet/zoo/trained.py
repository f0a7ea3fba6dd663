"""The models whose weights come from training, by the scripts in `zoo/train`, not from a seed."""

from __future__ import annotations

from .bert import classifier
from .gpt import cached, gpt
from .graph import Value
from .network import NetworkBuilder
from .perceptron import perceptron
from .transformer import Transformer
from .vit import vit


def breast_mlp() -> NetworkBuilder:
    """Breast cancer: standardised features 30-64-32-2."""
    return perceptron("breast-mlp", like="breast")


def digits_cnn() -> NetworkBuilder:
    """Digits: four batch-normalised 3x3 convolutions, one residual block, one dense layer."""
    net = NetworkBuilder("digits-cnn", (1, 1, 8, 8), moment=1 / 3)
    x = net.relu(_normed(net, net.input, 16))
    branch = _normed(net, net.relu(_normed(net, x, 16)), 16)
    x = net.max_pool(net.relu(net.add(branch, x)), 2, 2)
    x = net.max_pool(net.relu(_normed(net, x, 32)), 2, 2)
    net.finish(net.dense(net.flatten(x), 10))
    return net


CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
"""What `docs_gpt` reads and writes; a character's token is its place here."""


def digits_vit() -> Transformer:
    """Digits: patches of 2 x 2 pixels, two layers, 32 wide."""
    return vit("digits-vit", image=(1, 8, 8), patch=2, layers=2, heads=2, width=32, classes=10)


def docs_gpt(*, every: bool = False) -> Transformer:
    """The next character behind 64: two layers, 64 wide."""
    return gpt(
        "docs-gpt",
        layers=2,
        heads=4,
        width=64,
        tokens=64,
        vocabulary=len(CHARACTERS),
        every=every,
    )


def docs_gpt_cached() -> Transformer:
    """`docs_gpt` character by character, with the same weights."""
    return cached(
        "docs-gpt-cached", layers=2, heads=4, width=64, context=64, vocabulary=len(CHARACTERS)
    )


def docs_bert() -> Transformer:
    """Which of eight modules 32 words are from: two layers, 64 wide."""
    return classifier(
        "docs-bert", layers=2, heads=2, width=64, tokens=32, vocabulary=1024, classes=8
    )


SMOOTH = ("square", "sigmoid", "tanh", "softplus", "erf", "gelu", "silu")
"""The activations of `digits_smooth`: those that suite `ckks` computes."""


def digits_smooth(activation: str) -> NetworkBuilder:
    """Digits: one 3x3 convolution of stride 2, a smooth activation, one dense layer."""
    net = NetworkBuilder(f"digits-{activation}", (1, 1, 8, 8), moment=1 / 3)
    x = net.conv(net.input, 12, 3, stride=2, padding=1)
    net.finish(net.dense(net.flatten(_smooth(net, x, activation)), 10))
    return net


def _smooth(net: NetworkBuilder, x: Value, activation: str) -> Value:
    if activation == "square":
        return net.square(x)
    if activation == "silu":
        return net.silu(x)
    if activation != "gelu":
        return net.node(activation.capitalize(), [x], x.shape, signed=0.5)
    # x/2 (1 + erf(x / sqrt 2)), as exporters write it.
    inner = net.node("Mul", [x, net.constant("gelu.root", 0.5**0.5)], x.shape, signed=0.5)
    curve = net.node("Erf", [inner], x.shape, signed=0.5)
    raised = net.node("Add", [curve, net.constant("gelu.one", 1.0)], x.shape, signed=0.5)
    gated = net.node("Mul", [x, raised], x.shape, signed=0.5)
    return net.node("Mul", [gated, net.constant("gelu.half", 0.5)], x.shape, signed=0.5)


def _normed(net: NetworkBuilder, x: Value, channels: int) -> Value:
    return net.batch_norm(net.conv(x, channels, 3, padding=1, bias=False))
