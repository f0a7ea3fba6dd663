"""The README's generated part is current."""

from __future__ import annotations

from pathlib import Path

from privet.graph import operators_table

README = Path(__file__).parents[2] / "README.md"


def test_the_operators_table_is_the_registrys() -> None:
    assert operators_table().strip() in README.read_text(encoding="utf-8")
