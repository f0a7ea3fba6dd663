"""How Sphinx builds the documentation; `make docs` runs it from the repository's root."""

from __future__ import annotations

from pathlib import Path

from scripts.reference import assembled
from sphinx.application import Sphinx

import privet

project = "Privet"
html_title = f"Privet {privet.__version__}"
html_theme = "furo"
html_show_copyright = False
extensions = ["myst_parser"]
nitpicky = True
# Anchors as the common code hosts make them, so that a link is right in both places.
myst_heading_anchors = 4
highlight_language = "none"
# `make man`: the page of commands as privet(1).
man_pages: list[tuple[str, str, str, list[str], int]] = [
    ("reference/commands", "privet", "private predictions from ONNX models", [], 1)
]
smartquotes = False  # would make one dash of the two before an option


def setup(app: Sphinx) -> None:
    """Completes each page before it is read (`scripts.reference`)."""
    app.connect("source-read", _complete)


def _complete(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = assembled(Path(app.env.doc2path(name)), source[0])
