"""HiNet, the three-convolution CIFAR-10 network of Orca (Jawalkar et al., 2024)."""

from __future__ import annotations

from .network import NetworkBuilder


def hinet() -> NetworkBuilder:
    """Three 5x5 convolutions, each pooled before its ReLU, and one dense layer."""
    net = NetworkBuilder("hinet", (1, 3, 32, 32), moment=1 / 3)
    x = net.input
    for _ in range(3):
        x = net.relu(net.max_pool(net.conv(x, 64, 5, padding=1), 3, 2))
    net.finish(net.dense(net.flatten(x), 10))
    return net
