"""Pages that are completed when the site is built: what code says, and links that stay right."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.reference import assembled, commands, modules, suites
from scripts.reference.pages import DOCS, GENERATED, ROOT, relinked

import privet
from privet.suites import DEFAULT, registry


def test_every_command_has_a_section_with_its_options() -> None:
    text = commands.reference()
    run = text.split("## `privet run`")[1].split("\n## ")[0]
    assert "--calibration" in run
    assert "## `privet zoo`" in text
    assert "### `privet zoo build`" in text


def test_every_public_name_has_a_section() -> None:
    text = modules.reference()
    for name in privet.__all__:
        assert name.startswith("_") or f"### `{name}`" in text
    assert "### `PeerMisbehaved`\n\nDerives from `PeerError`." in text


def test_a_signature_shows_types_by_their_last_names() -> None:
    def example(path: Path, *, limit: int | None = None) -> None:
        """Reads a file.

        # Errors
        None.
        """

    assert modules.entry("example", example) == (
        "### `example`\n\n```python\nexample(path: Path, *, limit: int | None = None)\n```\n\n"
        "Reads a file.\n\n**Errors.**\nNone."
    )


def test_a_page_asks_for_what_the_code_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.reference.pages.GENERATED", {"x": lambda: "today\n"})
    page = DOCS / "reference" / "page.md"
    assert assembled(page, "<!-- generated: x -->\nend\n").endswith("\ntoday\nend\n")
    with pytest.raises(KeyError):
        assembled(page, "<!-- generated: gone -->\n")
    lines = {text for path in DOCS.rglob("*.md") for text in path.read_text().splitlines()}
    assert {f"<!-- generated: {name} -->" for name in GENERATED} <= lines


def test_links_follow_a_file_to_its_page() -> None:
    text = "[a](docs/reference/modes.md#exact) [b](SECURITY.md) [`c`](scripts/lock.sh) [d](#here)\n"
    page = DOCS / "project" / "contributing.md"
    assert relinked(text, ROOT / "CONTRIBUTING.md", page) == (
        "[a](../reference/modes.md#exact) [b](security.md) `c` [d](#here)\n"
    )
    code = "```\n[a](docs/reference/modes.md)\n```\n"
    assert relinked(code, ROOT / "CONTRIBUTING.md", page) == code


def test_every_suite_has_its_promise_in_the_threat_model() -> None:
    assert suites.promises() in (ROOT / "SECURITY.md").read_text()


def test_the_readme_promises_what_the_suites_do() -> None:
    text = (ROOT / "README.md").read_text()
    assert f"<!-- table: assumptions -->\n{suites.assumptions()}<!-- end -->\n" in text
    section = text.partition("\n## What it promises\n")[2].partition("\n## ")[0]
    whole, less = section.replace("\n", " ").split("  ")[:2]
    assert "client and server both run the code as it is written and do not collude" in whole
    of_default = DEFAULT.trust
    assert of_default.adversary == "semi-honest client and server"
    assert of_default.collusion == "client and server must not collude"
    for suite_type in registry.all_suites():
        # Whose outputs are not the fixed-point model's, and who sees more than the prediction.
        assert (f"in suite `{suite_type.name}` they are approximate" in whole) == (
            not suite_type.exact
        )
        assert (f"suite `{suite_type.name}` (whose client" in less) == (
            suite_type().trust.revealed != of_default.revealed
        )
        for suite in suite_type.labelled():
            sentence = (
                f"`--suite {suite_type.name} --security malicious` a party that deviates is caught"
            )
            if "malicious" in suite.trust.adversary:
                assert sentence in less
            if "dealer" in suite.trust.collusion:
                assert "suites with a dealer (who must collude with neither side)" in less
            if "members" in suite.trust.adversary:
                assert f"In a cohort of suite `{suite_type.name}` several members" in less


def test_an_option_that_changes_a_promise_has_a_row() -> None:
    text = suites.reference()
    assert "| `security='malicious'` | malicious client and server |" in text
    for suite_type in registry.all_suites():
        assert f"## Suite `{suite_type.name}`" in text
