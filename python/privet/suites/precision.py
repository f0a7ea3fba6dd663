"""What a model is compiled for, where the user names nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Precision:
    """Bits of the ring, fractional bits of activations and of weights, and what becomes of ReLU
    and of smooth activations.

    Its fields are options of `privet.compile`.
    """

    bits: int
    scale: int
    weight_scale: int
    relu: str = "exact"
    smooth: str = "polynomial"

    def with_widths(self, bits: int | None, scale: int | None) -> Precision:
        """The same with other widths, where they are given; `scale` is for weights, too."""
        return replace(
            self,
            bits=self.bits if bits is None else bits,
            scale=self.scale if scale is None else scale,
            weight_scale=self.weight_scale if scale is None else scale,
        )


_RING = Precision(bits=37, scale=12, weight_scale=12)
_REALS = Precision(bits=50, scale=16, weight_scale=18, relu="sign")
_CLEAR = Precision(bits=37, scale=12, weight_scale=12, smooth="function")
_OWN = {"ckks": _REALS, "stream": _CLEAR}


def precision(suite: str, bits: int | None = None, scale: int | None = None) -> Precision:
    """What suites work with: narrow rings where each bit costs, fine weights where none does.

    Suite `ckks` computes with reals; there the ring only bounds what the reference can hold. In
    suite `stream` a party computes smooth activations in the clear.
    `bits` and `scale` (also for weights) take the place of what the suite has.
    """
    own = _OWN.get(suite, _RING)
    return Precision(
        bits=own.bits if bits is None else bits,
        scale=own.scale if scale is None else scale,
        weight_scale=own.weight_scale if scale is None else scale,
        relu=own.relu,
        smooth=own.smooth,
    )
