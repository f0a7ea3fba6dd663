"""State: tensors that one inference leaves to the next, such as keys and values of attention.

A decoder that was exported with a cache has an input `past_key_values.X` for each output
`present.X`. The output may have more rows than the input, along one axis: the last ones are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from privet.compiler.graph.operations import Shape, Slice

PAST = "past_key_values."
PRESENT = "present."


def state_pairs(inputs: Iterable[str], outputs: Iterable[str]) -> dict[str, str]:
    """The output that each input continues, by the names that exporters give them."""
    names = set(outputs)
    pairs = {name: PRESENT + name.removeprefix(PAST) for name in inputs if name.startswith(PAST)}
    return {name: output for name, output in pairs.items() if output in names}


def last_rows(past: Shape, present: Shape) -> Slice | None:
    """What brings an output of the shape `present` to that of its input; None if nothing need.

    Raises `ValueError` if shapes differ in more than the length of one axis.
    """
    if past == present:
        return None
    changed_axes = [
        i for i, (old, new) in enumerate(zip(past, present, strict=False)) if old != new
    ]
    if (
        len(past) != len(present)
        or len(changed_axes) != 1
        or present[changed_axes[0]] < past[changed_axes[0]]
    ):
        raise ValueError(f"it leaves {list(present)} where {list(past)} belongs")
    starts = tuple(new - old for old, new in zip(past, present, strict=True))
    return Slice(starts, present, (1,) * len(present))
