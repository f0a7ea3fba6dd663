"""Private runs simulated in the clear, to say how far a real one may lie from the reference.

For suite `gmw`. The worst case that `error_bound` proves is of no use for a deep network: it
assumes that every error of a unit points the same way. How the errors really fall is known exactly,
since each comes from uniform shares, so a simulation draws them and shows what they add up to.
(Most of it is the reference's own doing: it rounds down, the shares round at random without a
bias.)
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from privet.compiler.executor import execute
from privet.compiler.executor.codec import Inputs
from privet.compiler.graph.operations import Arithmetic, Array
from privet.compiler.program.public import Program
from privet.compiler.program.weights import Weights

RESHARING_ERRORS = 0.05
"""Share of a linear layer's results that leave BFV off by one unit.

`docs/reference/protocols/bfv.md` has the argument.
"""

FACTOR = 3.0
"""How many times the largest simulated error a private run may reach.

The outputs' errors are sums of very many small ones, so close to normal around a mean that all
runs share. The largest of ten of them lies beyond 1.5 standard deviations nearly always, so that
three times as much is out of reach: a probability of about 10^-5 for ten outputs and one run,
less for more outputs or runs, or if the mean is what counts.
"""


class PrivateArithmetic(Arithmetic):
    """Errors as uniform shares cause them; `rng` without a seed draws from the system."""

    def __init__(
        self,
        truncation: Literal["one-bit", "exact"] = "one-bit",
        rng: np.random.Generator | None = None,
    ) -> None:
        self._one_bit = truncation == "one-bit"
        self._rng = rng or np.random.default_rng()

    def linear(self, product: Array) -> Array:
        """Now and then one unit more or less, which exact truncations round away."""
        if not self._one_bit:
            return product
        chance = self._rng.random(product.shape)
        off = (chance < RESHARING_ERRORS / 2).astype(np.int64)
        return product + off - (chance > 1 - RESHARING_ERRORS / 2)

    def truncate(self, x: Array, bits: int) -> Array:
        """`floor(x / 2^bits) + 1 - e`: `e` is the lost carry of the two shares' low parts.

        The client's low part is uniform; the server's fits it to `x`, so the two carry exactly if
        the client's exceeds that of `x`.
        """
        if not self._one_bit:
            return x >> bits
        return (x >> bits) + 1 - self._carry(x, bits)

    def _carry(self, x: Array, bits: int) -> Array:
        share = self._rng.integers(0, 1 << bits, size=x.shape, dtype=np.int64)
        return np.asarray(share > (x & ((1 << bits) - 1)))


def simulated_bound(
    program: Program,
    weights: Weights,
    inputs: Inputs,
    *,
    truncation: Literal["one-bit", "exact"] = "one-bit",
    runs: int = 3,
) -> int:
    """The largest |private - fixed-point| to expect on these inputs, in units of the last place.

    `FACTOR` times the largest error of any output's element over `runs` simulated runs, and at
    least one unit.
    """
    exact = execute(program, weights, inputs).integers
    largest = 1
    for _ in range(runs):
        noisy = execute(program, weights, inputs, PrivateArithmetic(truncation)).integers
        errors = (np.abs(a - b).max(initial=0) for a, b in zip(noisy, exact, strict=True))
        largest = max(largest, *(int(error) for error in errors))
    return int(FACTOR * largest)
