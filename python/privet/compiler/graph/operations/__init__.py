"""The operations of a typed graph, one file for each kind.

A file says all that the compiler needs of an operation: shapes, reals, integers, bounds, and the
form in the program file. What suites make of it is in `crates/suites/src`. Each is what the
operation of the same name in the compiled program computes.
"""

from collections.abc import Iterator

from privet.compiler.graph.operations.arithmetic import Add, MatMul, Mul, Negate, Sub
from privet.compiler.graph.operations.comparison import ArgMax, Relu, Saturate, Step
from privet.compiler.graph.operations.constants import AddConstant, ChannelAffine, Scale
from privet.compiler.graph.operations.elementwise import Elementwise
from privet.compiler.graph.operations.linear import Conv2d, Dense
from privet.compiler.graph.operations.movement import (
    Broadcast,
    Concat,
    Movement,
    Pad,
    Reshape,
    Slice,
    Transpose,
)
from privet.compiler.graph.operations.operation import (
    NO_PADDING,
    Arithmetic,
    Array,
    Context,
    Operation,
    Padding,
    Pair,
    Shape,
    real,
)
from privet.compiler.graph.operations.piecewise import Piecewise
from privet.compiler.graph.operations.polynomial import COEFFICIENT_BITS, Polynomial
from privet.compiler.graph.operations.pooling import AvgPool2d, MaxPool2d, Pool
from privet.compiler.graph.operations.shifts import ShiftLeft, Truncate
from privet.compiler.graph.operations.trees import Leaves, Trees

MASKED = 512.0
"""By how much elements that a softmax leaves out are lowered; `check_masks` sees to it that this is
enough."""

BLOCKED = 1024.0
"""By how much a mask that is private lowers scores (`bound_masks`, `masks_hold`)."""

LINEAR = (Conv2d, Dense, Scale)
"""Operations with private weights, whose output's scale is the input's plus the weights'."""


def _subclasses(base: type[Operation]) -> Iterator[type[Operation]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _subclasses(kind)


OPERATIONS: dict[str, type[Operation]] = {
    kind.name: kind for kind in _subclasses(Operation) if kind.name
}
"""Those of the compiled program, by the names that they have there."""
