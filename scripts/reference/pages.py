"""The source of a page of the site, from the file in `docs` that stands for it.

Two comments in a page ask for more than the file holds. `<!-- generated: NAME -->` is followed by
what the code says today (`GENERATED`). `<!-- file: PATH -->` stands for a file of the repository's
root, whose links are then the page's. Links to such a file lead to its page, and links to anything
else outside `docs` become plain text, since a site has no sources.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.reference import commands, modules, suites

from privet.service.repository import ModelConfig, ModelLimits
from privet.service.schema import table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

GENERATED: Mapping[str, Callable[[], str]] = {
    "commands": commands.reference,
    "config": lambda: table(ModelConfig),
    "limits": lambda: table(ModelLimits),
    "modules": modules.reference,
    "suites": suites.reference,
}

ROOT_PAGES = {
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "project/security.md",
}
"""Files of the repository's root and the pages of `docs` that show them."""

_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_MADE = re.compile(r"<!-- generated: ([a-z-]+) -->\n")
_FILE = re.compile(r"\A<!-- file: (\S+) -->\n")


def assembled(page: Path, text: str) -> str:
    """The whole source of `page`, a file below `docs` that holds `text`."""
    origin = page
    if stands_for := _FILE.match(text):
        origin = ROOT / stands_for[1]
        text = origin.read_text(encoding="utf-8")
    text = _MADE.sub(lambda match: match[0] + "\n" + GENERATED[match[1]](), text)
    return relinked(text, origin, page)


def relinked(text: str, origin: Path, page: Path) -> str:
    """The text of the file `origin` with links that are right in the site's page `page`."""
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_mended(text[end : fence.start()], origin, page), fence[0]]
        end = fence.end()
    return "".join([*parts, _mended(text[end:], origin, page)])


def _mended(text: str, origin: Path, page: Path) -> str:
    return _LINK.sub(lambda link: _link(link[1], link[2], origin, page), text)


def _link(text: str, target: str, origin: Path, page: Path) -> str:
    path, mark, anchor = target.partition("#")
    if not path or re.match(r"[a-z][a-z0-9+.-]*:", target):
        return f"[{text}]({target})"
    goal = Path(os.path.normpath(origin.parent / path))
    if goal.is_relative_to(ROOT) and str(goal.relative_to(ROOT)) in ROOT_PAGES:
        goal = DOCS / ROOT_PAGES[str(goal.relative_to(ROOT))]
    if not goal.is_relative_to(DOCS):
        return text
    return f"[{text}]({os.path.relpath(goal, page.parent)}{mark}{anchor})"
