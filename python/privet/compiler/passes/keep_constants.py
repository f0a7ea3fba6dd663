"""Leaves constants in front of a smooth function to linear operations.

In suite `stream` a client computes functions in the clear, so that they are public. A factor or a
summand of the argument alone, such as the bias of a layer with one output, is the model's: it goes
back in front of the function, where `fold_affine` and `fold_batchnorm` find the layer it belongs
to.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, Step
from privet.compiler.graph.operations import Operation, Shape
from privet.compiler.passes.rewriter import Rewriter, rewritten


def keep_constants(graph: Graph) -> Graph:
    """The same function, with no scaling or shift of its argument alone in an `Elementwise`."""
    return rewritten(graph, _separate_constants)


def _separate_constants(rewriter: Rewriter, node: Node) -> int | None:
    if not isinstance(node.operation, op.Elementwise):
        return None
    x = rewriter.new[node.inputs[0]]
    leading_steps, remaining_function = parted(node.operation.function)
    for step in leading_steps:
        x = rewriter.add_new(node.name, _linear(step, rewriter.builder.shape(x)), x)
    return rewriter.add(node, op.Elementwise(remaining_function), x) if leading_steps else None


def parted(function: Function) -> tuple[list[Step], Function]:
    """The scalings and shifts that all else reads the argument through, and all else."""
    leading_steps, steps = [], list(function.steps)
    while len(steps) > 1 and steps[0].name in ("scale", "shift"):
        if any(0 in step.operands for step in steps[1:]):
            break
        leading_steps.append(steps.pop(0))
        steps = [
            replace(step, operands=tuple(index - 1 for index in step.operands)) for step in steps
        ]
    return leading_steps, Function(tuple(steps))


def _linear(step: Step, shape: Shape) -> Operation:
    if step.name == "shift":
        return op.AddConstant(np.full((1,) * len(shape), step.constant))
    if len(shape) < 2:
        return op.Scale(np.full(shape, step.constant), uniform=True)
    return op.ChannelAffine(np.full(shape[1], step.constant), None, uniform=True)
