"""AlexNet (Krizhevsky et al., 2012) as SHARK runs it: no biases, 9216 units in dense 1."""

from __future__ import annotations

from .network import NetworkBuilder


def alexnet() -> NetworkBuilder:
    """ImageNet: five convolutions, three max poolings, three dense layers."""
    net = NetworkBuilder("alexnet", (1, 3, 224, 224), moment=1 / 3)
    x = net.relu(net.conv(net.input, 96, 11, stride=4, padding=2, bias=False))
    x = net.max_pool(x, 3, 2)
    x = net.relu(net.conv(x, 256, 5, padding=2, bias=False))
    x = net.max_pool(x, 3, 2)
    for channels in (384, 384, 256):
        x = net.relu(net.conv(x, channels, 3, padding=1, bias=False))
    x = net.flatten(net.max_pool(x, 3, 2))
    for features in (9216, 4096):
        x = net.relu(net.dense(x, features, bias=False))
    net.finish(net.dense(x, 1000, bias=False))
    return net
