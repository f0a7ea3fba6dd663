"""Mutated ONNX files through the compiler: each is compiled, or refused with a message.

    python -m scripts.audit.models SEED ROUNDS

Bytes are flipped, and what a file says is changed where it stands: numbers of attributes, shapes
and types, operators, names. Prints each file that ended in anything but Privet's own errors, or
took longer than `SECONDS`, and ends with code 1 if there is one.
"""

from __future__ import annotations

import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import helper, numpy_helper

from privet.compiler.compile import compile
from privet.compiler.program import Program
from privet.errors import InvalidProgram, PrivetError

SECONDS = 20
TEXTS = (b"", b"NONE", b"SOFTMAX", b"SOFTMAX_ZERO", b"PROBIT", b"LINEAR", b"POLY", b"\xff")
NUMBERS = (0, 1, -1, 2, 3, 7, 77, 1 << 20, 1 << 31, -(1 << 63), (1 << 63) - 1)


def seeds() -> list[bytes]:
    """Small files with many operators: a convolutional classifier, some of ai.onnx.ml, and one that
    moves, scatters, normalises and repeats."""
    weights = np.random.default_rng(0)

    def constant(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(weights.standard_normal(shape).astype(np.float32), name)

    node = helper.make_node
    layers = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1]),
        node("Relu", ["c"], ["r"]),
        node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("AveragePool", ["m"], ["a"], kernel_shape=[2, 2], ceil_mode=1),
        node("Transpose", ["a"], ["t"], perm=[0, 2, 3, 1]),
        node("Reshape", ["t", "shape"], ["f"]),
        node("Expand", ["f", "wide"], ["e"]),
        node("Slice", ["e", "from", "to"], ["s"]),
        node("Gemm", ["s", "g"], ["o"], transB=1),
        node("Softmax", ["o"], ["y"], axis=1),
        node("ArgMax", ["o"], ["label"], axis=1),
    ]
    numbers = {"shape": [1, -1], "wide": [2, 1], "from": [0, 0], "to": [1, 9]}
    tensors = [constant("w", 2, 1, 3, 3), constant("b", 2), constant("g", 3, 2)]
    tensors += [numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()]
    image = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, 4, 4])
    outputs = [onnx.ValueInfoProto(name=name) for name in ("y", "label")]
    graph = helper.make_graph(layers, "layers", [image], outputs, tensors)
    domain, coefficients = "ai.onnx.ml", weights.standard_normal(8).tolist()
    rows = [
        node("Scaler", ["x"], ["z"], domain=domain, offset=[0.5], scale=[2.0]),
        node(
            "LinearClassifier",
            ["z"],
            ["label", "s"],
            domain=domain,
            coefficients=coefficients,
            intercepts=[0.1, -0.1],
            classlabels_strings=["no", "yes"],
            post_transform="SOFTMAX",
        ),
        node("Normalizer", ["s"], ["n"], domain=domain, norm="L1"),
        node("ZipMap", ["n"], ["y"], domain=domain, classlabels_strings=["no", "yes"]),
    ]
    row = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4])
    classifier = helper.make_graph(rows, "rows", [row], outputs)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 3)]
    graphs = (graph, classifier, _moving(), _machines(outputs))
    models = (helper.make_model(entry, opset_imports=opsets) for entry in graphs)
    # Outputs of no stated type are as some exporters leave them; the checker wants a kind.
    files = []
    for model in models:
        for output in model.graph.output:
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            output.type.tensor_type.shape.SetInParent()
        model.ir_version = 10
        files.append(model.SerializeToString())
    return files


def _machines(outputs: list[onnx.ValueInfoProto]) -> onnx.GraphProto:
    """Support vectors whose labels are scores of trees: each a classifier that is taken apart."""
    domain = "ai.onnx.ml"
    places = {"nodeids": [0, 1, 2, 3, 4], "treeids": [0] * 5, "featureids": [0, 1, 0, 0, 0]}
    ways = {"truenodeids": [1, 3, 0, 0, 0], "falsenodeids": [2, 4, 0, 0, 0]}
    trees: dict[str, Any] = {
        **{f"nodes_{name}": entries for name, entries in {**places, **ways}.items()},
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF"],
        "nodes_values": [0.5, -0.25, 0.0, 0.0, 0.0],
        "class_treeids": [0] * 9,
        "class_nodeids": [2, 2, 2, 3, 3, 3, 4, 4, 4],
        "class_ids": [0, 1, 2] * 3,
        "class_weights": [0.5, -0.5, 0.1, 0.2, 0.3, -0.4, 0.0, 0.25, 0.5],
        "classlabels_int64s": [4, 7, 9],
        "post_transform": "NONE",
    }
    vectors: dict[str, Any] = {
        "support_vectors": [0.1 * place for place in range(12)],
        "coefficients": [0.5, -0.5, 0.25, 0.25, -0.5, 0.5, -0.25, -0.25],
        "vectors_per_class": [2, 1, 1],
        "rho": [0.1, -0.1, 0.2],
        "kernel_type": "RBF",
        "kernel_params": [0.5, 0.0, 3.0],
        "classlabels_strings": ["a", "b", "c"],
    }
    nodes = [
        helper.make_node("TreeEnsembleClassifier", ["x"], ["t", "s"], domain=domain, **trees),
        helper.make_node("SVMClassifier", ["s"], ["label", "d"], domain=domain, **vectors),
        helper.make_node("Concat", ["s", "d"], ["y"], axis=1),
    ]
    row = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2])
    return helper.make_graph(nodes, "machines", [row], outputs)


def _moving() -> onnx.GraphProto:
    """Elements at constant places, sums and normalisations, a branch and a loop."""
    node, entry, kinds = helper.make_node, helper.make_tensor_value_info, onnx.TensorProto
    number = entry("n", kinds.FLOAT, None)
    branch = helper.make_graph([node("Neg", ["u"], ["n"])], "then", [], [number])
    other = helper.make_graph([node("Abs", ["u"], ["n"])], "else", [], [number])
    step = [node("Add", ["v", "u"], ["w"]), node("Identity", ["on"], ["goes"])]
    entries = [
        entry("i", kinds.INT64, []),
        entry("on", kinds.BOOL, []),
        entry("v", kinds.FLOAT, None),
    ]
    results = [entry("goes", kinds.BOOL, []), entry("w", kinds.FLOAT, None)]
    body = helper.make_graph(step, "body", entries, results)
    layers = [
        node("Resize", ["x", "", "", "sizes"], ["r"], mode="linear"),
        node("Pad", ["r", "pads"], ["d"], mode="wrap"),
        node("GatherElements", ["d", "places"], ["g"], axis=2),
        node("ScatterND", ["g", "where", "new"], ["s"], reduction="add"),
        node("CumSum", ["s", "axis"], ["c"]),
        node("InstanceNormalization", ["c", "one", "one"], ["u"]),
        node("If", ["yes"], ["f"], then_branch=branch, else_branch=other),
        node("Loop", ["times", "yes", "f"], ["l"], body=body),
        node("SplitToSequence", ["l", "parts"], ["q"], axis=3),
        node("ConcatFromSequence", ["q"], ["k"], axis=3),
        node("ReduceLogSumExp", ["k", "axis"], ["y"]),
        node("Hardmax", ["k"], ["label"], axis=3),
    ]
    numbers = {
        "sizes": [1, 1, 5, 3],
        "pads": [0, 0, 1, 0, 0, 0, 0, 1],
        "axis": [3],
        "times": 3,
        "places": [[[[4, 0, 1, 1]]]],
        "where": [[0, 0, 0, 1]] * 2,
        "parts": [1, 3],
    }
    tensors = [numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()]
    image = entry("x", kinds.FLOAT, [1, 1, 4, 4])
    tensors.append(numpy_helper.from_array(np.array([0.5, 2.0], np.float32), "new"))
    tensors.append(numpy_helper.from_array(np.ones(1, np.float32), "one"))
    tensors.append(numpy_helper.from_array(np.array(True), "yes"))
    outputs = [onnx.ValueInfoProto(name=name) for name in ("y", "label")]
    return helper.make_graph(layers, "moving", [image], outputs, tensors)


def mutants(seed: int, rounds: int) -> Iterator[tuple[str, bytes]]:
    """What was changed, and the file."""
    draw = random.Random(seed)
    files = seeds()
    changes = (_flip, _attribute, _shape, _type, _operator, _wiring, _constant)
    for index in range(rounds):
        data, names = draw.choice(files), []
        for _ in range(draw.choice((1, 1, 2, 4))):
            change = draw.choice(changes)
            names.append(change.__name__[1:])
            data = change(draw, data)
        yield f"{index}: {', '.join(names)}", data


def _flip(draw: random.Random, data: bytes) -> bytes:
    copy = bytearray(data)
    copy[draw.randrange(len(copy))] ^= 1 << draw.randrange(8)
    return bytes(copy)


def _edited(
    change: Callable[[random.Random, onnx.GraphProto], None],
) -> Callable[[random.Random, bytes], bytes]:
    def edit(draw: random.Random, data: bytes) -> bytes:
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
            change(draw, model.graph)
        except Exception:  # a file that bytes were flipped in; it goes as it is
            return data
        return bytes(model.SerializeToString())

    edit.__name__ = change.__name__
    return edit


@_edited
def _attribute(draw: random.Random, graph: onnx.GraphProto) -> None:
    attribute = draw.choice(draw.choice([n for n in graph.node if n.attribute]).attribute)
    if attribute.ints:
        attribute.ints[draw.randrange(len(attribute.ints))] = draw.choice(NUMBERS)
    elif attribute.floats:
        attribute.floats[draw.randrange(len(attribute.floats))] = draw.choice((0.0, 1e38, np.nan))
    elif attribute.strings:
        del attribute.strings[draw.randrange(len(attribute.strings))]
    elif attribute.s:
        attribute.s = draw.choice(TEXTS)
    else:
        attribute.i = draw.choice(NUMBERS)


@_edited
def _shape(draw: random.Random, graph: onnx.GraphProto) -> None:
    dims = draw.choice((*graph.input, *graph.output)).type.tensor_type.shape.dim
    draw.choice(dims).dim_value = draw.choice(NUMBERS)


@_edited
def _type(draw: random.Random, graph: onnx.GraphProto) -> None:
    kind = draw.choice((*range(24), 77))
    if draw.random() < 0.5:
        draw.choice(graph.initializer).data_type = kind
    else:
        draw.choice(graph.input).type.tensor_type.elem_type = kind


@_edited
def _operator(draw: random.Random, graph: onnx.GraphProto) -> None:
    one, other = draw.choice(graph.node), draw.choice(graph.node)
    one.op_type, other.op_type = other.op_type, one.op_type


@_edited
def _wiring(draw: random.Random, graph: onnx.GraphProto) -> None:
    names = [name for node in graph.node for name in (*node.input, *node.output)]
    node = draw.choice(graph.node)
    node.input[draw.randrange(len(node.input))] = draw.choice(names)


@_edited
def _constant(draw: random.Random, graph: onnx.GraphProto) -> None:
    tensor = draw.choice(
        [initializer for initializer in graph.initializer if initializer.data_type == 7]
    )
    array = numpy_helper.to_array(tensor).copy()
    array[draw.randrange(array.size)] = draw.choice(NUMBERS)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def problems(seed: int, rounds: int) -> Iterator[str]:
    """Each file that is neither compiled nor refused as it should be."""
    before = signal.signal(signal.SIGALRM, _late)
    try:
        for mutation, data in mutants(seed, rounds):
            signal.alarm(SECONDS)
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    compiled = compile(data, smooth="piecewise")
                    Program.from_public_bytes(compiled.program.to_public_bytes())
            except InvalidProgram as error:
                yield f"seed {seed}, {mutation}: a program that nobody reads: {error}"
            except PrivetError:
                pass
            except Exception as error:
                yield f"seed {seed}, {mutation}: {type(error).__name__}: {error}"
            finally:
                signal.alarm(0)
    finally:
        signal.signal(signal.SIGALRM, before)


def _late(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError(f"more than {SECONDS} s")


def main() -> int:
    """Runs the command line."""
    seed, rounds = map(int, sys.argv[1:])
    count = 0
    for problem in problems(seed, rounds):
        count += 1
        print(problem)
    print(f"{rounds} files, {count} that are not refused as they should be")
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
