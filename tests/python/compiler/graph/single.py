"""Small ONNX models, and their comparison with another runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

from privet.compiler.compile import compile
from privet.compiler.executor import execute

Array = npt.NDArray[Any]
BITS, SCALE = 50, 14
NEWEST = onnx.defs.onnx_opset_version()


def private(*shape: int | str | None) -> tuple[int | str | None, ...]:
    """The shape of a private input of a test model."""
    return shape


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    """An ONNX node, named after what it does."""
    return onnx.helper.make_node(op, inputs, outputs, name=f"the_{op.lower()}", **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    constants: Mapping[str, npt.ArrayLike] | None = None,
    *,
    opset: int = 21,
    listed: bool = False,
) -> onnx.ModelProto:
    """A model; `listed` also names its constants among the inputs, as old exporters did."""
    tensors = [
        onnx.numpy_helper.from_array(np.asarray(array), name)
        for name, array in (constants or {}).items()
    ]
    kind = onnx.TensorProto.FLOAT
    entries = [onnx.helper.make_tensor_value_info(n, kind, s) for n, s in inputs.items()]
    if listed:
        entries += [
            onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors
        ]
    undefined = onnx.TensorProto.UNDEFINED
    graph = onnx.helper.make_graph(
        list(nodes),
        "test",
        entries,
        [onnx.helper.make_tensor_value_info(name, undefined, None) for name in outputs],
        tensors,
    )
    versions = {"": opset} | {operator.domain: 1 for operator in nodes if operator.domain}
    imports = [onnx.helper.make_opsetid(*version) for version in versions.items()]
    proto = onnx.helper.make_model(graph, opset_imports=imports)
    proto.ir_version = 4 if opset < 12 else 10
    inferred = onnx.shape_inference.infer_shapes(proto)
    for output in inferred.graph.output:
        if output.type.tensor_type.elem_type == undefined:
            output.type.tensor_type.elem_type = kind
        if not output.type.tensor_type.HasField("shape") and output.type.HasField("tensor_type"):
            # What ONNX does not infer has the shape of what it reads.
            output.type.tensor_type.shape.CopyFrom(inferred.graph.input[0].type.tensor_type.shape)
    return inferred


def single(
    op: str,
    operands: Sequence[Any],
    *,
    opset: int = 21,
    outputs: int = 1,
    listed: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """One node. A tuple among the operands is a private input of that shape, an array a constant,
    an empty string an optional input left out."""
    names, inputs, constants = [], {}, {}
    for index, operand in enumerate(operands):
        name = f"x{index}"
        if isinstance(operand, str):
            name = ""
        elif isinstance(operand, tuple):
            inputs[name] = operand
        else:
            constants[name] = operand
        names.append(name)
    ys = [f"y{index}" for index in range(outputs)]
    return model(
        [node(op, names, ys, **attributes)], inputs, ys, constants, opset=opset, listed=listed
    )


def samples(proto: onnx.ModelProto, *, seed: int = 0, spread: float = 1.0) -> dict[str, Array]:
    """Random inputs for a model with static shapes."""
    generator = np.random.default_rng(seed)
    initialised = {tensor.name for tensor in proto.graph.initializer}
    arrays = {}
    for entry in proto.graph.input:
        if entry.name not in initialised:
            shape = [dim.dim_value or 1 for dim in entry.type.tensor_type.shape.dim]
            arrays[entry.name] = np.asarray(spread * generator.standard_normal(shape), np.float32)
    return arrays


def expected(proto: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """What another runtime gives: ONNX Runtime, or the reference where that refuses."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
        return [np.asarray(array) for array in session.run(None, dict(inputs))]
    except Exception:  # an opset too new or a form that it does not know
        pass
    return [np.asarray(array) for array in ReferenceEvaluator(proto).run(None, dict(inputs))]


def check(
    proto: onnx.ModelProto,
    inputs: Mapping[str, Array] | None = None,
    *,
    units: float = 16,
    wanted: Sequence[Array] | None = None,
    smooth: str = "polynomial",
) -> None:
    """Asserts that the compiled model agrees with another runtime to `units` of `2^-SCALE`."""
    arrays = samples(proto) if inputs is None else inputs
    shapes = {name: array.shape for name, array in arrays.items()}
    compiled = compile(
        proto,
        bits=BITS,
        scale=SCALE,
        calibration=[arrays],
        input_shapes=shapes,
        smooth=smooth,
    )
    outputs = execute(compiled.program, compiled.weights, arrays).outputs
    wanted = expected(proto, arrays) if wanted is None else wanted
    for output, array in zip(proto.graph.output, wanted, strict=True):
        assert outputs[output.name].shape == array.shape
        allowed = units * 2.0**-SCALE * max(1.0, float(np.abs(array).max(initial=0.0)))
        np.testing.assert_allclose(outputs[output.name], array, rtol=0, atol=allowed)


def constant(*shape: int, seed: int = 1, spread: float = 0.5) -> Array:
    """Random float32 weights."""
    generator = np.random.default_rng(seed)
    return np.asarray(spread * generator.standard_normal(shape), np.float32)
