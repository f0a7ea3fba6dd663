"""The operator's guide lists the options that there are."""

from __future__ import annotations

import pytest
from scripts.option_tables import PAGE, TABLES, rendered


def test_the_tables_of_options_are_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert rendered(text) == text, "run `python -m scripts.option_tables`"


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_table(name: str) -> None:
    assert f"<!-- {name} -->\n| Option |" in PAGE.read_text(encoding="utf-8")
