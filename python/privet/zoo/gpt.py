"""Decoders: GPT-2 (Radford et al., 2019) and a block of LLaMA (Touvron et al., 2023)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .graph import Normal, Value
from .transformer import Cache, Heads, Transformer

HIDDEN = -128.0
"""What lowers the score of a place in the cache that no token has taken yet. Scores up to 56 are
then so far above that the softmax is exactly 0 there."""


def gpt(
    name: str,
    *,
    layers: int,
    heads: int,
    width: int,
    tokens: int,
    vocabulary: int,
    every: bool = False,
) -> Transformer:
    """From tokens `[1, tokens]` to the scores of the next one; of `every` next one for training.

    LayerNorm stands before each part, GELU is its form through tanh, and scores are products with
    the table of the embedding.
    """
    net = Transformer(name, (1, tokens), moment=1.0, ids=True)
    x = net.positions(net.embed(net.input, vocabulary, width))
    x = net.blocks(x, layers, Heads(heads, heads, causal=True), "tanh")
    if not every:
        x = net.token(x, tokens - 1, "last")
    _scores(net, x, vocabulary)
    return net


def cached(
    name: str, *, layers: int, heads: int, width: int, context: int, vocabulary: int
) -> Transformer:
    """`gpt` token by token, with the same weights: of one token and its position to the scores of
    the next, beside the keys and values of up to `context - 1` tokens before.

    The cache is a window that moves on by a row with each token. Which of its rows are tokens yet
    follows from the position, by a table of masks.
    """
    net = Transformer(name, (1, 1), moment=1.0, ids=True)
    net.input = replace(net.input, name="input_ids")
    place = net.more_input("position_ids", (1, 1), ids=True)
    x = net.embed(net.input, vocabulary, width)
    places = net.weight("positions.weight", (context, width), Normal(0.1))
    shift = net.node("Gather", [places, place], x.shape, signed=0.01, label="positions", axis=0)
    x = net.node("Add", [x, shift], x.shape, signed=x.moment, label="positions.sum")
    hidden = np.where(np.tri(context, dtype=bool)[:, ::-1], 0.0, HIDDEN)
    table = net.constant("masks", hidden)
    row = (1, 1, context)
    mask = net.node("Gather", [table, place], row, signed=1.0, label="mask", axis=0)
    x = net.blocks(x, layers, Heads(heads, heads), "tanh", Cache(context, mask))
    _scores(net, x, vocabulary)
    return net


def _scores(net: Transformer, x: Value, vocabulary: int) -> None:
    width = x.shape[-1]
    table = net.node("Transpose", ["tokens.weight"], (width, vocabulary), signed=1.0, perm=[1, 0])
    shape = (*x.shape[:-1], vocabulary)
    net.multiply_accumulates += math.prod(shape) * width
    net.finish(net.node("MatMul", [x, table], shape, signed=1.0, label="scores"))


def small() -> Transformer:
    """GPT-2 small, 32 tokens: 12 layers, 12 heads, 768 wide, a vocabulary of 50,257."""
    return gpt("gpt2", layers=12, heads=12, width=768, tokens=32, vocabulary=50257)


def small_cached() -> Transformer:
    """GPT-2 small, token by token, up to 32."""
    return cached("gpt2-cached", layers=12, heads=12, width=768, context=32, vocabulary=50257)


def llama(
    name: str, *, layers: int, heads: int, groups: int, width: int, hidden: int, tokens: int
) -> Transformer:
    """Hidden states `[1, tokens, width]` through blocks with RMSNorm, rotary positions, grouped
    queries and SwiGLU, as LLaMA has them."""
    net = Transformer(name, (1, tokens, width), moment=1.0)
    x = net.input
    gain = 1 / math.sqrt(2 * layers)
    layout = Heads(heads, groups, causal=True, rotary=True, biased=False)
    for index in range(1, layers + 1):
        label = f"layer{index}"
        y = net.attention(net.rms_norm(x, f"{label}.attention.norm"), layout, label, gain)
        x = net.residual(x, y, f"{label}.attention")
        y = net.gated(net.rms_norm(x, f"{label}.output.norm"), hidden, label, gain)
        x = net.residual(x, y, f"{label}.output")
    net.finish(net.rms_norm(x, "norm"), "hidden")
    return net


def llama_block() -> Transformer:
    """One block, 32 tokens: 16 heads of queries on 4 of keys, 1024 wide, 2816 between."""
    return llama("llama-block", layers=1, heads=16, groups=4, width=1024, hidden=2816, tokens=32)
