"""VGG (Simonyan and Zisserman, 2015): VGG-16 for ImageNet; VGG13, 16 and 19 for CIFAR-10."""

from __future__ import annotations

from .graph import Value
from .network import NetworkBuilder

CHANNELS = (64, 128, 256, 512, 512)
CONVOLUTIONS = {13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg16() -> NetworkBuilder:
    """ImageNet: thirteen convolutions with biases and three dense layers."""
    net = NetworkBuilder("vgg16", (1, 3, 224, 224), moment=1 / 3)
    x = net.flatten(_blocks(net, 16, batch_norm=False))
    for features in (4096, 4096):
        x = net.relu(net.dense(x, features))
    net.finish(net.dense(x, 1000))
    return net


def vgg_cifar(depth: int) -> NetworkBuilder:
    """CIFAR-10: batch-normalised convolutions and one dense layer; `depth` is 13, 16 or 19."""
    net = NetworkBuilder(f"vgg{depth}-cifar", (1, 3, 32, 32), moment=1 / 3)
    x = net.flatten(_blocks(net, depth, batch_norm=True))
    net.finish(net.dense(x, 10))
    return net


def _blocks(net: NetworkBuilder, depth: int, *, batch_norm: bool) -> Value:
    x = net.input
    for channels, convolutions in zip(CHANNELS, CONVOLUTIONS[depth], strict=True):
        for _ in range(convolutions):
            x = net.conv(x, channels, 3, padding=1, bias=not batch_norm)
            x = net.relu(net.batch_norm(x) if batch_norm else x)
        x = net.max_pool(x, 2, 2)
    return x
