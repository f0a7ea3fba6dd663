"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and operators on quantised tensors.

A quantised private tensor stays the real tensor that it stands for, in the fixed point of the
program: it is not rounded to its own steps. It is kept within its own range where calibration
leaves that (`Saturate`). Quantised weights are dequantised (docs/decisions/quantised-models.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Quantized, Site

_CONSTANT = "scale and zero point constant"
RANGES = {
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
}


@operator("QuantizeLinear", since=10, restrictions=f"of a whole tensor, to integers; {_CONSTANT}")
def quantize_linear(site: Site) -> Operand:
    """What stands for the tensor, kept within the range of its integers."""
    return _quantize(site, site.private(0), 1, 2)


@operator("DequantizeLinear", since=10, restrictions=f"of a whole tensor; {_CONSTANT}")
def dequantize_linear(site: Site) -> Operand:
    """`(q - zero) scale`."""
    return _real_operand(site, 0, 1, 2)


@operator(
    "DynamicQuantizeLinear", since=11, restrictions="where only its tensor's products read it"
)
def dynamic_quantize_linear(site: Site) -> tuple[Operand, ...]:
    """The tensor itself, as with steps of 1: its range is its own, so that nothing saturates."""
    one, zero = np.float32(1.0), np.uint8(0)
    tensor = replace(site.private(0), quantized=Quantized(1.0, 0.0))
    return tensor, np.asarray(one), np.asarray(zero)


@operator("MatMulInteger", since=10, restrictions="zero points constant")
def matmul_integer(site: Site) -> Operand:
    """`(a - zero) @ (b - zero)`."""
    zeros = [site.constant(k, "zero points") if site.has_input(k) else np.zeros(()) for k in (2, 3)]
    if zeros[0].ndim == 1:
        zeros[0] = zeros[0].reshape(-1, 1)
    return site.apply("MatMul", *(_subtract_zero(site, k, zero) for k, zero in enumerate(zeros)))


@operator("ConvInteger", since=10, restrictions="weights and zero points constant")
def conv_integer(site: Site) -> Operand:
    """`Conv` of both less their zero points."""
    zeros = [site.constant(k, "zero points") if site.has_input(k) else np.zeros(()) for k in (2, 3)]
    weight = site.constant(1, "weights")
    zeros[1] = zeros[1].reshape(-1, *[1] * (weight.ndim - 1))
    operands = [_subtract_zero(site, k, zero) for k, zero in enumerate(zeros)]
    return site.apply("Conv", *operands, **site.attributes)


@operator("QLinearMatMul", since=10, restrictions=_CONSTANT)
def qlinear_matmul(site: Site) -> Operand:
    """A `MatMul` between DequantizeLinear and QuantizeLinear."""
    product = site.apply(
        "MatMul", _real_operand(site, 0, 1, 2, (-1, 1)), _real_operand(site, 3, 4, 5, (-1,))
    )
    return _quantize(site, product, 6, 7)


@operator("QLinearConv", since=10, restrictions=f"weights and bias constant; {_CONSTANT}")
def qlinear_conv(site: Site) -> Operand:
    """A `Conv` between DequantizeLinear and QuantizeLinear; the bias has steps of both scales."""
    rank = site.constant(3, "weights").ndim
    operands = [_real_operand(site, 0, 1, 2), _real_operand(site, 3, 4, 5, (-1, *[1] * (rank - 1)))]
    if site.has_input(8):
        step = site.constant(1, "scale") * site.constant(4, "scale")
        operands.append(np.asarray(site.constant(8, "bias") * step.astype(np.float64)))
    return _quantize(site, site.apply("Conv", *operands, **site.attributes), 6, 7)


def _quantize(site: Site, x: Private, scale: int, zero: int) -> Private:
    """A tensor with the range and the steps that two inputs state."""
    scale_value = _scalar(site, scale, "scale")
    dtype = np.dtype(np.uint8)
    if site.has_input(zero):
        dtype = site.constant(zero, "zero point").dtype
    elif site.attribute("output_dtype", 0):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(site.attribute("output_dtype", 0))
    if dtype.name not in RANGES:
        site.refuse(f"it quantises to {dtype.name}", "Quantise to int8 or uint8")
    zero_point = _scalar(site, zero, "zero point") if site.has_input(zero) else 0.0
    low, high = ((end - zero_point) * scale_value for end in RANGES[dtype.name])
    if x.quantized is not None:
        x = _dequantize(site, x, 1.0, 0.0)
    levels = site.emit(op.Saturate(low, high, scale_value), x)
    return replace(levels, integer=False, whole=False, quantized=Quantized(scale_value, zero_point))


def _scalar(site: Site, index: int, role: str) -> float:
    array = site.constant(index, role)
    if array.size != 1:
        site.refuse(
            f"a private tensor has a {role} for each of {array.size} parts",
            "Quantise activations as whole tensors (per_channel is for weights)",
        )
    return float(array.astype(np.float64).reshape(()))


def _real_operand(
    site: Site, index: int, scale: int, zero: int, axes: tuple[int, ...] | None = None
) -> Operand:
    """The tensor that an input stands for; a constant one may have scales along an axis."""
    operand = site.operand(index)
    if isinstance(operand, Private):
        zero_point = _scalar(site, zero, "zero point") if site.has_input(zero) else 0.0
        return _dequantize(site, operand, _scalar(site, scale, "scale"), zero_point)
    scale_values = site.constant(scale, "scale").astype(np.float64)
    zero_points = (
        site.constant(zero, "zero point").astype(np.float64)
        if site.has_input(zero)
        else np.zeros(())
    )
    if axes is not None and scale_values.ndim == 1:
        scale_values = scale_values.reshape(axes)
        zero_points = zero_points.reshape(axes) if zero_points.ndim == 1 else zero_points
    return np.asarray((operand.astype(np.float64) - zero_points) * scale_values)


def _dequantize(site: Site, x: Private, scale: float, zero: float) -> Private:
    """`(q - zero) scale` of the integers that a tensor stands for."""
    if x.quantized is None and not x.integer:
        site.refuse("it reads a tensor that is not quantised", "Check the model")
    quantized = x.quantized or Quantized(1.0, 0.0)
    real_tensor = replace(x, quantized=None, integer=False)
    if quantized.scale != scale:
        real_tensor = times_constant(site, real_tensor, np.asarray(scale / quantized.scale))
    if quantized.zero != zero:
        real_tensor = plus_constant(site, real_tensor, np.asarray((quantized.zero - zero) * scale))
    return real_tensor


def _subtract_zero(site: Site, index: int, zero: Array) -> Operand:
    """The integers of an input less a zero point."""
    operand = site.operand(index)
    if not isinstance(operand, Private):
        return np.asarray(operand.astype(np.float64) - zero.astype(np.float64))
    if zero.size != 1:
        site.refuse("a private tensor has several zero points", "Quantise it as a whole tensor")
    return _dequantize(site, operand, 1.0, float(zero.astype(np.float64).reshape(())))
