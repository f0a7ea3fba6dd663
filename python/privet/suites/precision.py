"""What a model is compiled for, where the user names nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Precision:
    """Bits of the ring, fractional bits of activations and of weights, what becomes of ReLU and of
    smooth activations, and bits of the widest ring that may be chosen for what the usual ones do
    not hold.

    Its fields are options of `privet.compiler.compile`, which chooses the widths that are None.
    """

    bits: int | None = None
    scale: int | None = None
    weight_scale: int | None = None
    relu: str = "exact"
    smooth: str = "polynomial"
    widest: int = 0

    def with_widths(
        self, bits: int | None, scale: int | None, weight_scale: int | None = None
    ) -> Precision:
        """The same with other widths, where they are given; `scale` is for weights, too, unless
        these have `weight_scale`."""
        if weight_scale is None and scale is None:
            weight_scale = self.weight_scale
        return replace(
            self,
            bits=self.bits if bits is None else bits,
            scale=self.scale if scale is None else scale,
            weight_scale=weight_scale,
        )
