"""The supported operators as a Markdown table, the one that the documentation shows."""

from __future__ import annotations

from privet.compiler.graph.registry import supported_operators

HEAD = "| Operator | Opsets | Restrictions |"
RULE = "|---|---|---|"


def operators_table() -> str:
    """One row for each operator, by name; lines end in a newline."""
    rows = [HEAD, RULE]
    rows += [
        f"| `{row.name}`{_domain(row.domain)} | from {row.since} | {row.restrictions or 'none'} |"
        for row in supported_operators()
    ]
    return "\n".join(rows) + "\n"


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else f" ({domain})"
