"""BERT encoders (Devlin et al., 2019; the tiny one of Turc et al., 2019).

LayerNorm follows each residual sum, and GELU is its exact form through the error function. The
encoders of the papers start at the hidden states: the client looks up and normalises the
embeddings. A classifier starts at the tokens.
"""

from __future__ import annotations

from .graph import Value
from .transformer import Heads, Transformer

EPSILON = 1e-12


def encoder(name: str, *, layers: int, heads: int, width: int, tokens: int = 128) -> Transformer:
    """From hidden states `[1, tokens, width]` to those of the last layer."""
    net = Transformer(name, (1, tokens, width), moment=1.0)
    net.finish(_layers(net, net.input, layers, heads), "hidden")
    return net


def classifier(
    name: str, *, layers: int, heads: int, width: int, tokens: int, vocabulary: int, classes: int
) -> Transformer:
    """From tokens `[1, tokens]` to the scores of classes, read off the first token."""
    net = Transformer(name, (1, tokens), moment=1.0, ids=True)
    x = net.positions(net.embed(net.input, vocabulary, width))
    x = _layers(net, net.norm(x, "embeddings.norm", EPSILON), layers, heads)
    net.finish(net.project(net.token(x, 0, "first"), classes, "classifier"))
    return net


def _layers(net: Transformer, x: Value, layers: int, heads: int) -> Value:
    for index in range(1, layers + 1):
        label = f"layer{index}"
        y = net.attention(x, Heads(heads, heads), label)
        x = net.norm(net.residual(x, y, f"{label}.attention"), f"{label}.attention.norm", EPSILON)
        y = net.feed_forward(x, 4 * x.shape[-1], label, 1.0, "erf")
        x = net.norm(net.residual(x, y, f"{label}.output"), f"{label}.output.norm", EPSILON)
    return x
