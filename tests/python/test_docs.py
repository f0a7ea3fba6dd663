"""The documentation keeps its promises: links lead somewhere, and commands that it names exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.cli import app
from privet.suites import DEFAULT

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1\s*$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?(?:\S*/)?privet (.+)$")
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
NAMED_PAGE = re.compile(r"(?<![\w/-])docs/(?:[\w-]+/)*[\w-]+\.(?:md|html)\b")
CODE = ("*.py", "*.rs", "*.go", "*.toml", "*.sh", "Makefile")


def pages() -> list[Path]:
    """Every Markdown file of the repository."""
    return files("*.md")


def files(*patterns: str) -> list[Path]:
    """Files of the repository, by patterns of git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *patterns]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def missing_pages(text: str) -> list[str]:
    """Pages that code or its comments name by their path, and that are not there."""
    return [name for name in NAMED_PAGE.findall(text) if not (ROOT / name).is_file()]


def anchors(text: str) -> set[str]:
    """What `#...` may say to reach a heading of a page, by the rule of the common code hosts."""
    counts: dict[str, int] = {}
    slugs = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        label = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        plain = re.sub(r"[^\w\- ]", "", label.lower()).replace(" ", "-")
        count = counts.get(plain, 0)
        counts[plain] = count + 1
        slugs.add(f"{plain}-{count}" if count else plain)
    return slugs


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    text = page.read_text()
    broken = []
    for target in LINK.findall(CODE_SPAN.sub("", FENCE.sub("", text))):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = page.parent / path if path else page
        if not goal.exists() or (
            anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text())
        ):
            broken.append(target)
    return broken


def commands(text: str) -> Iterator[list[str]]:
    """The words after each `privet` that a page shows as code, on one line or continued."""
    lines = [line for fence in FENCE.finditer(text) for line in _joined(fence[0]).splitlines()]
    lines += [" ".join(span.split()) for _, span in CODE_SPAN.findall(FENCE.sub("", text))]
    for line in lines:
        match = COMMAND.match(line.strip())
        if match:
            yield shlex.split(re.sub(r"[\[\]|]", " ", match[1]), comments=True)


def _joined(text: str) -> str:
    return text.replace("\\\n", " ")


@cache
def usage(*path: str) -> str | None:
    """The help text of a command; None if there is no such command."""
    wide = {"COLUMNS": "200", "TERMINAL_WIDTH": "200", "NO_COLOR": "1", "TERM": "dumb"}
    result = CliRunner().invoke(app, [*path, "--help"], env=wide)
    return result.output if result.exit_code == 0 else None


def faults(words: list[str]) -> list[str]:
    """Names among the words of a command line that the command does not know."""
    path: list[str] = []
    rest = list(words)
    while "COMMAND [ARGS]" in (usage(*path) or "") and rest and not OPTION.match(rest[0]):
        path.append(rest.pop(0))
    text = usage(*path)
    if text is None:
        return [f"privet {' '.join(path)}"]
    options = set(OPTION.findall(text))
    if "--suite" in options:
        pairs = pairwise(rest)
        suite = next((name for word, name in pairs if word == "--suite"), DEFAULT.name)
        options |= set(OPTION.findall(usage(*path, "--suite", suite) or ""))
    flags = (word.partition("=")[0] for word in rest if OPTION.match(word))
    return [f"privet {' '.join([*path, option])}" for option in flags if option not in options]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    assert [fault for words in commands(page.read_text()) for fault in faults(words)] == []


def test_pages_that_code_names_exist() -> None:
    missing = {str(path): missing_pages(path.read_text()) for path in files(*CODE)}
    assert {path: names for path, names in missing.items() if names} == {}


def test_every_protocol_is_in_the_index() -> None:
    folder = ROOT / "docs" / "reference" / "protocols"
    index = (folder / "index.md").read_text()
    links = {target.partition("#")[0] for target in LINK.findall(index)}
    names = {link for link in links if not link.startswith("../")}
    assert {page.name for page in folder.glob("*.md")} - {"index.md"} == names


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A heading, with `code`\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[a](other.md) [b](other.md#a-heading-with-code) [c](other.md#twice-1) [d](#top)\n"
        "[e](gone.md) [f](other.md#gone) [g](#gone) [h](https://example.org/gone)\n"
        "`[i](gone.md)`\n\n```\n[j](gone.md)\n```\n"
    )
    assert broken_links(page) == ["gone.md", "other.md#gone", "#gone"]


def test_a_missing_page_is_found() -> None:
    path = "docs/" + "gone.md"
    assert missing_pages(f"// see {path} and docs/reference/operators.md, not x/{path}") == [path]


def test_an_unknown_command_or_option_is_found() -> None:
    text = (
        "`privet keys DIR --days 3`, `privet gone`, `privet keys --gone`, `privet zoo list|build`\n"
        "\n```\n$ .venv/bin/privet zoo build m1 \\\n    -o . --gone=1  # --a-comment\n"
        "privet --version\n```\nNot code: privet gone"
    )
    problems = [fault for words in commands(text) for fault in faults(words)]
    assert problems == ["privet zoo build --gone", "privet gone", "privet keys --gone"]
