"""Chooses the ring and the scales of a program by trying them on calibration inputs.

Candidates are tried in an order that puts first what tells least of the model: one scale for all
values before a scale for each, and narrow rings before wide ones. The first whose outputs lie
within `TOLERANCE` of the real graph's is taken, relative to their spread, or else the closest; of a
large model the first of all is kept if they lie within `KEPT`. Without calibration inputs it is
kept if values have room. What counts is what a user gets: scores, and what the head makes of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from privet.compiler.executor import real
from privet.compiler.executor.codec import as_tensor
from privet.compiler.executor.fixed import run_integers
from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, combine
from privet.compiler.graph.operations import Array
from privet.compiler.graph.order import places
from privet.errors import OverflowRisk

TOLERANCE = 1e-3
"""What is aimed at: the largest error of an output, relative to the output's spread."""
MOST_SPARE = 8
"""Most bits that truncated values' rings get beyond what was measured: these are compared."""
MOST_BEYOND = 4
"""A ring is widened to `WIDEST` where a sound program lacks no more bits then."""
Chosen = TypeVar("Chosen")

DIFFERENT = 10 * TOLERANCE
"""The error beside ONNX Runtime from which it is reported, where no layer has one."""
KEPT = 4 * TOLERANCE
"""The error up to which a large model keeps the first candidate: there wider rings cost much."""
LARGE = 1 << 16
"""Elements of values in all from which a model is large."""
SAMPLES = 64
"""Most calibration inputs that candidates are tried on."""
ELEMENTS = 1 << 20
"""Elements of values in all that are tried, after the first input; a value counts as at least
`LEAST_ELEMENTS`."""
ROWS = 12
"""Calibration inputs that are tried at least where all inputs are tables: what takes places of
neighbours or classes shows on few rows that a column was lost."""
LEAST_ELEMENTS = 128


@dataclass(frozen=True)
class Widths:
    """The ring, and the fractional bits of values and of weights in it.

    With `each`, every value has a scale of its own: `scale` bits are left for its largest
    magnitude, and weights get as many as make a product keep `weight_scale` bits of it.
    """

    bits: int
    scale: int
    weight_scale: int
    each: bool = False


USUAL = Widths(37, 12, 12)
CANDIDATES = (
    USUAL,
    Widths(40, 12, 12),
    Widths(42, 14, 14),
    Widths(48, 16, 16),
    Widths(37, 17, 16, each=True),
    Widths(42, 20, 18, each=True),
    Widths(42, 24, 20, each=True),
    Widths(48, 25, 19, each=True),
)
"""What is tried, in this order."""
WIDEST = 42
"""The widest ring that every suite and every choice in one carries. A wider one is chosen only for
what no other holds, or given by a user."""
CHOSEN = tuple(widths for widths in CANDIDATES if widths.bits <= WIDEST)


def candidates(
    bits: int | None, scale: int | None, weight_scale: int | None, headroom: int | None
) -> Sequence[Widths]:
    """What to try, given what the user asks for: a ring, scales for all values, or that places of
    truncations tell nothing of measured values, with which nothing else may, either."""
    fraction_bits = USUAL.scale if scale is None else scale
    weight_fraction_bits = fraction_bits if weight_scale is None else weight_scale
    if headroom is not None:
        return [Widths(USUAL.bits if bits is None else bits, fraction_bits, weight_fraction_bits)]
    if scale is not None or weight_scale is not None:
        rings = [bits] if bits is not None else sorted({widths.bits for widths in CHOSEN})
        return [Widths(ring, fraction_bits, weight_fraction_bits) for ring in rings]
    if bits is None:
        return CHOSEN
    resized = [
        Widths(bits, widths.scale, widths.weight_scale, widths.each) for widths in CANDIDATES
    ]
    return [
        widths
        for widths in resized
        if widths == Widths(bits, 12, 12) or widths.scale + widths.weight_scale <= bits
    ]


def wider(bits: int | None, trial_widths: Sequence[Widths]) -> Sequence[Widths]:
    """What a user may be told to ask for, if nothing that was tried holds a model."""
    if bits is not None or trial_widths is not CHOSEN:
        return []
    return candidates(CANDIDATES[-1].bits, None, None, None)


@dataclass(frozen=True)
class LayerError:
    """How far a layer's values lie from real ones: `error` at most, of values that spread over
    `spread` and are integers at `scale`."""

    name: str
    operator: str
    scale: int
    error: float
    spread: float

    @property
    def units(self) -> float:
        """The error in units of the last place."""
        return float(np.ldexp(self.error, self.scale))

    @property
    def relative(self) -> float:
        """The error as a part of the spread."""
        return self.error / self.spread if self.spread else 0.0


@dataclass(frozen=True)
class Accuracy:
    """Errors of a program's layers, in order, and of its outputs, on calibration inputs.

    Outputs are those of the program, and the numbers that the head makes of them. `beside` has the
    same of what a user gets beside ONNX Runtime's outputs, as far as that was compared.
    """

    layers: tuple[LayerError, ...]
    outputs: tuple[LayerError, ...]
    beside: tuple[LayerError, ...] = ()

    @property
    def relative(self) -> float:
        """The largest error of an output, relative to its spread."""
        return max((output.relative for output in self.outputs), default=0.0)

    @property
    def loser(self) -> LayerError | None:
        """The first layer that is off by more than `TOLERANCE`, if an output is."""
        if self.relative <= TOLERANCE:
            return None
        return next(layer for layer in (*self.layers, *self.outputs) if layer.relative > TOLERANCE)

    @property
    def warning(self) -> str | None:
        """What to tell the owner of a program, if it is not accurate."""
        if (layer := self.loser) is None:
            return self._difference
        return (
            f"an output is off by {self.relative:.2g} of its spread on calibration inputs, and "
            f"layer {layer.name} ({layer.operator}) is the first to lose it, {layer.error:.3g} of "
            f"values that spread over {layer.spread:.3g}. Give calibration inputs like the real "
            "ones, bring inputs to similar sizes, or compile with --bits and --scale"
        )

    @property
    def _difference(self) -> str | None:
        """What to tell where no layer is off, and still outputs are not ONNX Runtime's."""
        worst = max(self.beside, key=lambda layer: layer.relative, default=None)
        if worst is None or worst.relative <= DIFFERENT:
            return None
        return (
            f"output {worst.name} is off from ONNX Runtime's by {worst.relative:.2g} of its spread "
            "on calibration inputs, and no layer loses it: float32 loses it in ONNX Runtime, or "
            "Privet reads the file otherwise. Compare both with what the model was exported from"
        )


Head = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""What a client computes, by name, of the outputs of a program."""


def elements(graph: Graph) -> int:
    """Elements of all values together."""
    return sum(math.prod(value.shape) for value in graph.values.values())


def measure_accuracy(
    real_graph: Graph,
    integer_graph: Graph,
    samples: Sequence[Sequence[Array]],
    ring_bits: int,
    *,
    head: Head,
    original: Graph | None = None,
) -> Accuracy:
    """Compares an integer graph with the real one that it was rounded from, value by value, on some
    of the samples; and outputs with those of the `original`, if functions were replaced there.

    Nodes of the first two are the same, in the same order; `real_graph` has the scales.

    Raises `OverflowRisk` if a value leaves the ring.
    """
    reference = replace(
        real_graph, nodes=tuple(_with_exact_function(real_graph, node) for node in real_graph.nodes)
    )
    pairs = list(zip(real_graph.nodes, integer_graph.nodes, strict=True))
    errors = {node.output: Errors() for node, _ in pairs}
    output_errors, head_errors = [Errors() for _ in real_graph.outputs], dict[str, Errors]()
    output_ids = [_compared_value(real_graph, output.value) for output in real_graph.outputs]
    for batch in _select_samples(samples, integer_graph):
        real_values: dict[int, Array] = {}
        integer_values: dict[int, Array] = {}
        reals = [
            (places(array) if entry.order else array).astype(np.float64)
            for entry, array in zip(real_graph.inputs, batch, strict=True)
        ]
        inputs = [
            np.rint(np.ldexp(array, _scale(integer_graph, integer_input.value))).astype(np.int64)
            for integer_input, array in zip(integer_graph.inputs, reals, strict=True)
        ]
        run_integers(integer_graph, inputs, ring_bits, integer_values.__setitem__)
        real.run(reference, reals, real_values.__setitem__)
        fixed_values = {
            node.output: np.ldexp(
                integer_values[integer.output].astype(np.float64),
                -_scale(integer_graph, integer.output),
            )
            for node, integer in pairs
        }
        for id, error in errors.items():
            error.add(fixed_values[id], real_values[id])
        expected_values = real_values
        if original is not None:
            expected_values = {}
            original_inputs = [array.astype(np.float64) for array in batch]
            real.run(original, original_inputs, expected_values.__setitem__)
        expected_graph = original or real_graph
        for output_id, error, entry in zip(
            output_ids, output_errors, expected_graph.outputs, strict=True
        ):
            if output_id in fixed_values:
                error.add(
                    fixed_values[output_id],
                    expected_values[_compared_value(expected_graph, entry.value)],
                )
        if any(output.value not in fixed_values for output in real_graph.outputs):
            continue  # an input as it is
        head_outputs = [
            head(
                {
                    output.name: _as_head_input(
                        values[graph_output.value], _scale(real_graph, output.value)
                    )
                    for output, graph_output in zip(real_graph.outputs, graph.outputs, strict=True)
                }
            )
            for graph, values in ((real_graph, fixed_values), (expected_graph, expected_values))
        ]
        for name, array in head_outputs[1].items():
            actual, target = as_tensor(head_outputs[0][name]), as_tensor(array)
            if target.dtype.kind == "f":
                head_errors.setdefault(name, Errors()).add(actual, target)
    layers = tuple(
        errors[node.output].layer(
            node.name, type(node.operation).__name__, _scale(integer_graph, integer.output)
        )
        for node, integer in pairs
    )
    by_value = {node.output: layer for (node, _), layer in zip(pairs, layers, strict=True)}
    outputs = [
        replace(by_value[id], error=error.largest, spread=error.spread)
        for id, error in zip(output_ids, output_errors, strict=True)
        if id in by_value
    ]
    head_layers = [head_error.layer(name, "head", 0) for name, head_error in head_errors.items()]
    return Accuracy(layers, (*outputs, *head_layers))


def _select_samples(samples: Sequence[Sequence[Array]], graph: Graph) -> list[Sequence[Array]]:
    """As many samples as are tried, from the first to the last at equal distances."""
    elements_per_sample = sum(
        max(math.prod(value.shape), LEAST_ELEMENTS) for value in graph.values.values()
    )
    min_count = (
        ROWS if all(len(graph.values[entry.value].shape) <= 2 for entry in graph.inputs) else 1
    )
    count = min(max(min_count, min(SAMPLES, ELEMENTS // elements_per_sample)), len(samples))
    return [samples[index * len(samples) // count] for index in range(count)]


class Errors:
    """The largest distance from what is wanted, and from where to where that goes."""

    def __init__(self) -> None:
        self.largest, self.low, self.high = 0.0, math.inf, -math.inf

    def add(self, actual: Array, expected: Array) -> None:
        """Counts a tensor, and what is wanted in its place."""
        self.largest = max(
            self.largest, float(np.abs(actual - expected.reshape(actual.shape)).max())
        )
        self.low = min(self.low, float(expected.min()))
        self.high = max(self.high, float(expected.max()))

    @property
    def spread(self) -> float:
        """From the lowest to the highest; of a single number its magnitude."""
        return self.high - self.low if self.high > self.low else abs(self.high)

    def layer(self, name: str, operator: str, scale: int) -> LayerError:
        """The same of a layer."""
        return LayerError(name, operator, scale, self.largest, self.spread)


@dataclass(frozen=True)
class Choice(Generic[Chosen]):
    """What widths give, and how accurate that is."""

    value: Chosen
    accuracy: Callable[[], Accuracy]


def choose(
    trial_widths: Sequence[Widths],
    attempt: Callable[[Widths], Choice[Chosen]],
    *,
    trust_first: bool,
    first_tolerance: float = TOLERANCE,
    wider_trials: Sequence[Widths] = (),
) -> Chosen:
    """The first candidate that is accurate; `attempt` makes one. Of the first of all errors up to
    `first_tolerance` are enough; with `trust_first` it counts as accurate if values have room in
    it.

    If none is, the closest, provided that the first has room: what it refuses is never made worse
    than `KEPT`.

    Raises the first candidate's `OverflowRisk` if no other is accurate enough instead; it says if
    one of `wider_trials` is.
    """
    first_risk: OverflowRisk | None = None
    best: tuple[float, Chosen] | None = None
    for index, widths in enumerate(trial_widths):
        try:
            choice = attempt(widths)
            if index == 0 and (trust_first or len(trial_widths) == 1):
                return choice.value
            error = choice.accuracy().relative
        except OverflowRisk as risk:
            first_risk = risk if index == 0 else first_risk
            continue
        if error <= (TOLERANCE if index else first_tolerance):
            return choice.value
        if best is None or error < best[0] / 2:
            best = error, choice.value
    if first_risk is not None and (best is None or best[0] > KEPT):
        raise _with_advice(first_risk, wider_trials, attempt)
    assert best is not None, "there is at least one candidate"
    return best[1]


def _with_advice(
    first_risk: OverflowRisk,
    wider_trials: Sequence[Widths],
    attempt: Callable[[Widths], Choice[Chosen]],
) -> OverflowRisk:
    """The refusal, with the ring that a user may ask for where one holds the model."""
    for widths in wider_trials:
        try:
            error = attempt(widths).accuracy().relative
        except OverflowRisk:
            continue
        if error <= KEPT:
            return OverflowRisk(
                f"{first_risk}, or with --bits {widths.bits}, at which outputs are off by "
                f"{error:.2g} of their spread on calibration inputs, where the suite takes it",
                layer=first_risk.layer,
                magnitude=first_risk.magnitude,
                bits_needed=first_risk.bits_needed,
            )
    return first_risk


def _with_exact_function(graph: Graph, node: Node) -> Node:
    """The node, with the function itself in place of lines, which goes on beyond as they do."""
    table = node.operation
    if not isinstance(table, op.Piecewise):
        return node
    unit = math.ldexp(1.0, -_scale(graph, node.inputs[0]))
    above_low = combine("relu", combine("shift", Function(), constant=-table.low * unit))
    top = ((1 << table.bits) - 1) * unit
    excess = combine("relu", combine("shift", above_low, constant=-top))
    clamped = combine("shift", combine("sub", above_low, excess), constant=table.low * unit)
    function = table.function.after(clamped)
    if table.rises:
        function = combine("add", function, excess)
    return replace(node, operation=op.Elementwise(function))


def _compared_value(graph: Graph, id: int) -> int:
    """The value itself; of places that ArgMax finds, the numbers that it compares."""
    producers, value = graph.producers(), id
    while value in producers and isinstance(producers[value].operation, op.Reshape):
        value = producers[value].inputs[0]
    node = producers.get(value)
    return node.inputs[0] if node and isinstance(node.operation, op.ArgMax) else id


def _as_head_input(array: Array, scale: int) -> Array:
    """An output as a head reads it: what has no fractional bits as integers."""
    return array if scale else np.rint(array).astype(np.int64)


def _scale(graph: Graph, id: int) -> int:
    scale = graph.values[id].scale
    assert scale is not None
    return scale
