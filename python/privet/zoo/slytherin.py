"""The networks of slytHErin (Intoci et al.), whose activations are polynomials.

NN5 is CryptoNets' network; NN20 and NN50 are those of Chillotti et al. (2021). The paper's "~754K"
and "~1M" parameters count the convolution as the 784 x 676 matrix that its framework multiplies by.
The intervals of the interpolants are ours: the paper's were measured on its own training data.
"""

from __future__ import annotations

from functools import partial

from .network import NetworkBuilder
from .polynomial import Interpolant, silu, softplus

QUADRATIC = Interpolant(softplus, degree=2, bound=4.0)
# The widest interval, to a power of two, on which degree 63 is exact to 12 fractional bits.
DEEP = {
    20: Interpolant(silu, degree=63, bound=16.0),
    50: Interpolant(softplus, degree=63, bound=16.0),
}


def nn5() -> NetworkBuilder:
    """One 5x5 convolution of stride 2 and two dense layers."""
    net = NetworkBuilder("nn5", (1, 1, 28, 28), moment=1 / 3)
    act = partial(QUADRATIC.append, net)
    x = act(net.conv(net.input, 5, 5, stride=2))
    x = act(net.dense(net.flatten(x), 100))
    net.finish(net.dense(x, 10))
    return net


def deep(layers: int) -> NetworkBuilder:
    """One 3x3 convolution and `layers` dense layers, 20 or 50 of them, 92 wide."""
    net = NetworkBuilder(f"nn{layers}", (1, 1, 28, 28), moment=1 / 3)
    # SiLU shrinks what is small; without larger biases the last of many layers would see nothing.
    net.bias_bound = 0.5
    act = partial(DEEP[layers].append, net)
    x = net.flatten(act(net.conv(net.input, 1, 3)))
    for _ in range(layers - 1):
        x = act(net.dense(x, 92))
    net.finish(net.dense(x, 10))
    return net
