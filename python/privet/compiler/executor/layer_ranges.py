"""Per layer: how large its values can become, how large they were measured, and what they fit in.

For the owner of the weights, who sees what a public half does not say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from privet.compiler.executor.sound import Bounds, sound_bounds
from privet.compiler.graph import Graph
from privet.compiler.passes.check_ranges import GUARD_BITS, RING_BITS
from privet.compiler.passes.ring_widths import ring_widths
from privet.compiler.program.build import integer_graph
from privet.compiler.program.public import Program
from privet.compiler.program.weights import Weights
from privet.errors import OverflowRisk

WIDEST = RING_BITS[-1] - 2
"""The widest ring that every suite and mode takes: exact ones of suite `gmw` need guard bits."""
REFINEMENTS = 6
"""Bits of precision that a safe input is found to."""


@dataclass(frozen=True)
class LayerRange:
    """One value of a program. Magnitudes are integers, to be divided by `2^scale`.

    `sound` bounds every input within the public bound, `None` where there is no bound; `measured`
    is what calibration reached, without its margin. The ring of `ring_bits` holds magnitudes below
    `2^(ring_bits - 2)`. `is_tabulated` says that no input within the bound leaves the tables of a
    function where that makes a difference.
    """

    name: str
    operator: str
    scale: int
    sound: int | None
    measured: int
    ring_bits: int
    is_tabulated: bool = True

    @property
    def holds(self) -> int:
        return 1 << (self.ring_bits - GUARD_BITS)

    @property
    def is_sound(self) -> bool:
        """Whether no input within its bound can leave the ring here, or a function's tables."""
        return self.is_tabulated and self.sound is not None and self.sound < self.holds


class Ranges:
    """The ranges of a program's values; `narrow` where shares lose their low bits in a truncation.

    `measured` has the largest magnitude of each value on calibration, as reals.
    """

    def __init__(
        self, program: Program, weights: Weights, measured: Sequence[float], *, narrow: bool = True
    ) -> None:
        self._graph: Graph = integer_graph(program, weights)
        self._program = program
        ring_bits = program.ring_bits
        self._widths = (
            ring_widths(self._graph, ring_bits)
            if narrow
            else dict.fromkeys(self._graph.values, ring_bits)
        )
        bounds = self._bounds(Fraction(1))
        producers = self._graph.producers()
        names = {entry.value: entry.name for entry in program.inputs}
        names |= {entry.input: entry.name for entry in program.state}
        operators = {o.output: o.op for o in program.operations}
        self.layers = tuple(
            LayerRange(
                name=names[id] if id in names else producers[id].name,
                operator=operators.get(id, "input"),
                scale=value.scale,
                sound=bounds.largest[id],
                measured=math.ceil(math.ldexp(measured[id], value.scale)),
                ring_bits=self._widths[id],
                is_tabulated=id not in bounds.beyond,
            )
            for id, value in enumerate(program.values)
        )

    @property
    def is_sound(self) -> bool:
        """Whether every input within the public bound is computed without leaving a ring or the
        tables of a function."""
        return all(layer.is_sound for layer in self.layers)

    @property
    def bits_needed(self) -> int | None:
        """The ring that no value leaves with this placement of truncations; None if there is no
        bound."""
        ring_bits, bits = self._program.ring_bits, 0
        for layer in self.layers:
            if layer.sound is None:
                return None
            dropped_bits = ring_bits - layer.ring_bits
            bits = max(bits, layer.sound.bit_length() + GUARD_BITS + dropped_bits)
        return bits

    @property
    def sound_bits(self) -> int | None:
        """The ring with which the program is sound; None if with none."""
        return self.bits_needed if all(layer.is_tabulated for layer in self.layers) else None

    @property
    def bits_beyond_narrow(self) -> int:
        """Bits that the rings of truncated values lack for a sound program."""
        missing_bits = [
            layer.sound.bit_length() + GUARD_BITS - layer.ring_bits
            for layer in self.layers
            if layer.sound is not None and layer.ring_bits < self._program.ring_bits
        ]
        return max(missing_bits, default=0)

    def check(self) -> None:
        """Raises `OverflowRisk`, which names the first layer whose values may leave their ring."""
        layer = next((layer for layer in self.layers if not layer.is_sound), None)
        if layer is None:
            return
        options = [*self.ways, "without --sound, on calibration inputs like the real ones"]
        advice = f"Compile {', or '.join(options)}"
        unit = 2.0**-layer.scale
        magnitude = float("inf") if layer.sound is None else layer.sound * unit
        if not layer.is_tabulated:
            raise OverflowRisk(
                f"layer {layer.name} ({layer.operator}) is not sound: some input within its bound "
                "could bring its argument beyond the function's table, which goes as far as "
                f"calibration inputs did, with their margin. {advice}",
                layer=layer.name,
                magnitude=magnitude,
                bits_needed=RING_BITS[-1] + 1,
            )
        raise OverflowRisk(
            f"layer {layer.name} ({layer.operator}) is not sound: some input within its bound "
            f"could bring values to {magnitude:.4g}, and their ring of {layer.ring_bits} bits "
            f"holds {layer.holds * unit:.4g}. {advice}",
            layer=layer.name,
            magnitude=magnitude,
            bits_needed=self.bits_needed or RING_BITS[-1] + 1,
        )

    @property
    def ways(self) -> list[str]:
        """How to compile a sound program instead."""
        options = []
        if self.sound_bits is not None and self.sound_bits <= WIDEST:
            options.append(f"with --bits {self.sound_bits}")
        if share := self.safe_share():
            largest = max(entry.magnitude for entry in self._program.inputs) * float(share)
            options.append(f"for inputs of magnitude up to {largest:.3g}")
        return options

    def safe_share(self) -> Fraction:
        """The share of the public bound up to which inputs are safe; 0 if it is below `2^-32`."""
        if self.is_sound:
            return Fraction(1)
        low = Fraction(1, 2)
        while low > Fraction(1, 1 << 32) and not self._is_sound(low):
            low /= 2
        if not self._is_sound(low):
            return Fraction(0)
        step = low
        for _ in range(REFINEMENTS):
            step /= 2
            if self._is_sound(low + step):
                low += step
        return low

    def _is_sound(self, share: Fraction) -> bool:
        bounds = self._bounds(share)
        return not bounds.beyond and all(
            bound is not None and bound < 1 << (self._widths[id] - GUARD_BITS)
            for id, bound in bounds.largest.items()
        )

    def _bounds(self, share: Fraction) -> Bounds:
        inputs = {
            entry.value: math.ceil(
                Fraction(entry.magnitude) * share * 2 ** self._program.values[entry.value].scale
            )
            for entry in self._program.inputs
        }
        # Nothing but the ring bounds what any number of steps adds up to in a state.
        inputs |= {entry.input: 1 << (self._program.ring_bits - 1) for entry in self._program.state}
        return sound_bounds(self._graph, inputs, self._program.ring_bits)
