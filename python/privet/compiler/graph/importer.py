"""The walk over an ONNX model that turns it into a typed graph.

Every node whose inputs are all constants is computed on the way. Whatever is not supported is
collected, with its node's name and what to do instead, and reported together at the end: an
unsupported node's outputs get the shapes that ONNX's own shape inference gives them, so that the
nodes behind it are still looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import onnx

from privet.compiler.graph import registry
from privet.compiler.graph.constants import array_of, dense, fold, foldable, holds_rows
from privet.compiler.graph.control_flow import CONTROL, MOST_NODES, needed_nodes, unroll
from privet.compiler.graph.estimators import group_by_estimator
from privet.compiler.graph.graph import Graph, GraphBuilder, Input, Value
from privet.compiler.graph.heads import AtClient, HeadBuilder, are_labels, compare_scores, cut
from privet.compiler.graph.input_shapes import FLOATS, WHOLE, InputShapes, resolve
from privet.compiler.graph.log_softmax import fuse_log_softmax
from privet.compiler.graph.one_hot import MEASURES, MOVES, table_rows
from privet.compiler.graph.onnx_fused import expand_fused
from privet.compiler.graph.onnx_ml import expand_ml
from privet.compiler.graph.onnx_model import (
    DEFAULT_DOMAINS,
    FUSED_DOMAIN,
    ML,
    opset_of,
    type_title,
)
from privet.compiler.graph.onnx_svm import COUPLING, expand_svm
from privet.compiler.graph.onnx_trees import expand_trees
from privet.compiler.graph.operand_kinds import (
    INTEGER_CAST,
    READS_ROWS,
    THROUGH_CLIENT_STEPS,
    THROUGH_NEG_INF,
    are_integers,
    is_cast_to_integer,
    read_privately,
    refuse_client_steps,
    refuse_integers,
    refuse_neg_inf,
    shared_quantization,
)
from privet.compiler.graph.operations import Array, Shape
from privet.compiler.graph.operators.selection import number_of
from privet.compiler.graph.private_masks import bound_masks
from privet.compiler.graph.public_maps import pick
from privet.compiler.graph.quantized_ends import without_last_quantizations
from privet.compiler.graph.registry import OLDEST_OPSET
from privet.compiler.graph.rewriting import without_nodes
from privet.compiler.graph.shapes import MAX_SAMPLE
from privet.compiler.graph.site import (
    Operand,
    Private,
    Site,
    TensorList,
    Unsupported,
)
from privet.compiler.graph.state import last_rows, state_pairs
from privet.compiler.graph.tree_scalers import fold_scalers
from privet.errors import InvalidModel, Problem, UnsupportedModel

OperandT = TypeVar("OperandT")

FUSED = (
    "it is a fused operator of ONNX Runtime",
    "Give the model as it was exported, before ONNX Runtime or optimum optimised it; quantise it "
    "in the QDQ format (QuantFormat.QDQ)",
)

EXPORTED = {
    "CDist": (
        "skl2onnx writes it with the option optim='cdist'",
        "Export without the option: the distances are then plain operators",
    ),
}
"""Operators of ONNX Runtime's domain that exporters of models write, and what to do about each."""


ALL_CONSTANT = (
    "the model",
    "graph",
    "no output depends on the private input",
    "There is nothing to compute: check which output was exported",
)


def import_model(
    model: onnx.ModelProto,
    *,
    name: str,
    input_shapes: InputShapes | None = None,
    scores: bool = False,
    functions: bool = False,
    masks: bool = True,
) -> Graph:
    """The typed graph of a model that `load_model` returned.

    With `scores` the client sees what the longest head reads (`privet.compiler.graph.heads`);
    `functions` keeps a last Sigmoid out of it. Without `masks` the numbers that private masks are
    made of stay as they are.

    Raises `UnsupportedModel` with every problem of the model; `InvalidModel` if input shapes are
    missing or do not fit.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset_of(model) <= newest:
        raise InvalidModel(
            f"the model uses opset {opset_of(model)}; opsets {OLDEST_OPSET} to {newest} are "
            f"supported: convert it with onnx.version_converter"
        )
    standard_model = without_last_quantizations(expand_fused(model))
    rewritten_model = expand_svm(expand_trees(expand_ml(fold_scalers(standard_model))))
    rewritten_model = bound_masks(rewritten_model) if masks else rewritten_model
    while True:
        walk = _Walk(rewritten_model, name, input_shapes, scores, functions)
        walk.run()
        if not any(id(node) in walk.unrolled for node in walk.nodes):
            fused_model = fuse_log_softmax(rewritten_model, walk.private_shapes())
            if fused_model is rewritten_model:
                return walk.graph()
            rewritten_model = fused_model
            continue
        # What follows a body, and where the head begins, is seen once its nodes are the model's.
        rewritten_model = walk.unrolled_model()


class _Walk:
    """The state of one import: what each ONNX tensor has become, and the problems so far."""

    def __init__(
        self,
        model: onnx.ModelProto,
        name: str,
        input_shapes: InputShapes | None,
        scores: bool,
        functions: bool,
    ) -> None:
        self.model = model
        self.opset = opset_of(model)
        self.scores = scores
        self.builder = GraphBuilder(name)
        self.problems: list[Problem] = []
        self.tensors: dict[str, Operand | TensorList | AtClient | None] = {
            tensor.name: array_of(tensor) for tensor in model.graph.initializer
        }
        for sparse in model.graph.sparse_initializer:
            self.tensors[sparse.values.name] = dense(sparse)
        self.shapes = resolve(model, input_shapes)
        outputs = [output.name for output in model.graph.output]
        nodes, _ = needed_nodes(model.graph.node, outputs)
        private = [entry.name for entry in model.graph.input if entry.name not in self.tensors]
        self.state = state_pairs(private, outputs)
        revealed = [name for name in outputs if name not in self.state.values()]
        tables = {
            name
            for name, tensor in self.tensors.items()
            if isinstance(tensor, np.ndarray) and not are_labels(tensor)
        }
        self.cut = cut(nodes, private, revealed, tables=tables, scores=scores, functions=functions)
        self.nodes, self.used = needed_nodes(compare_scores(nodes, self.cut), outputs)
        self.head = HeadBuilder(self.opset)
        self.unrolled: dict[int, list[onnx.NodeProto]] = {}
        # How deep in bodies the walk is, and how many nodes the outermost one has become.
        self.depth = self.body_node_count = 0
        self.inner = read_privately(self.nodes)

    def run(self) -> None:
        """Looks at each input and node."""
        for entry in self.model.graph.input:
            if entry.name not in self.tensors:
                self._import_input(entry)
        self._walk_over(self.nodes)

    def _walk_over(self, nodes: Iterable[onnx.NodeProto]) -> None:
        for index, node in enumerate(nodes):
            name = node.name or next((out for out in node.output if out), f"node {index}")
            try:
                self._import_node(node, name)
            except Unsupported as refusal:
                instead = refusal.instead
                if id(node) in self.cut.tail and not self.scores:
                    instead += (
                        ", or let the client compute it and see what it reads: --reveal scores"
                    )
                self._report(name, node.op_type, refusal.why, instead)
                self._declare_results(node)

    def unrolled_model(self) -> onnx.ModelProto:
        """The model with the nodes of bodies in place of what was unrolled."""
        copy = without_nodes(self.model)
        copy.graph.node.extend(self._unrolled_nodes(self.nodes))
        return copy

    def _unrolled_nodes(self, nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
        for node in nodes:
            if id(node) in self.unrolled:
                yield from self._unrolled_nodes(self.unrolled[id(node)])
            else:
                yield node

    def _unroll(self, node: onnx.NodeProto) -> None:
        unrolled: list[onnx.NodeProto] = []

        def walk_over(nodes: Iterable[onnx.NodeProto]) -> None:
            body_nodes = list(nodes)
            unrolled.extend(body_nodes)
            self.body_node_count += len(body_nodes)
            if self.body_node_count > 2 * MOST_NODES:
                why = f"with what is inside, it runs to more than {2 * MOST_NODES} nodes"
                raise Unsupported(why, "Export it unrolled")
            self._walk_over(body_nodes)

        def constant_of(name: str) -> Array | None:
            tensor = self.tensors.get(name)
            return tensor if isinstance(tensor, np.ndarray) else None

        def shape_of(name: str) -> Shape | None:
            tensor = self.tensors.get(name)
            return tensor.shape if isinstance(tensor, Private | np.ndarray) else None

        if self.depth == 0:
            self.body_node_count = 0
        self.depth += 1
        try:
            unroll(node, constant_of, shape_of, walk_over)
        except (ValueError, IndexError) as error:
            why = f"its bodies and inputs do not fit together ({error})"
            raise Unsupported(why, "Check the model with onnx.checker") from error
        finally:
            self.depth -= 1
        self.unrolled[id(node)] = unrolled

    def graph(self) -> Graph:
        """What `run` found."""
        for output in self.model.graph.output:
            if output.name not in self.state.values():
                self._import_output(output.name)
        state_values = {
            name: self._state_after(name, output) for name, output in self.state.items()
        }
        if self.problems:
            raise UnsupportedModel(group_by_estimator(self.nodes, self.problems))
        if not self.head.revealed:
            raise UnsupportedModel([Problem(*ALL_CONSTANT)])
        self.builder.head = self.head.build()
        # What a head makes has the kinds of its own steps.
        kinds = self._output_kinds() if self.builder.head is None else {}
        for tensor, (value, client) in self.head.revealed.items():
            self.builder.output(tensor, value, client, kinds.get(tensor, "real"))
        for name, state_value in state_values.items():
            self.builder.output(self.state[name], state_value)
        return self.builder.build()

    def _output_kinds(self) -> dict[str, str]:
        """The outputs that are declared as whole numbers, or as true and false."""
        types = {
            output.name: output.type.tensor_type.elem_type for output in self.model.graph.output
        }
        boolean = onnx.TensorProto.BOOL
        return {
            name: "boolean" if kind == boolean else "integer"
            for name, kind in types.items()
            if kind in WHOLE
        }

    def _import_input(self, entry: onnx.ValueInfoProto) -> None:
        kind = entry.type.tensor_type.elem_type
        if not entry.type.HasField("tensor_type") or kind not in FLOATS | WHOLE:
            type_name = entry.type.WhichOneof("value") or "unknown"
            if entry.type.HasField("tensor_type"):
                type_name = type_title(kind)
            self._report(
                entry.name,
                "graph input",
                f"its type is {type_name}, and only numbers can be private",
                "Let clients encode it (--client-side), or start the model at a tensor of numbers",
            )
        shape = self.shapes.get(entry.name)
        if shape is not None and math.prod(shape) > MAX_SAMPLE:
            why = f"it has {math.prod(shape)} elements, more than {MAX_SAMPLE} for one sample"
            self._report(entry.name, "graph input", why, "Give other input_shapes, or smaller ones")
            shape = None
        may_hold_ids = kind in WHOLE and entry.name not in self.state
        rows = table_rows(self.nodes, self.tensors, entry.name) if may_hold_ids else None
        if shape is None:
            self.tensors[entry.name] = None
        elif rows is None:
            state = self.state.get(entry.name)
            declared = self._declare(entry.name, shape, integer=kind in WHOLE, state=state)
            self.tensors[entry.name] = declared
        else:
            value = Value((*shape, rows), entry.name)
            id = self.builder.input(Input(entry.name, 0, one_hot=True), value)
            self.tensors[entry.name] = Private(id, value.shape, integer=True, one_hot=True)

    def _declare(
        self, name: str, shape: Shape, *, integer: bool = False, state: str | None = None
    ) -> Private:
        id = self.builder.input(Input(name, 0, state=state, whole=integer), Value(shape, name))
        return Private(id, shape, integer=integer)

    def _import_node(self, node: onnx.NodeProto, name: str) -> None:
        missing = [tensor for tensor in node.input if tensor and tensor not in self.tensors]
        if missing:
            raise InvalidModel(f"{name} reads {missing[0]}, which nothing makes")
        inputs = [self.tensors[tensor] if tensor else None for tensor in node.input]
        has_unknown_input = any(x is None and t for x, t in zip(inputs, node.input, strict=True))
        if node.domain in DEFAULT_DOMAINS and node.op_type in CONTROL:
            self._unroll(node)
            return
        if id(node) in self.cut.head and not has_unknown_input:
            self.head.add(node, [self._as_number(name, x) for x in inputs])
            self.tensors.update((tensor, AtClient(node.op_type)) for tensor in node.output)
            return
        operands = [x for x in inputs if not isinstance(x, AtClient)]
        is_standard_domain = node.domain in (*DEFAULT_DOMAINS, ML)
        if is_standard_domain and foldable(node) and not has_unknown_input:
            constants = [x for x in operands if not isinstance(x, Private | TensorList)]
            if len(constants) == len(inputs):
                self._fold(node, constants)
                return
        importer = registry.importer(node.op_type) if is_standard_domain else None
        if importer is None and node.domain.startswith(FUSED_DOMAIN):
            raise Unsupported(*EXPORTED.get(node.op_type, FUSED))
        if node.op_type == "PairwiseCoupling":
            raise Unsupported(*COUPLING)
        if importer is None:
            title = node.op_type if is_standard_domain else "a custom operator"
            raise Unsupported(
                f"{title} is not supported",
                "Replace it with supported operators, or end the model before it and do the rest "
                "on the client",
            )
        if has_unknown_input:
            self._declare_results(node)
            return
        if node.op_type not in THROUGH_CLIENT_STEPS:
            refuse_client_steps(inputs)
        # Of an output the client cuts off what is not whole.
        if node.op_type == "ReduceMean" and self._is_read(node.output[0]):
            refuse_integers(inputs)
        if node.op_type not in THROUGH_NEG_INF:
            refuse_neg_inf(inputs)
        integer_cast = is_cast_to_integer(node, operands)
        site = Site(
            node,
            name=name,
            opset=self.opset,
            inputs=operands,
            used=self.used,
            builder=self.builder,
            inner=id(node) in self.inner,
        )
        first_operand = operands[0] if operands else None
        if (
            isinstance(first_operand, Private)
            and first_operand.one_hot
            and node.op_type in MOVES | MEASURES
        ):
            self._move_rows(site, first_operand, operands[1:])
            return
        if node.op_type not in READS_ROWS:
            operands = [self._as_number(name, x) for x in operands]
            site.inputs = list(operands)
        first_new_id = self.builder.count()
        quantized = shared_quantization(node.op_type, operands)
        if quantized is not None:
            site.inputs = [
                replace(x, quantized=None) if isinstance(x, Private) else x for x in operands
            ]
        try:
            results = importer(site)
        except (ValueError, IndexError, TypeError) as error:
            why = f"its attributes and inputs do not fit together ({error})"
            raise Unsupported(why, "Check the model with onnx.checker") from error
        output_results = results if isinstance(results, tuple) else (results,)
        integer = are_integers(node, operands)
        for tensor, result in zip(node.output, output_results, strict=False):
            if integer and isinstance(result, Private):
                result = replace(result, integer=True)
            if quantized is not None and isinstance(result, Private):
                result = replace(result, quantized=quantized)
            if integer_cast and isinstance(result, Private):
                result = replace(result, integer=True, cast_to_integer=True)
            self.tensors[tensor] = result
            if isinstance(result, Private) and result.id >= first_new_id:
                self.builder.rename(result.id, tensor)
        for tensor in node.output[len(output_results) :]:
            self.tensors[tensor] = None

    def _is_read(self, tensor: str) -> bool:
        return any(tensor in node.input for node in self.nodes)

    def _as_number(self, name: str, x: OperandT) -> OperandT | Private:
        """A place that is a row of zeros with a one, as the number that it is."""
        if not isinstance(x, Private) or not x.one_hot:
            return x
        node = onnx.helper.make_node("Identity", ["x"], ["y"])
        site = Site(node, name=name, opset=self.opset, inputs=[x], used=(), builder=self.builder)
        return number_of(site, x)

    def _move_rows(
        self, site: Site, x: Private, others: Sequence[Operand | TensorList | None]
    ) -> None:
        """What a node that moves ids does, done with the zeros and ones that stand for them."""
        ids = np.arange(math.prod(x.shape[:-1])).reshape(x.shape[:-1])
        if site.operator == "Cast":
            if not holds_rows(site.attribute("to", 0), x.shape[-1]):
                site.refuse(
                    f"it casts places in a table of {x.shape[-1]} rows to a type that does not "
                    "hold them all",
                    "Cast them to int64 instead",
                )
            is_float = site.attribute("to", 0) in FLOATS
            self.tensors[site.node.output[0]] = replace(x, integer=not is_float)
            return
        constants = [other if isinstance(other, np.ndarray) else None for other in others]
        self._fold(site.node, [ids, *constants])
        if site.operator in MEASURES:
            return
        for tensor in filter(None, site.node.output):
            array = self.tensors[tensor]
            assert isinstance(array, np.ndarray)
            sources, shape = array.ravel().astype(np.int64), (*array.shape, x.shape[-1])
            rows = x
            if not np.array_equal(sources, ids.ravel()):
                rows = pick(site, site.reshape(x, (ids.size, x.shape[-1])), 0, sources.tolist())
            rows = site.reshape(rows, shape)
            self.tensors[tensor] = replace(rows, integer=x.integer, one_hot=True)

    def private_shapes(self) -> dict[str, Shape]:
        """Shapes of the private tensors so far, by name."""
        tensors = self.tensors.items()
        return {name: operand.shape for name, operand in tensors if isinstance(operand, Private)}

    def _fold(self, node: onnx.NodeProto, constants: Sequence[Array | None]) -> None:
        try:
            results = fold(node, constants, self.model.opset_import)
        except Exception as error:  # the evaluator raises many types
            raise Unsupported(
                f"it reads only constants but cannot be computed ahead of time ({error})",
                "Simplify the model, for instance with onnxsim, so that it is a constant",
            ) from error
        self.tensors.update(zip([out for out in node.output if out], results, strict=True))

    def _declare_results(self, node: onnx.NodeProto) -> None:
        """Lets the walk go on behind a node that was refused."""
        shapes = self._inferred_shapes(node)
        for tensor in node.output:
            shape = shapes.get(tensor)
            self.tensors[tensor] = None if shape is None else self._declare(tensor, shape)

    def _inferred_shapes(self, node: onnx.NodeProto) -> Mapping[str, Shape]:
        """Static shapes of a node's results by ONNX's own inference.

        It sees that node alone and shapes that were checked: on a whole model that does not fit
        together it may end the process.
        """
        operands = {name: self.tensors.get(name) for name in node.input if name}
        inputs, constants = [], []
        for name, operand in operands.items():
            if isinstance(operand, Private):
                kind = onnx.TensorProto.INT64 if operand.integer else onnx.TensorProto.FLOAT
                shape = operand.shape[:-1] if operand.one_hot else operand.shape
                inputs.append(onnx.helper.make_tensor_value_info(name, kind, shape))
            elif isinstance(operand, np.ndarray):
                constants.append(onnx.numpy_helper.from_array(operand, name))
            else:
                return {}
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "one", inputs, outputs, constants)
        model = onnx.helper.make_model(graph, opset_imports=self.model.opset_import)
        try:
            inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except Exception:  # an invalid node: the problems found so far say enough
            return {}
        shapes = {}
        for entry in inferred.graph.output:
            dims = [dim.dim_value for dim in entry.type.tensor_type.shape.dim]
            if dims and min(dims) > 0 and math.prod(dims) <= MAX_SAMPLE:
                shapes[entry.name] = tuple(dims)
        return shapes

    def _import_output(self, name: str) -> None:
        result = self.tensors.get(name)
        is_dynamic = any(
            name in node.output for node in self.nodes if node.op_type == "DynamicQuantizeLinear"
        )
        if isinstance(result, TensorList):
            why = "it is a sequence of tensors"
            self._report(name, "graph output", why, "Join them, or make each an output")
        elif is_dynamic or (isinstance(result, Private) and result.quantized is not None):
            why = "it is of quantised integers, and private tensors are not rounded to these"
            self._report(name, "graph output", why, "End the model with a DequantizeLinear")
        elif isinstance(result, Private) and result.cast_to_integer:
            self._report(name, "graph output", *INTEGER_CAST)
        elif result is not None:
            try:
                self.head.output(name, self._as_number(name, result))
            except Unsupported as refusal:
                self._report(name, "graph output", refusal.why, refusal.instead)
        elif not self.problems:
            why = "it is an output of its operator that is not computed"
            self._report(name, "graph output", why, "Remove this output")

    def _state_after(self, name: str, output: str) -> int:
        """The value that the state `name` has after an inference."""
        past, present = self.tensors.get(name), self.tensors.get(output)
        instead = "Let it be what the model computes, of the shape of its input or with more rows"
        if not isinstance(past, Private):
            return 0  # its shape is missing, which is a problem already
        if not isinstance(present, Private) or present.client is not None or present.quantized:
            self._report(output, "state", "it is no private tensor of numbers", instead)
            return past.id
        try:
            row_slice = last_rows(past.shape, present.shape)
        except ValueError as error:
            self._report(output, "state", str(error), instead)
            return past.id
        if row_slice is None:
            return present.id
        slice_id = self.builder.add(row_slice, [present.id], node=output)
        self.builder.rename(slice_id, f"{output}.kept")
        return slice_id

    def _report(self, node: str, operator: str, why: str, instead: str) -> None:
        self.problems.append(Problem(node, operator, why, instead))
