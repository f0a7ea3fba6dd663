"""Residual networks (He et al., 2016): ResNet-20 for CIFAR-10 and ResNet-50 v1 for ImageNet."""

from __future__ import annotations

from .graph import Value
from .network import NetworkBuilder

# Each block adds its branch to what came before; a small branch keeps the sum near one.
BRANCH_GAIN = 0.5


def resnet20() -> NetworkBuilder:
    """Nine basic blocks of widths 16, 32 and 64; a 1x1 convolution where the shape changes."""
    net = NetworkBuilder("resnet20", (1, 3, 32, 32), moment=1 / 3)
    x = net.relu(_normed(net, net.input, 16, 3))
    for channels in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and channels > 16 else 1
            x = _basic(net, x, channels, stride)
    net.finish(net.dense(net.flatten(net.global_average_pool(x)), 10))
    return net


def resnet50() -> NetworkBuilder:
    """Sixteen bottleneck blocks, the stride on the 3x3 convolution."""
    net = NetworkBuilder("resnet50", (1, 3, 224, 224), moment=1 / 3)
    x = net.relu(_normed(net, net.input, 64, 7, stride=2))
    x = net.max_pool(x, 3, 2, padding=1)
    for stage, (channels, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            x = _bottleneck(net, x, channels, stride)
    net.finish(net.dense(net.flatten(net.global_average_pool(x)), 1000))
    return net


def _basic(net: NetworkBuilder, x: Value, channels: int, stride: int) -> Value:
    branch = net.relu(_normed(net, x, channels, 3, stride=stride))
    branch = _normed(net, branch, channels, 3, gain=BRANCH_GAIN)
    return _join(net, x, branch, stride)


def _bottleneck(net: NetworkBuilder, x: Value, channels: int, stride: int) -> Value:
    branch = net.relu(_normed(net, x, channels, 1))
    branch = net.relu(_normed(net, branch, channels, 3, stride=stride))
    branch = _normed(net, branch, 4 * channels, 1, gain=BRANCH_GAIN)
    return _join(net, x, branch, stride)


def _join(net: NetworkBuilder, x: Value, branch: Value, stride: int) -> Value:
    if x.shape != branch.shape:
        x = _normed(net, x, branch.shape[1], 1, stride=stride)
    return net.relu(net.add(branch, x))


def _normed(
    net: NetworkBuilder, x: Value, channels: int, kernel: int, stride: int = 1, gain: float = 1.0
) -> Value:
    x = net.conv(x, channels, kernel, stride=stride, padding=kernel // 2, bias=False)
    return net.batch_norm(x, gain)
