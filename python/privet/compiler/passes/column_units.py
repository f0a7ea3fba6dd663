"""Columns of a table in units of their own, for a table whose columns differ in size.

A tensor has one scale, so beside an income a probability of `1e-4` would be nothing, also where
each is an input and the model joins them. Clients multiply each column by a power of two, which a
front tells them; the first layers divide by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.front import Front, Given
from privet.compiler.graph.function import chain
from privet.compiler.graph.head import Head, HeadNode
from privet.compiler.graph.operations import Array
from privet.compiler.passes.rewriter import Rewriter

APART = 4
"""Columns get units where the largest is so many binary digits longer than the smallest."""
RECIPROCAL = chain("reciprocal")
_MOVEMENTS = op.Broadcast | op.Concat | op.Reshape | op.Slice | op.Transpose


def column_units(graph: Graph, batches: Sequence[Sequence[Array]]) -> dict[int, Array]:
    """Powers of two, by input, that bring the columns of a table below 1 and above a half.

    A table is all inputs of two axes. They are measured on calibration inputs. A column that is
    zero in all of them stays as it is: of a flag that is never set there nothing is known.
    """
    exponents_of: dict[int, Array] = {}
    all_exponents: list[int] = []
    for index, entry in enumerate(graph.inputs):
        if entry.one_hot or entry.state is not None or len(graph.values[entry.value].shape) != 2:
            continue
        magnitudes = np.abs([np.nan_to_num(batch[index]) for batch in batches]).max(axis=(0, 1))
        exponents_of[entry.value] = np.where(
            magnitudes > 0, np.frexp(magnitudes.astype(np.float64))[1], 0
        )
        all_exponents.extend(exponents_of[entry.value][magnitudes > 0])
    if not all_exponents or np.ptp(all_exponents) < APART:
        return {}
    return {
        id: np.broadcast_to(np.ldexp(1.0, -exponents), graph.values[id].shape)
        for id, exponents in exponents_of.items()
        if exponents.any()
    }


def in_units(graph: Graph, units: Mapping[int, Array], opset: int) -> tuple[Front, Graph]:
    """What clients compute, and the graph of what that makes."""
    names = {
        entry.value: f"{entry.name} in units of its columns"
        for entry in graph.inputs
        if entry.value in units
    }
    entries = tuple(
        Given(entry.name, "integer" if entry.one_hot else "real", graph.input_shape(entry))
        for entry in graph.inputs
    )
    factors = {f"{names[id]}, factors": array[:1] for id, array in units.items()}
    nodes = [
        HeadNode("Mul", (entry.name, f"{names[entry.value]}, factors"), (names[entry.value],), {})
        for entry in graph.inputs
        if entry.value in units
    ]
    scaled_names = tuple(names.get(entry.value, entry.name) for entry in graph.inputs)
    front = Front(entries, Head(opset, scaled_names, tuple(nodes), factors))
    inputs = tuple(
        replace(entry, name=name) for entry, name in zip(graph.inputs, scaled_names, strict=True)
    )
    values = {
        id: replace(value, name=names.get(id, value.name)) for id, value in graph.values.items()
    }
    renamed_graph = replace(graph, inputs=inputs, values=MappingProxyType(values))
    return front, _Units(renamed_graph, {id: 1.0 / array for id, array in units.items()}).graph()


class _Units:
    """A graph rebuilt; `units` has what some of the new values still have to be multiplied by."""

    def __init__(self, graph: Graph, units: Mapping[int, Array]) -> None:
        self.rewriter = Rewriter(graph)
        self.units, self.rescaled = dict(units), dict[int, int]()

    def graph(self) -> Graph:
        """The graph; outputs that are still to be multiplied are multiplied at the end."""
        return self.rewriter.walk(self._rewrite, lambda id: self._times_unit("units", id))

    def _rewrite(self, node: Node) -> int | None:
        rewriter, inputs, operation = self.rewriter, node.inputs, node.operation
        if not any(id in self.units for id in inputs):
            return None
        x, unit = rewriter.new[inputs[0]], self.units.get(inputs[0])
        shape = rewriter.old.values[node.output].shape
        match operation:
            case op.AddConstant(bias=bias) if unit is not None:
                self.units[node.output] = unit
                return rewriter.add(node, op.AddConstant(bias / unit), x)
            case op.Elementwise(function=function) if function == RECIPROCAL and unit is not None:
                self.units[node.output] = 1.0 / unit
                return None
            case op.Negate() if unit is not None:
                self.units[node.output] = unit
                return None
            case op.Dense(weight=weight, bias=bias) if unit is not None and len(unit) == 1:
                return rewriter.add(node, op.Dense(weight * unit.reshape(-1, 1), bias), x)
            case op.Scale(weight=weight):
                return rewriter.add(node, op.Scale(weight * unit), x)
            case op.ChannelAffine(factor=factor, offset=offset) if unit is not None:
                channel_shape = (-1, *[1] * (len(shape) - 2))
                product = rewriter.add_new(
                    node.name, op.Scale(unit * factor.reshape(channel_shape)), x
                )
                bias = np.zeros(1) if offset is None else offset.reshape(channel_shape)
                return rewriter.add(node, op.AddConstant(bias), product)
        if isinstance(operation, op.Mul):
            # Squares and products of columns are in units of their own, too.
            first, second = (self.units.get(id, np.ones(shape)) for id in inputs)
            self.units[node.output] = first * second
            return None
        if isinstance(operation, op.Add | op.Sub):
            # Of two columns the larger one's unit.
            input_units = [self.units.get(id, np.ones(shape)) for id in inputs]
            self.units[node.output] = np.maximum(*input_units)
            terms = [
                rewriter.add_new(
                    node.name, op.Scale(input_unit / self.units[node.output]), rewriter.new[id]
                )
                for id, input_unit in zip(inputs, input_units, strict=True)
            ]
            return rewriter.add(node, operation, *terms)
        if isinstance(operation, _MOVEMENTS):
            input_units = [
                self.units.get(id, np.ones(rewriter.old.values[id].shape)) for id in inputs
            ]
            self.units[node.output] = operation.real(input_units, shape)
            return None
        return rewriter.add(node, operation, *(self._times_unit(node.name, id) for id in inputs))

    def _times_unit(self, name: str, id: int) -> int:
        """The value itself."""
        if id not in self.units:
            return self.rewriter.new[id]
        if id not in self.rescaled:
            scale = op.Scale(np.array(self.units[id]))
            self.rescaled[id] = self.rewriter.add_new(name, scale, self.rewriter.new[id])
        return self.rescaled[id]
