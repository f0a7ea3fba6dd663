"""Decoders: GPT-2 (Radford et al., 2019) and a block of LLaMA (Touvron et al., 2023)."""

from __future__ import annotations

import math

from .transformer import Heads, Transformer


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
    gain = 1 / math.sqrt(2 * layers)
    seen = Heads(heads, heads, causal=True)
    for index in range(1, layers + 1):
        label = f"layer{index}"
        y = net.attention(net.norm(x, f"{label}.attention.norm"), seen, label, gain)
        x = net.residual(x, y, f"{label}.attention")
        y = net.norm(x, f"{label}.output.norm")
        x = net.residual(x, net.feed_forward(y, 4 * width, label, gain, "tanh"), f"{label}.output")
    x = net.norm(x, "norm")
    if not every:
        x = net.token(x, tokens - 1, "last")
    table = net.node("Transpose", ["tokens.weight"], (width, vocabulary), signed=1.0, perm=[1, 0])
    shape = (*x.shape[:-1], vocabulary)
    net.multiply_accumulates += math.prod(shape) * width
    net.finish(net.node("MatMul", [x, table], shape, signed=1.0, label="scores"))
    return net


def small() -> Transformer:
    """GPT-2 small, 32 tokens: 12 layers, 12 heads, 768 wide, a vocabulary of 50,257."""
    return gpt("gpt2", layers=12, heads=12, width=768, tokens=32, vocabulary=50257)


def llama(
    name: str, *, layers: int, heads: int, groups: int, width: int, hidden: int, tokens: int
) -> Transformer:
    """Hidden states `[1, tokens, width]` through blocks with RMSNorm, rotary positions, grouped
    queries and SwiGLU, as LLaMA has them."""
    net = Transformer(name, (1, tokens, width), moment=1.0)
    x = net.input
    gain = 1 / math.sqrt(2 * layers)
    seen = Heads(heads, groups, causal=True, rotary=True, biased=False)
    for index in range(1, layers + 1):
        label = f"layer{index}"
        y = net.attention(net.rms_norm(x, f"{label}.attention.norm"), seen, label, gain)
        x = net.residual(x, y, f"{label}.attention")
        y = net.gated(net.rms_norm(x, f"{label}.output.norm"), hidden, label, gain)
        x = net.residual(x, y, f"{label}.output")
    net.finish(net.rms_norm(x, "norm"), "hidden")
    return net


def llama_block() -> Transformer:
    """One block, 32 tokens: 16 heads of queries on 4 of keys, 1024 wide, 2816 between."""
    return llama("llama-block", layers=1, heads=16, groups=4, width=1024, hidden=2816, tokens=32)
