"""The operations of a typed graph.

The same dataclasses describe a real graph (weights and constants are floats) and, after the pass
`quantize`, an integer one. Each is what the operation of the same name in the compiled program
computes; images are `[N, C, H, W]`, padding is `(top, left, bottom, right)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.compiler.graph.function import Function

Array = npt.NDArray[Any]
Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
Shape = tuple[int, ...]

NO_PADDING: Padding = (0, 0, 0, 0)
MASKED = 512.0
"""By how much elements that a softmax leaves out are lowered; `check_masks` sees to it that this is
enough."""
COEFFICIENT_BITS = 24
"""Fractional bits of a polynomial's coefficients and of its argument, on integers."""


@dataclass(frozen=True, eq=False)
class Conv2d:
    """`[N, C, H, W] -> [N, O, H', W']`; `weight` is `[O, C/groups, kh, kw]`, `bias` `[O]`."""

    weight: Array
    bias: Array | None
    stride: Pair = (1, 1)
    padding: Padding = NO_PADDING
    dilation: Pair = (1, 1)
    groups: int = 1


@dataclass(frozen=True, eq=False)
class Dense:
    """`[M, K] -> [M, N]`; `weight` is `[K, N]`, `bias` `[N]`."""

    weight: Array
    bias: Array | None


@dataclass(frozen=True, eq=False)
class Scale:
    """Elementwise product with a private constant of the input's full shape.

    `uniform` says that the model states one number for all elements. What passes decide may depend
    on that form of a constant, never on its values: decisions are public.
    """

    weight: Array
    uniform: bool = False


@dataclass(frozen=True, eq=False)
class AddConstant:
    """Sum with a private constant that broadcasts to the input's shape."""

    bias: Array


@dataclass(frozen=True, eq=False)
class ChannelAffine:
    """`x * factor + offset`, one factor and offset per index of axis 1 (batch normalisation).

    `uniform` says that the model states one number for all channels, as in `Scale`. Exists only
    until the pass `fold_batchnorm` has run.
    """

    factor: Array
    offset: Array | None
    uniform: bool = False


@dataclass(frozen=True)
class Add:
    """Sum of two values of equal shape."""


@dataclass(frozen=True)
class Sub:
    """Difference of two values of equal shape."""


@dataclass(frozen=True)
class Mul:
    """Product of two values of equal shape, element by element."""


@dataclass(frozen=True)
class MatMul:
    """`[B, M, K] x [B, K, N] -> [B, M, N]`, of two values."""


@dataclass(frozen=True)
class Elementwise:
    """A smooth function of each element on its own, in small steps.

    The passes `fit_polynomials` and `tabulate_functions` replace it, but for suite `stream`, where
    a party computes it in the clear (`privet.compiler.executor.function`).

    `nonnegative` says that no argument is negative, by how it is made.
    """

    function: Function
    nonnegative: bool = False


@dataclass(frozen=True)
class Piecewise:
    """A smooth function of each element by `2^index_bits` lines.

    Lines are over arguments from `low` to `low + 2^bits - 1`, integers at their scale. Below, the
    value is that of `low`; above, that of the last one, or if the function `rises`, it goes on like
    its argument. `nonnegative` says that no argument is below `low`, by how it is made. Slopes have
    as many fractional bits as a line has arguments (`privet.compiler.executor.piecewise`).
    """

    function: Function
    low: int
    bits: int
    index_bits: int
    rises: bool = False
    nonnegative: bool = False

    @property
    def step_bits(self) -> int:
        """The binary logarithm of the number of a line's arguments."""
        return self.bits - self.index_bits


@dataclass(frozen=True, eq=False)
class Polynomial:
    """`sum_k coefficients[k] T_k(x / bound)` of each element, with Chebyshev's T_k.

    Meant for `|x| <= bound`. On integers, coefficients and `x / bound` have `COEFFICIENT_BITS`
    fractional bits, and `bound` the scale of x (`privet.compiler.executor.polynomial`).
    """

    coefficients: Array
    bound: float

    @property
    def degree(self) -> int:
        """The degree: one less than there are coefficients."""
        return len(self.coefficients) - 1


@dataclass(frozen=True)
class Negate:
    """`-x`."""


@dataclass(frozen=True)
class ShiftLeft:
    """Times `2^bits` on the integers, which raises the scale; nothing on the reals."""

    bits: int


@dataclass(frozen=True)
class Truncate:
    """`floor(x / 2^bits)` on the integers, which lowers the scale; nothing on the reals.

    Suites on shares go on in a ring of `width` bits, if that is given.
    """

    bits: int
    width: int | None = None


@dataclass(frozen=True)
class Relu:
    """`max(x, 0)`."""


@dataclass(frozen=True)
class Saturate:
    """`x` kept between `low` and `high`, as a quantised form with such steps keeps it.

    Exists only until the pass `keep_saturations` has run.
    """

    low: float
    high: float
    step: float


@dataclass(frozen=True)
class Step:
    """1 where `x >= 0`, else 0; on integers `x` is a signed number of `bits` bits.

    The pass `move_truncation` sets `bits`.
    """

    bits: int


@dataclass(frozen=True)
class Leaves:
    """`[M, T (2^depth - 1)] -> [M, T 2^depth]`: 1 for the leaf that each complete tree ends in.

    A node goes left where `x >= 0`; on integers `x` is a signed number of `bits` bits. Nodes come
    level by level. The number of a node within level k has bit j set if the way to it goes right at
    level j, and the T trees are next to one another at each node; leaves are level `depth`.
    """

    bits: int
    depth: int


@dataclass(frozen=True, eq=False)
class Trees:
    """`[M, F] -> [M, C]`: the sum of the leaves that T decision trees end in, and `base` `[C]`.

    Node j of tree t is true where `x[feature] <= threshold`, or `<` where `strict`; all three are
    `[T, J]`, and a node without a feature (-1) is true. `values` `[T, L, C]` are the leaves'.
    A missing value makes every node false but those whose feature is counted from F on: a second
    copy of the features, in which a missing value makes every node true. Without `missing` no
    value may be missing.

    Either trees are complete, of depth `depth`, with nodes and leaves ordered as `Leaves` has them
    and true going left; or leaf l is reached where `offsets[t, l] + paths[t, l] @ nodes` is 0, a
    sum that is never negative. The pass `move_truncation` replaces it.
    """

    feature: Array
    threshold: Array
    strict: Array
    values: Array
    base: Array
    depth: int | None = None
    paths: Array | None = None
    offsets: Array | None = None
    missing: bool = True


@dataclass(frozen=True)
class MaxPool2d:
    """Maximum over the elements of each window that lie on the image; `size` is `(OH, OW)`."""

    kernel: Pair
    stride: Pair
    padding: Padding
    dilation: Pair
    size: Pair


@dataclass(frozen=True)
class AvgPool2d:
    """Sum over the elements of each window that lie on the image, times a public factor.

    `factors` has one entry, or one per output position in row-major order. They are reals until
    `quantize` has run, integers after. `size` is `(OH, OW)`.
    """

    kernel: Pair
    stride: Pair
    padding: Padding
    dilation: Pair
    size: Pair
    factors: tuple[float, ...]


@dataclass(frozen=True)
class Reshape:
    """The same elements, row-major, in another shape."""

    shape: Shape


@dataclass(frozen=True)
class Broadcast:
    """Numpy broadcasting to `shape`."""

    shape: Shape


@dataclass(frozen=True)
class Transpose:
    """Axis `i` of the output is axis `perm[i]` of the input."""

    perm: tuple[int, ...]


@dataclass(frozen=True)
class Slice:
    """Elements `start, start + step, ..` before `end` on every axis.

    Starts lie inside the axis; with a negative step, an end of -1 means down to the first element.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Concat:
    """Inputs joined along `axis`."""

    axis: int


@dataclass(frozen=True)
class Pad:
    """`before` and `after` elements of `constant` around each axis."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    constant: float


@dataclass(frozen=True)
class ArgMax:
    """Index of the largest element along `axis`; the first or, on request, the last of equals."""

    axis: int
    keepdims: bool
    select_last: bool


Operation = (
    Conv2d
    | Dense
    | Scale
    | AddConstant
    | ChannelAffine
    | Add
    | Sub
    | Mul
    | MatMul
    | Elementwise
    | Piecewise
    | Polynomial
    | Negate
    | ShiftLeft
    | Truncate
    | Relu
    | Saturate
    | Step
    | Leaves
    | Trees
    | MaxPool2d
    | AvgPool2d
    | Reshape
    | Broadcast
    | Transpose
    | Slice
    | Concat
    | Pad
    | ArgMax
)

LINEAR = (Conv2d, Dense, Scale)
"""Operations with private weights, whose output's scale is the input's plus the weights'."""


def real(array: Array) -> Array:
    """A constant of the model as floats: float32 stays, every other type becomes float64."""
    return array if array.dtype == np.float32 else array.astype(np.float64)
