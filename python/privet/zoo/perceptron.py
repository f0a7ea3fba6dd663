"""Three dense layers: PP-Stream's MNIST-1 and its three medical models.

The paper gives no widths; these are ours.
"""

from __future__ import annotations

from .network import Network

WIDTHS = {
    "mnist-1": (784, 128, 128, 10),
    "breast": (30, 64, 32, 2),
    "heart": (13, 64, 32, 2),
    "cardio": (11, 64, 32, 2),
}


def perceptron(name: str) -> Network:
    """The perceptron of that name; features are standardised, MNIST's pixels in [0, 1]."""
    first, *hidden, last = WIDTHS[name]
    net = Network(name, (1, first), moment=1 / 3 if name == "mnist-1" else 1.0)
    x = net.input
    for features in hidden:
        x = net.relu(net.dense(x, features))
    net.finish(net.dense(x, last))
    return net
