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


def last_rows(before: Shape, after: Shape) -> Slice | None:
    """What brings an output of the shape `after` to that of its input; None if nothing need.

    Raises `ValueError` if shapes differ in more than the length of one axis.
    """
    if before == after:
        return None
    longer = [i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    if len(before) != len(after) or len(longer) != 1 or after[longer[0]] < before[longer[0]]:
        raise ValueError(f"it leaves {list(after)} where {list(before)} belongs")
    starts = tuple(new - old for old, new in zip(before, after, strict=True))
    return Slice(starts, after, (1,) * len(after))
