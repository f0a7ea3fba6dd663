"""The zoo as a Markdown table, the one that `docs/reference/models.md` shows."""

from __future__ import annotations

from .catalog import describe, names, trained

HEAD = "| Name | Model | Source | Input | Weights | Parameters | Multiply-accumulates | ReLUs |"
RULE = "|---|---|---|---|---|---:|---:|---:|"


def table() -> str:
    """One row for each model, the trained ones first; lines end in a newline."""
    rows = [HEAD, RULE]
    for name in [*trained(), *names()]:
        entry = describe(name)
        shape = " x ".join(str(side) for side in entry.input_shape)
        rows.append(
            f"| `{name}` | {entry.title} | {entry.source} | {shape} | {entry.weights} "
            f"| {entry.parameters:,} | {entry.multiply_accumulates:,} | {entry.relus:,} |"
        )
    return "\n".join(rows) + "\n"
