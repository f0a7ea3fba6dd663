"""The models whose weights come from training, by the scripts in `zoo/train`, not from a seed."""

from __future__ import annotations

from .graph import Value
from .network import Network


def breast_mlp() -> Network:
    """Breast cancer: standardised features 30-64-32-2."""
    net = Network("breast-mlp", (1, 30), moment=1.0)
    x = net.input
    for features in (64, 32):
        x = net.relu(net.dense(x, features))
    net.finish(net.dense(x, 2))
    return net


def digits_cnn() -> Network:
    """Digits: four batch-normalised 3x3 convolutions, one residual block, one dense layer."""
    net = Network("digits-cnn", (1, 1, 8, 8), moment=1 / 3)
    x = net.relu(_normed(net, net.input, 16))
    branch = _normed(net, net.relu(_normed(net, x, 16)), 16)
    x = net.max_pool(net.relu(net.add(branch, x)), 2, 2)
    x = net.max_pool(net.relu(_normed(net, x, 32)), 2, 2)
    net.finish(net.dense(net.flatten(x), 10))
    return net


def _normed(net: Network, x: Value, channels: int) -> Value:
    return net.batch_norm(net.conv(x, channels, 3, padding=1, bias=False))
