"""PP-Stream's MNIST-2: the CryptoNets shape with batch normalisation and ReLU."""

from __future__ import annotations

from .network import NetworkBuilder


def mnist_2() -> NetworkBuilder:
    """One 5x5 convolution of stride 2 and two dense layers, normalised before each ReLU."""
    net = NetworkBuilder("mnist-2", (1, 1, 28, 28), moment=1 / 3)
    x = net.conv(net.input, 5, 5, stride=2, padding=1, bias=False)
    x = net.flatten(net.relu(net.batch_norm(x)))
    x = net.relu(net.batch_norm(net.dense(x, 100, bias=False)))
    net.finish(net.dense(x, 10))
    return net
