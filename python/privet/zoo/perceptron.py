"""Three dense layers: PP-Stream's MNIST-1 and its three medical models, one of which is trained as
`breast-mlp`, and Orion's MLP.

PP-Stream gives no widths; these are ours.
"""

from __future__ import annotations

from .network import NetworkBuilder

WIDTHS = {
    "mnist-1": (784, 128, 128, 10),
    "breast": (30, 64, 32, 2),
    "heart": (13, 64, 32, 2),
    "cardio": (11, 64, 32, 2),
}


def perceptron(name: str, like: str | None = None) -> NetworkBuilder:
    """The perceptron of that name, as wide as that of `like` if that is given; features are
    standardised, MNIST's pixels in [0, 1]."""
    first, *hidden, last = WIDTHS[like or name]
    net = NetworkBuilder(name, (1, first), moment=1 / 3 if name == "mnist-1" else 1.0)
    x = net.input
    for features in hidden:
        x = net.relu(net.dense(x, features))
    net.finish(net.dense(x, last))
    return net


def squared() -> NetworkBuilder:
    """The MLP of Orion (Ebel et al., 2025): MNIST-1's layers with squares for activations."""
    net = NetworkBuilder("mlp-square", (1, 784), moment=1 / 3)
    x = net.input
    for features in (128, 128):
        x = net.square(net.dense(x, features))
    net.finish(net.dense(x, 10))
    return net
