"""The tables of `config.toml`'s options in docs/reference/config.md, from the code that reads it.

`python -m scripts.option_tables` writes them between the page's markers; a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path

from privet.service.repository import Limits, ModelConfig
from privet.service.schema import table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "config.md"

TABLES = {"config": ModelConfig, "limits": Limits}


def rendered(page: str) -> str:
    """The page with current tables."""
    for name, of in TABLES.items():
        marker = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        page = re.sub(marker, rf"\g<1>{_escaped(table(of))}\g<2>", page, count=1, flags=re.DOTALL)
    return page


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
