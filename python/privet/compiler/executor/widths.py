"""Chooses the ring and the scales of a program by trying them on calibration inputs.

Candidates are tried in an order that puts first what tells least of the model: one scale for all
values before a scale for each, and narrow rings before wide ones. The first of all is kept if
outputs lie within `KEPT` of the real graph's, relative to their spread; else the next one within
`TOLERANCE` is taken, or the closest. Without calibration inputs it is kept if values have room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from privet.compiler.executor import real
from privet.compiler.executor.fixed import run_integers
from privet.compiler.graph import Graph, Node
from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, combine
from privet.compiler.graph.operations import Array
from privet.compiler.graph.order import places
from privet.errors import OverflowRisk

TOLERANCE = 1e-3
"""What is aimed at: the largest error of an output, relative to the output's spread."""
Made = TypeVar("Made")

KEPT = 4 * TOLERANCE
"""The error up to which the first candidate is kept: wider rings cost more."""
SAMPLES = 16
"""Most calibration inputs that candidates are tried on."""
ELEMENTS = 1 << 20
"""Elements of values in all that are tried, after the first input."""


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
    Widths(48, 25, 19, each=True),
)
"""What is tried, in this order."""
WIDEST = 42
"""The widest ring that is chosen: every suite and every choice in one carries it. A user may give a
wider one."""
CHOSEN = tuple(it for it in CANDIDATES if it.bits <= WIDEST)


def candidates(
    bits: int | None, scale: int | None, weight_scale: int | None, headroom: int | None
) -> Sequence[Widths]:
    """What to try, given what the user asks for: a ring, scales for all values, or that places of
    truncations tell nothing of measured values, with which nothing else may, either."""
    if headroom is not None:
        values = USUAL.scale if scale is None else scale
        weights = values if weight_scale is None else weight_scale
        return [Widths(USUAL.bits if bits is None else bits, values, weights)]
    if scale is not None or weight_scale is not None:
        values = USUAL.scale if scale is None else scale
        weights = values if weight_scale is None else weight_scale
        rings = [bits] if bits is not None else sorted({it.bits for it in CHOSEN})
        return [Widths(ring, values, weights) for ring in rings]
    if bits is None:
        return CHOSEN
    within = [Widths(bits, it.scale, it.weight_scale, it.each) for it in CANDIDATES]
    return [it for it in within if it == Widths(bits, 12, 12) or it.scale + it.weight_scale <= bits]


def wider(bits: int | None, tried: Sequence[Widths]) -> Sequence[Widths]:
    """What a user may be told to ask for, if nothing that was tried holds a model."""
    if bits is not None or tried is not CHOSEN:
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
    """Errors of a program's layers, in order, and of its outputs, on calibration inputs."""

    layers: tuple[LayerError, ...]
    outputs: tuple[LayerError, ...]

    @property
    def relative(self) -> float:
        """The largest error of an output, relative to its spread."""
        return max((it.relative for it in self.outputs), default=0.0)

    @property
    def loser(self) -> LayerError | None:
        """The first layer that is off by more than `TOLERANCE`, if an output is."""
        if self.relative <= TOLERANCE:
            return None
        return next(it for it in (*self.layers, *self.outputs) if it.relative > TOLERANCE)

    @property
    def warning(self) -> str | None:
        """What to tell the owner of a program, if it is not accurate."""
        if (layer := self.loser) is None:
            return None
        return (
            f"an output is off by {self.relative:.2g} of its spread on calibration inputs, and "
            f"layer {layer.name} ({layer.operator}) is the first to lose it, {layer.error:.3g} of "
            f"values that spread over {layer.spread:.3g}. Give calibration inputs like the real "
            "ones, bring inputs to similar sizes, or give --bits and --scale"
        )


def measure_accuracy(
    placed: Graph, integers: Graph, samples: Sequence[Sequence[Array]], ring_bits: int
) -> Accuracy:
    """Compares an integer graph with the real one that it was rounded from, value by value, on the
    first few samples.

    Nodes of both are the same, in the same order; `placed` has the scales.

    # Errors
    `OverflowRisk` if a value leaves the ring.
    """
    reference = replace(placed, nodes=tuple(_exact(placed, node) for node in placed.nodes))
    pairs = list(zip(placed.nodes, integers.nodes, strict=True))
    errors = dict.fromkeys((node.output for node, _ in pairs), 0.0)
    ends = dict.fromkeys(errors, (np.inf, -np.inf))
    elements = sum(math.prod(value.shape) for value in integers.values.values())
    for batch in samples[: max(1, min(SAMPLES, ELEMENTS // elements))]:
        exact: dict[int, Array] = {}
        fixed: dict[int, Array] = {}
        entries = list(zip(placed.inputs, integers.inputs, batch, strict=True))
        scaled = [
            places(array)
            if entry.order
            else np.rint(np.ldexp(array.astype(np.float64), _scale(integers, it.value)))
            for entry, it, array in entries
        ]
        given = [array.astype(np.int64) for array in scaled]
        reals = [
            places(array).astype(np.float64) if entry.order else array.astype(np.float64)
            for entry, _, array in entries
        ]
        run_integers(integers, given, ring_bits, fixed.__setitem__)
        with np.errstate(all="ignore"):
            real.run(reference, reals, exact.__setitem__)
        for node, integer in pairs:
            wanted = exact[node.output]
            found = np.ldexp(
                fixed[integer.output].astype(np.float64), -_scale(integers, integer.output)
            )
            errors[node.output] = max(errors[node.output], float(np.abs(found - wanted).max()))
            low, high = ends[node.output]
            ends[node.output] = min(low, float(wanted.min())), max(high, float(wanted.max()))
    layers = {
        node.output: LayerError(
            node.name,
            type(node.operation).__name__,
            _scale(integers, integer.output),
            errors[node.output],
            _spread(*ends[node.output]),
        )
        for node, integer in pairs
    }
    outputs = [layers[id] for it in placed.outputs if (id := _numbers(placed, it.value)) in layers]
    return Accuracy(tuple(layers.values()), tuple(outputs))


@dataclass(frozen=True)
class Choice(Generic[Made]):
    """What widths give, and how accurate that is."""

    made: Made
    accuracy: Callable[[], Accuracy]


def choose(
    tried: Sequence[Widths],
    attempt: Callable[[Widths], Choice[Made]],
    *,
    trust_first: bool,
    wider: Sequence[Widths] = (),
) -> Made:
    """The first candidate that is accurate; `attempt` makes one. With `trust_first` the first of
    all counts as accurate if values have room in it.

    If none is, the closest, provided that the first has room: what it refuses is never made worse
    than `KEPT`.

    # Errors
    The first candidate's `OverflowRisk` if no other is accurate enough instead; it says if one of
    `wider` is.
    """
    refused: OverflowRisk | None = None
    best: tuple[float, Made] | None = None
    for index, widths in enumerate(tried):
        try:
            choice = attempt(widths)
            if index == 0 and (trust_first or len(tried) == 1):
                return choice.made
            error = choice.accuracy().relative
        except OverflowRisk as risk:
            refused = risk if index == 0 else refused
            continue
        if error <= (TOLERANCE if index else KEPT):
            return choice.made
        if best is None or error < best[0] / 2:
            best = error, choice.made
    if refused is not None and (best is None or best[0] > KEPT):
        raise _with_advice(refused, wider, attempt)
    assert best is not None, "there is at least one candidate"
    return best[1]


def _with_advice(
    refused: OverflowRisk, wider: Sequence[Widths], attempt: Callable[[Widths], Choice[Made]]
) -> OverflowRisk:
    """The refusal, with the ring that a user may ask for where one holds the model."""
    for widths in wider:
        try:
            error = attempt(widths).accuracy().relative
        except OverflowRisk:
            continue
        if error <= KEPT:
            return OverflowRisk(
                f"{refused}, or with --bits {widths.bits}, at which outputs are off by "
                f"{error:.2g} of their spread on calibration inputs",
                layer=refused.layer,
                magnitude=refused.magnitude,
                bits_needed=refused.bits_needed,
            )
    return refused


def _exact(graph: Graph, node: Node) -> Node:
    """The node, with the function itself in place of lines, which goes on beyond as they do."""
    lines = node.operation
    if not isinstance(lines, op.Piecewise):
        return node
    unit = math.ldexp(1.0, -_scale(graph, node.inputs[0]))
    raised = combine("relu", combine("shift", Function(), constant=-lines.low * unit))
    top = ((1 << lines.bits) - 1) * unit
    over = combine("relu", combine("shift", raised, constant=-top))
    within = combine("shift", combine("sub", raised, over), constant=lines.low * unit)
    function = lines.function.after(within)
    if lines.rises:
        function = combine("add", function, over)
    return replace(node, operation=op.Elementwise(function))


def _numbers(graph: Graph, id: int) -> int:
    """The value itself; of places that ArgMax finds, the numbers that it compares."""
    made_by, at = graph.producers(), id
    while at in made_by and isinstance(made_by[at].operation, op.Reshape):
        at = made_by[at].inputs[0]
    found = made_by.get(at)
    return found.inputs[0] if found and isinstance(found.operation, op.ArgMax) else id


def _spread(low: float, high: float) -> float:
    """From the lowest to the highest; of a single number its magnitude."""
    return high - low if high > low else abs(high)


def _scale(graph: Graph, id: int) -> int:
    scale = graph.values[id].scale
    assert scale is not None
    return scale
