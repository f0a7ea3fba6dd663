"""The importers of ONNX operators, one module per family."""

from privet.compiler.graph.operators import (
    activation,
    arithmetic,
    comparison,
    convolution,
    dense,
    layout,
    normalization,
    pooling,
    rearrangement,
    reduction,
    selection,
    smooth,
    traditional,
    trees,
)

__all__ = [
    "activation",
    "arithmetic",
    "comparison",
    "convolution",
    "dense",
    "layout",
    "normalization",
    "pooling",
    "rearrangement",
    "reduction",
    "selection",
    "smooth",
    "traditional",
    "trees",
]
