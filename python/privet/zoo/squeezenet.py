"""SqueezeNet v1.1 (Iandola et al., 2016) for ImageNet, as SecONNds measures it."""

from __future__ import annotations

from .graph import Value
from .network import NetworkBuilder


def squeezenet() -> NetworkBuilder:
    """26 convolutions in eight fire modules and two ends."""
    net = NetworkBuilder("squeezenet", (1, 3, 227, 227), moment=1 / 3)
    x = net.relu(net.conv(net.input, 64, 3, stride=2))
    for stage in (((16, 64),) * 2, ((32, 128),) * 2, ((48, 192),) * 2 + ((64, 256),) * 2):
        x = net.max_pool(x, 3, 2)
        for squeeze, expand in stage:
            x = _fire(net, x, squeeze, expand)
    x = net.relu(net.conv(x, 1000, 1))
    net.finish(net.flatten(net.average_pool(x, 13, 1)))
    return net


def _fire(net: NetworkBuilder, x: Value, squeeze: int, expand: int) -> Value:
    x = net.relu(net.conv(x, squeeze, 1))
    point = net.relu(net.conv(x, expand, 1))
    square = net.relu(net.conv(x, expand, 3, padding=1))
    return net.concat([point, square])
