"""Conv."""

from __future__ import annotations

from privet.compiler.graph.operations import Conv2d, real
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Site
from privet.compiler.graph.windows import as_image, from_image, spatial_of, windows


@operator("Conv", restrictions="1-D and 2-D; weights and bias constant")
def conv(site: Site) -> Operand:
    """Groups, dilation, explicit pads and every auto_pad."""
    x = site.private(0)
    weight = real(site.constant(1, "weights"))
    bias = real(site.constant(2, "bias")) if site.has(2) else None
    spatial = spatial_of(site, x)
    if weight.ndim != len(x.shape):
        site.refuse(f"weights {list(weight.shape)} on input {list(x.shape)}", "Check the model")
    geometry = windows(site, spatial, weight.shape[2:])
    kernel = Conv2d(
        weight=weight.reshape(*weight.shape[:2], *geometry.kernel),
        bias=bias,
        stride=geometry.stride,
        padding=geometry.padding,
        dilation=geometry.dilation,
        groups=site.attribute("group", 1),
    )
    return from_image(site, site.emit(kernel, as_image(site, x)), len(spatial))
