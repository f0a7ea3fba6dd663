"""Vision Transformers (Dosovitskiy et al., 2021; the tiny one of Touvron et al., 2021)."""

from __future__ import annotations

import math

from .graph import Normal, Uniform
from .transformer import Heads, Transformer


def vit(
    name: str,
    *,
    image: tuple[int, int, int],
    patch: int,
    layers: int,
    heads: int,
    width: int,
    classes: int,
) -> Transformer:
    """From an image `[1, C, H, W]` to the scores of classes, read off a token of its own."""
    channels, height, across = image
    net = Transformer(name, (1, *image), moment=1 / 3)
    grid = (height // patch, across // patch)
    fan_in, count = channels * patch * patch, math.prod(grid)
    kernel = (width, channels, patch, patch)
    law = Normal(math.sqrt(3.0 / fan_in))
    x = net.node(
        "Conv",
        [
            net.input,
            net.weight("patches.weight", kernel, law),
            net.weight("patches.bias", (width,), Uniform(-0.1, 0.1)),
        ],
        (1, width, *grid),
        signed=1.0,
        label="patches",
        kernel_shape=[patch, patch],
        strides=[patch, patch],
    )
    net.multiply_accumulates += count * width * fan_in
    x = net.transpose(net.reshape(x, (1, width, count), "patches.flat"), (0, 2, 1), "patches.rows")
    class_token = net.weight("class.weight", (1, 1, width), Normal(1.0))
    x = net.node(
        "Concat", [class_token, x], (1, count + 1, width), signed=1.0, label="class", axis=1
    )
    x = net.blocks(net.positions(x), layers, Heads(heads, heads), "erf")
    x = net.token(x, 0, "first")
    net.finish(net.project(x, classes, "classifier"))
    return net


def tiny() -> Transformer:
    """Images of 224 x 224 in patches of 16: 12 layers, 3 heads, 192 wide."""
    return vit(
        "vit-tiny", image=(3, 224, 224), patch=16, layers=12, heads=3, width=192, classes=1000
    )
