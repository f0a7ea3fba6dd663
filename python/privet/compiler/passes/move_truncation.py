"""Gives every value a scale, and places truncations as late as they can be.

A product with weights raises the scale by `weight_scale`; nothing forces it down at once. A value
is truncated only in front of a comparison (cheaper on fewer bits), in front of a linear layer or
sum whose result would stand above the ceiling otherwise, and in front of an average whose window is
no power of two. Sums shift the side with the lower scale left. An average over 2^j elements is a
sum whose scale is j higher. Of a whole image as many neighbours are summed before a truncation as
the ceiling has room for. What a product of two values or a maximum reads is truncated, too. A sum
that one of these reads is taken of truncated values, if few elements have to be truncated for that
alone: as in rows less their means.

Inputs that only trees read are not scaled: the client gives the places of their numbers in the
order of float32. Nor are those that are zeros and ones.

Where truncations are is public. So the ceiling is one scale for all values of a kind (`Kind`): it
leaves the kind's headroom above the point, or what one product with weights needs. No value's own
range has a say, unless every value is to have a scale of its own (`each`): then `scale_bits` bits
are for the largest magnitude of a value, and a product with weights rises as far as keeps
`weight_scale` bits of its result. The arguments of functions by lines keep the scale of their
table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

import numpy as np

from privet.compiler.graph import Graph, Node, Value
from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array
from privet.compiler.graph.order import PLACE_BITS, compared_values, may_be_missing
from privet.compiler.passes.check_ranges import GUARD_BITS, WEIGHT_BITS_AT_MOST
from privet.compiler.passes.place_trees import place_trees
from privet.compiler.passes.rewriter import Rewriter

FUNCTION_SCALE, FINE_FUNCTION_SCALE = 14, 20
"""Scales of functions by lines where every value has a scale of its own: the second where values
have at least `FINE` bits, for what multiplies functions by large weights that nearly cancel."""
FINE = 24
FACTOR_BITS_AT_LEAST = 6
"""Precision that the factor of an average keeps, however tight the ring is."""
MANY = 1 << 16
"""Elements of a tensor from which on bytes count more than rounds."""


class Kind(Enum):
    """Kinds of values in a graph of functions by lines, by how they are made."""

    VALUE = "value"
    PRODUCT = "product"
    """Products of private matrices, such as scores of attention, masked ones too."""
    SQUARE = "square"
    """Squares and averages of them, as in a normalisation."""
    SUM = "sum"
    """Averages and products of matrices of what functions give, as in a softmax."""


def kinds_of(graph: Graph) -> dict[int, Kind]:
    """The kind of every value, which follows from the operations alone."""
    kinds = dict.fromkeys(graph.values, Kind.VALUE)
    function_results = functions_of(graph)
    for node in graph.nodes if function_results else ():
        match node.operation:
            case op.Mul() if node.inputs[0] == node.inputs[1]:
                kinds[node.output] = Kind.SQUARE
            case op.MatMul() | op.AvgPool2d() if function_results.intersection(node.inputs):
                kinds[node.output] = Kind.SUM
            case op.MatMul():
                kinds[node.output] = Kind.PRODUCT
            case operation if isinstance(operation, op.AddConstant | op.Pool) or not (
                operation.reads_ring or operation.makes_ring
            ):
                input_kinds = (kinds[id] for id in node.inputs)
                kinds[node.output] = next(
                    (kind for kind in input_kinds if kind != Kind.VALUE), Kind.VALUE
                )
    return kinds


def functions_of(graph: Graph) -> set[int]:
    """What functions by lines give, perhaps rearranged."""
    function_results: set[int] = set()
    for node in graph.nodes:
        if isinstance(node.operation, op.Piecewise) or (
            isinstance(node.operation, op.Movement) and function_results.issuperset(node.inputs)
        ):
            function_results.add(node.output)
    return function_results


def headroom_of(graph: Graph) -> dict[Kind, int]:
    """Bits above the point that the largest magnitude of any value of a kind takes."""
    largest = dict.fromkeys(Kind, 0.0)
    for id, kind in kinds_of(graph).items():
        largest[kind] = max(largest[kind], graph.values[id].magnitude or 0.0)
    return {kind: max(math.frexp(magnitude)[1], 0) for kind, magnitude in largest.items()}


def move_truncation(
    graph: Graph,
    *,
    ring_bits: int,
    scale_bits: int,
    weight_scale: int,
    headroom: Mapping[Kind, int],
    each: bool = False,
    narrow: bool = False,
    spare: int = 0,
) -> Graph:
    """The graph with `ShiftLeft` and `Truncate` placed and every value's scale set.

    With `narrow`, in a graph of functions by lines, truncated values have their kind's headroom and
    `spare` bits above the point, and no more. Where a value does not fit the ring, it is left as it
    is for `check_ranges` to report.
    """
    compared = compared_values(graph)
    missing = may_be_missing(graph)
    inputs = tuple(
        replace(entry, order=entry.value in compared, missing=entry.value in missing)
        for entry in graph.inputs
    )
    preset_scales = {
        id: value.scale for id, value in graph.values.items() if value.scale is not None and each
    }
    unscaled_magnitudes = dict.fromkeys(compared, math.ldexp(1.0, PLACE_BITS))
    unscaled_magnitudes |= {entry.value: 1.0 for entry in graph.inputs if entry.one_hot}

    def scale_of(value: Value) -> int:
        return own_scale(value, scale_bits, ring_bits) if each else scale_bits

    graph = replace(graph, inputs=inputs).with_values(
        lambda id, value: (
            replace(value, scale=0, magnitude=unscaled_magnitudes[id])
            if id in unscaled_magnitudes
            else replace(value, scale=scale_of(value))
        )
    )
    ceilings = {
        kind: max(scale_bits + weight_scale, ring_bits - GUARD_BITS - bits)
        for kind, bits in headroom.items()
    }
    placement_type = _OwnScales if each else _Placement
    placement = placement_type(graph, ring_bits, ceilings, scale_bits, weight_scale, preset_scales)
    placement.compared = compared
    tables = [node for node in graph.nodes if isinstance(node.operation, op.Piecewise)]
    if narrow and not each and tables:
        integer_bits = {kind: bits + GUARD_BITS for kind, bits in headroom.items()}
        for table in tables:
            kind = placement.kinds[table.inputs[0]]
            integer_bits[kind] = max(
                integer_bits[kind], _table_integer_bits(graph, table, scale_bits)
            )
        placement.integer_bits = {kind: bits + spare for kind, bits in integer_bits.items()}
    return placement.rewriter.walk(placement.place_with_state)


def _table_integer_bits(graph: Graph, node: Node, scale: int) -> int:
    """Bits above the point that the table of a function needs, and as much again on both sides."""
    assert isinstance(node.operation, op.Piecewise)
    return node.operation.bits + GUARD_BITS - scale - graph.values[node.inputs[0]].fine


def read_truncated(graph: Graph) -> set[int]:
    """Values that a maximum or a product of two values reads, perhaps behind a rearrangement: it
    has them truncated."""
    truncated: set[int] = set()
    for node in reversed(graph.nodes):
        match node.operation:
            case op.Mul() | op.MatMul() | op.MaxPool2d():
                truncated.update(node.inputs)
            case op.Movement() if node.output in truncated:
                truncated.update(node.inputs)
    return truncated


def own_scale(value: Value, precision: int, ring_bits: int) -> int:
    """The scale that leaves so many bits for the largest magnitude of a value."""
    return min(max(precision - exponent(value), 0), ring_bits - GUARD_BITS)


def exponent(value: Value) -> int:
    """The binary logarithm of a value's largest magnitude, rounded up; 0 of a value that is 0."""
    return math.frexp(value.magnitude)[1] if value.magnitude else 0


def function_scale(scale_bits: int, weight_scale: int, *, each: bool) -> int:
    """The scale of arguments and results of functions by lines."""
    finest_scale = FUNCTION_SCALE if scale_bits < FINE else FINE_FUNCTION_SCALE
    return min(scale_bits, weight_scale, finest_scale) if each else scale_bits


class _Placement:
    each = False

    def __init__(
        self,
        graph: Graph,
        ring_bits: int,
        ceilings: Mapping[Kind, int],
        scale_bits: int,
        weight_scale: int,
        preset_scales: Mapping[int, int],
    ) -> None:
        self.preset_scales = preset_scales
        self.new_preset_scales: dict[int, int] = {}
        self.rewriter = Rewriter(graph)
        self.ring_bits = ring_bits
        self.ceilings = ceilings
        self.kinds = kinds_of(graph)
        self.new_kinds: dict[int, Kind] = {}
        self.function_results = functions_of(graph)
        self.precision = scale_bits
        self.base = function_scale(scale_bits, weight_scale, each=self.each)
        self.weight_scale = weight_scale
        self.rescaled: dict[tuple[int, int], int] = {}
        self.integer_bits: dict[Kind, int] = {}
        self.compared: set[int] = set()
        self.movements: dict[int, tuple[op.Operation, int]] = {}
        self.uses = graph.uses()
        self.truncated = read_truncated(graph)
        # Of several readers all see the same numbers.
        self.shared_truncated = {id for id in self.truncated if self.uses[id] > 1}
        self.state_inputs = {after: before for before, after in graph.state.values()}

    def place_with_state(self, node: Node) -> int:
        """As `place`; what is left as state has the scale that it is read at."""
        result = self.place(node)
        if node.output not in self.state_inputs:
            return result
        return self.at_scale(
            node, result, self.scale(self.rewriter.new[self.state_inputs[node.output]])
        )

    def place(self, node: Node) -> int:
        inputs = [self.rewriter.new[id] for id in node.inputs]
        for index, id in enumerate(node.inputs):
            if id in self.shared_truncated:
                inputs[index] = self.at_base_scale(node, inputs[index])
        x = inputs[0]
        match node.operation:
            case op.Conv2d() | op.Dense() | op.Scale():
                return self.linear(node, node.operation.weight, x)
            case op.Mul() | op.MatMul():
                return self.product(node, *inputs)
            case op.Polynomial():
                return self.add(node, self.base_of_output(node), self.at_base_scale(node, x))
            case op.Elementwise():
                return self.add(node, self.base, x)
            case op.Piecewise(step_bits=fraction):
                x = self.in_narrow_ring(
                    node, self.at_scale(node, x, self.base + self.rewriter.builder.value(x).fine)
                )
                extra_bits = self.rewriter.old.values[node.output].fine
                return self.add(node, self.base + extra_bits + fraction, x)
            case op.Broadcast() | op.Reshape() | op.Transpose() | op.Slice():
                if extra_bits := self.rewriter.old.values[node.output].fine:
                    x = self.at_scale(node, x, self.base + extra_bits)
                result = self.add(node, self.scale(x), x)
                fine_bits = (self.rewriter.builder.value(id).fine for id in (result, x))
                self.rewriter.builder.refine(result, max(fine_bits))
                if isinstance(node.operation, op.Broadcast) or self.uses[node.inputs[0]] > 1:
                    self.movements[result] = node.operation, x
                return result
            case op.Step():
                x = self.at_base_scale(node, x)
                return self.add(node, 0, x, operation=op.Step(self.ring_bits))
            case op.Trees():
                return self.trees(node, x)
            case op.ArgMax():
                return self.add(node, 0, self.at_base_scale(node, x))
            case op.AvgPool2d():
                return self.average(node, node.operation, x)
            case op.Operation(compares=True):
                inputs = [self.at_base_scale(node, id) for id in inputs]
                return self.add(node, self.scale(inputs[-1]), *inputs)
            case op.AddConstant() | op.Pad():
                return self.sum(node, [x], at_least=self.base_of_output(node))
            case op.ShiftLeft() | op.Truncate() | op.ChannelAffine():
                raise AssertionError("this pass runs once, after fold_batchnorm")
            case _:
                return self.sum(node, inputs, at_least=0)

    def sum(self, node: Node, inputs: Sequence[int], *, at_least: int) -> int:
        """Brings the inputs to one scale: the highest below the ceiling, rather than truncating."""
        scales = [self.scale(id) for id in inputs]
        base, ceiling = self.base_of_output(node), self.ceiling_of(node, inputs)
        high, low = max(*scales, at_least), max(min(scales), base)
        full_scale = base + self.rewriter.old.values[node.output].fine
        is_truncated = node.output in self.truncated and min(scales) >= full_scale and not self.each
        if is_truncated and len(inputs) > 1 and all(self.is_cheap(id, full_scale) for id in inputs):
            # What is made of truncated values needs no truncation itself.
            return self.add(
                node, full_scale, *(self.at_scale(node, id, full_scale) for id in inputs)
            )
        choices = [s for s in (high, low, base) if s <= high]
        target = next(
            (s for s in choices if s <= ceiling),
            min(choices[-1], max(ceiling, 0)) if self.each else choices[-1],
        )
        return self.add(node, target, *(self.at_scale(node, id, target) for id in inputs))

    def trees(self, node: Node, x: int) -> int:
        """Trees read places of inputs, which have scale 0, or what they compare at the base scale,
        which is above that: places of classes are numbers, too."""
        if node.inputs[0] not in self.compared:
            x = self.at_base_scale(node, x)
            if self.scale(x) == 0:
                x = self.at_scale(node, x, max(self.base_of(x), 1))
        return place_trees(self.rewriter, node, x, self.ring_bits)

    def average(self, node: Node, pool: op.AvgPool2d, x: int) -> int:
        """Picks by how much the scale rises, so that the factors become integers; those that are
        nothing beside the largest have no say."""
        limit = max(map(abs, pool.factors)) * 2.0**-self.base
        factors = [factor for factor in pool.factors if factor and abs(factor) >= limit] or [1.0]
        mantissas = {math.frexp(abs(factor))[0] for factor in factors}
        exponents, summed_bits = [1 - math.frexp(factor)[1] for factor in factors], 0
        are_powers_of_two = mantissas == {0.5}
        rise = max(*exponents, 0) if are_powers_of_two else max(exponents) + self.base
        if self.scale(x) + rise > self.ceiling_of(node, [x]):
            pool, x, summed_bits = self.sum_neighbours(node, pool, x)
            # What is left of errors of `2^j` times fewer truncations adds up to as much.
            finer_scale = self.base_of(x) + summed_bits // 2
            x, rise = self.at_scale(node, x, min(self.scale(x), finer_scale)), rise - summed_bits
        if not are_powers_of_two:
            min_rise = max(exponents) - summed_bits + FACTOR_BITS_AT_LEAST
            rise = max(min(rise, self.ceiling_of(node, [x]) - self.scale(x)), min_rise)
        return self.add(node, self.scale(x) + rise, x, operation=pool)

    def sum_neighbours(
        self, node: Node, pool: op.AvgPool2d, x: int
    ) -> tuple[op.AvgPool2d, int, int]:
        """Averages of `2^j` neighbours each, as many as the ceiling has room for at the scale that
        `x` has, the pool of what is left, and `j`: then there are fewer elements to truncate.

        Only of a whole image, of which each element counts once.
        """
        shape = self.rewriter.builder.shape(x)
        width = pool.kernel[1]
        free_bits = self.ceiling_of(node, [x]) - self.scale(x)
        j = min(free_bits, (width & -width).bit_length() - 1)
        if pool.kernel != shape[2:] or pool.size != (1, 1) or any(pool.padding) or j < 1:
            return pool, x, 0
        if self.scale(x) <= self.base_of(x):
            return pool, x, 0
        partial_pool = replace(pool, kernel=(1, 1 << j), stride=(1, 1 << j), dilation=(1, 1))
        partial_pool = replace(partial_pool, size=(shape[2], width >> j), factors=(2.0**-j,))
        like = replace(self.rewriter.builder.value(x), scale=self.scale(x) + j)
        part_sum = self.emit(node, partial_pool, x, like)
        kernel = (pool.kernel[0], width >> j)
        factors = tuple(factor * 2.0**j for factor in pool.factors)
        return replace(pool, kernel=kernel, factors=factors), part_sum, j

    def add(
        self, node: Node, scale: int, *inputs: int, operation: op.Operation | None = None
    ) -> int:
        new_id = self.rewriter.add(node, operation or node.operation, *inputs)
        self.rewriter.builder.rescale(new_id, scale)
        self.new_kinds[new_id] = self.kinds[node.output]
        if node.output in self.preset_scales:
            self.new_preset_scales[new_id] = self.preset_scales[node.output]
        return new_id

    def linear(self, node: Node, weight: Array, x: int) -> int:
        """A product with weights. Of many results of functions it reads them truncated: then
        these are made in a narrower ring, which saves more bytes than a truncation sends."""
        is_large = bool(self.integer_bits) and math.prod(self.rewriter.builder.shape(x)) >= MANY
        if self.scale(x) + self.weight_scale > self.ceiling_of(node, [x]) or (
            is_large and node.inputs[0] in self.function_results
        ):
            x = self.at_base_scale(node, x)
        return self.add(node, self.scale(x) + self.weight_scale, x)

    def product(self, node: Node, x: int, y: int) -> int:
        """A product of two values."""
        x, y = self.at_base_scale(node, x), self.at_base_scale(node, y)
        return self.add(node, self.scale(x) + self.scale(y), x, y)

    def is_cheap(self, x: int, scale: int) -> bool:
        """Whether `x` is at this scale already, or made of few elements that are broadcast."""
        while self.scale(x) != scale and (x, scale) not in self.rescaled:
            if x not in self.movements:
                return False
            movement, x = self.movements[x]
            if isinstance(movement, op.Broadcast):
                return True
        return True

    def at_base_scale(self, node: Node, x: int) -> int:
        """`x` truncated to the scale that it has for itself, if it is above that."""
        return self.at_scale(node, x, min(self.scale(x), self.base_of(x)))

    def base_of(self, x: int) -> int:
        """The scale of a value for itself, with what it keeps beyond others."""
        return self.base + self.rewriter.builder.value(x).fine

    def base_of_output(self, node: Node) -> int:
        """The same of what a node makes."""
        return self.base

    def ceiling_of(self, node: Node, inputs: Sequence[int]) -> int:
        """The highest scale that the result of a node may have, and its inputs beside it."""
        return min(
            self.ceilings[kind] for kind in (self.kinds[node.output], *map(self.kind, inputs))
        )

    def at_scale(self, node: Node, x: int, scale: int) -> int:
        """`x` at another scale; made once, however many nodes ask for it."""
        current_scale = self.scale(x)
        if current_scale == scale:
            return x
        if (x, scale) not in self.rescaled:
            operation, source = self.rescaling(node, x, scale)
            like = replace(self.rewriter.builder.value(x), scale=scale)
            self.rescaled[x, scale] = self.emit(node, operation, source, like)
        return self.rescaled[x, scale]

    def in_narrow_ring(self, node: Node, x: int) -> int:
        """`x` in a ring that the headroom fills, as the argument of a table."""
        if not self.integer_bits or x in self.rescaled.values():
            return x
        truncation = op.Truncate(0, min(self.scale(x) + self.integer_bits_of(x), self.ring_bits))
        return self.emit(node, truncation, x, self.rewriter.builder.value(x))

    def emit(self, node: Node, operation: op.Operation, x: int, like: Value) -> int:
        """What `operation` makes of `x`, a value of the same kind."""
        new_id = self.rewriter.builder.add(operation, [x], node=node.name, like=like)
        self.new_kinds[new_id] = self.kind(x)
        return new_id

    def integer_bits_of(self, x: int) -> int:
        """Bits above the point that `x` has once it is truncated."""
        return self.integer_bits[self.kind(x)]

    def kind(self, new_id: int) -> Kind:
        """The kind of a value of the new graph."""
        return self.new_kinds.get(new_id, Kind.VALUE)

    def rescaling(self, node: Node, x: int, scale: int) -> tuple[op.Operation, int]:
        """What makes `x` at another scale, and of which value.

        A value is truncated before it is broadcast, or rearranged for one of several readers: fewer
        elements, and once for all of them.
        """
        bits = self.scale(x) - scale
        if bits < 0:
            return op.ShiftLeft(-bits), x
        if x in self.movements:
            movement, source = self.movements[x]
            return movement, self.at_scale(node, source, scale)
        if not self.integer_bits or scale + self.integer_bits_of(x) >= self.ring_bits - bits:
            return op.Truncate(bits), x
        return op.Truncate(bits, scale + self.integer_bits_of(x)), x

    def scale(self, new_id: int) -> int:
        scale = self.rewriter.builder.value(new_id).scale
        assert scale is not None
        return scale


class _OwnScales(_Placement):
    """A scale for each value, by its own magnitude."""

    each = True

    def linear(self, node: Node, weight: Array, x: int) -> int:
        """Keeps `weight_scale` bits of the result, in so far as weights and ring have room."""
        result, source = self.rewriter.old.values[node.output], self.rewriter.builder.value(x)
        largest = float(np.abs(weight).max(initial=0.0))
        free_bits = WEIGHT_BITS_AT_MOST - math.frexp(largest)[1]
        ceiling = min(self.ceiling_of(node, []), self.ring_bits - 1)
        rise = max(
            min(self.weight_scale + exponent(source) - exponent(result), free_bits, ceiling), 0
        )
        if self.scale(x) + rise > ceiling:
            x = self.at_base_scale(node, x)
        if (excess_bits := self.scale(x) + rise - ceiling) > 0:
            # Whichever has more bits, the value or the largest weight, loses them first.
            value_excess = self.scale(x) + exponent(source) - rise - math.frexp(largest)[1]
            loss = min(max((excess_bits + value_excess) // 2, 0), excess_bits, self.scale(x))
            x, rise = self.at_scale(node, x, self.scale(x) - loss), rise - (excess_bits - loss)
        return self.add(node, self.scale(x) + rise, x)

    def product(self, node: Node, x: int, y: int) -> int:
        """As `_Placement`; factors lose the bits for which the ring has no room."""
        x, y = self.at_base_scale(node, x), self.at_base_scale(node, y)
        excess_bits = max(self.scale(x) + self.scale(y) - self.ceiling_of(node, []), 0)
        x, y = (
            self.at_scale(node, id, max(self.scale(id) - -(-excess_bits // 2), 0)) for id in (x, y)
        )
        return self.add(node, self.scale(x) + self.scale(y), x, y)

    def at_scale(self, node: Node, x: int, scale: int) -> int:
        """As `_Placement`. Shifts left by a bit what a truncation leaves in too narrow a ring."""
        result_ring_bits = self.ring_bits - (self.scale(x) - scale)
        bits = exponent(self.rewriter.old.values[node.output]) + scale + GUARD_BITS
        if 0 < scale < self.scale(x) and bits > result_ring_bits:
            x = super().at_scale(node, x, scale - 1)
        return super().at_scale(node, x, scale)

    def base_of(self, x: int) -> int:
        """As `_Placement`."""
        preset_scale = self.new_preset_scales.get(x)
        scale = own_scale(self.rewriter.builder.value(x), self.precision, self.ring_bits)
        return scale if preset_scale is None else preset_scale

    def base_of_output(self, node: Node) -> int:
        """As `_Placement`."""
        output = self.rewriter.old.values[node.output]
        return self.preset_scales.get(
            node.output, own_scale(output, self.precision, self.ring_bits)
        )

    def ceiling_of(self, node: Node, inputs: Sequence[int]) -> int:
        """As `_Placement`: neither the inputs at that scale nor the result leave the ring."""
        values = [self.rewriter.old.values[node.output], *map(self.rewriter.builder.value, inputs)]
        return self.ring_bits - max(GUARD_BITS + max(map(exponent, values)), 1)
