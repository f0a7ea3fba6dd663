"""The list of masks as a Markdown table, for `docs/reference/masks.md`."""

from __future__ import annotations

from collections.abc import Sequence

from .masks import Mask


def table(masks: Sequence[Mask]) -> str:
    rows = ["| Name | Mask | Mutant | Caught by |", "|---|---|---|---|"]
    rows += [
        f"| `{mask.id}` | {_cell(mask.mask)} | {_cell(mask.mutant)} | `{mask.caught_by}` |"
        for mask in masks
    ]
    return "\n".join(rows)


def count(masks: Sequence[Mask]) -> str:
    """How many there are, as a sentence."""
    right = sum(mask.still_right is not None for mask in masks)
    return f"{len(masks)} masks are removed; in {right} cases the results stay right."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
