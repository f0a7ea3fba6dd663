"""Values for the weights of a random model, a function of the model's and the weight's name."""

from __future__ import annotations

import hashlib

import numpy as np

from .graph import Array, Fixed, Normal, Weight


def draw(model: str, weight: Weight) -> Array:
    """The elements of one weight, float32 (or the constant itself), shape `weight.shape`.

    Each weight has its own generator, so values depend neither on the order in which weights are
    drawn nor on the other layers. The same NumPy gives the same values.
    """
    if isinstance(weight.law, Fixed):
        return weight.law.elements
    digest = hashlib.sha256(f"{model}/{weight.name}".encode()).digest()
    generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
    if isinstance(weight.law, Normal):
        values = generator.standard_normal(weight.shape, dtype=np.float32)
        values *= np.float32(weight.law.deviation)
        values += np.float32(weight.law.mean)
        return values
    values = generator.random(weight.shape, dtype=np.float32)
    values *= np.float32(weight.law.high - weight.law.low)
    values += np.float32(weight.law.low)
    return values
