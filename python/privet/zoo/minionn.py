"""The two networks of MiniONN (Liu et al., 2017), and others that share the first's shape."""

from __future__ import annotations

from .network import NetworkBuilder


def m1(name: str = "m1") -> NetworkBuilder:
    """MNIST: two 5x5 convolutions, each pooled before its ReLU, and two dense layers."""
    net = NetworkBuilder(name, (1, 1, 28, 28), moment=1 / 3)
    x = net.input
    for _ in range(2):
        x = net.relu(net.max_pool(net.conv(x, 16, 5), 2, 2))
    x = net.relu(net.dense(net.flatten(x), 100))
    net.finish(net.dense(x, 10))
    return net


def m1_silu() -> NetworkBuilder:
    """M1 without comparisons: average pools and SiLU in place of max pools and ReLU."""
    net = NetworkBuilder("m1-silu", (1, 1, 28, 28), moment=1 / 3)
    x = net.input
    for _ in range(2):
        x = net.silu(net.average_pool(net.conv(x, 16, 5), 2, 2))
    x = net.silu(net.dense(net.flatten(x), 100))
    net.finish(net.dense(x, 10))
    return net


def m2() -> NetworkBuilder:
    """CIFAR-10: seven convolutions with average pooling and one dense layer."""
    net = NetworkBuilder("m2", (1, 3, 32, 32), moment=1 / 3)
    x = net.relu(net.conv(net.input, 64, 3, padding=1))
    x = net.relu(net.conv(x, 64, 3, padding=1))
    x = net.average_pool(x, 2, 2)
    for _ in range(2):
        x = net.relu(net.conv(x, 64, 3, padding=1))
    x = net.average_pool(x, 2, 2)
    x = net.relu(net.conv(x, 64, 3, padding=1))
    x = net.relu(net.conv(x, 64, 1))
    x = net.relu(net.conv(x, 16, 1))
    net.finish(net.dense(net.flatten(x), 10))
    return net
