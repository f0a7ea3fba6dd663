"""The page of models has a row for each family in each suite; nothing is measured again."""

from __future__ import annotations

from benches.families import PAGE, SUITES, families, table


def test_the_page_has_a_row_for_each_family_in_each_suite() -> None:
    rows = [line.split(" | ") for line in table(PAGE.read_text(encoding="utf-8"))]
    expected = []
    for family in families():
        name = (
            family.name
            if family.reveal == "outputs"
            else f"{family.name}, `--reveal {family.reveal}`"
        )
        expected += [(f"| {name}", family.exporter, f"`{suite}`") for suite in SUITES]
    assert [tuple(row[:3]) for row in rows] == expected
    assert all(len(row) == 8 and all(cell.strip() for cell in row) for row in rows)
