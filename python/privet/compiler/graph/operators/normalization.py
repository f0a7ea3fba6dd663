"""BatchNormalization."""

from __future__ import annotations

import numpy as np

from privet.compiler.graph.operations import ChannelAffine
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Site


@operator("BatchNormalization", restrictions="inference form; statistics constant")
def batch_normalization(site: Site) -> Operand:
    """One factor and offset per channel, folded into a neighbouring layer where possible."""
    x = site.private(0)
    training = site.attribute("training_mode", 0) or (
        site.opset < 7 and not site.attribute("is_test", 0)
    )
    if training or any(site.uses(output) for output in range(1, site.outputs)):
        site.refuse("it is in training mode", "Export the model for inference")
    if not site.attribute("spatial", 1):
        site.refuse("its attribute spatial is 0", "Use one statistic per channel")
    scale, offset, mean, variance = (
        site.constant(index, name).astype(np.float64)
        for index, name in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    factor = scale / np.sqrt(variance + site.attribute("epsilon", 1e-5))
    return site.emit(ChannelAffine(factor, offset - mean * factor), x)
