"""The version is the same wherever it is written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import privet

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_the_same_everywhere() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    version = workspace["package"]["version"]
    assert privet.__version__ == version
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    versions = {package["version"] for package in packages if package["name"].startswith("privet-")}
    assert versions == {version}
    released = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == version


def test_pages_name_the_version_of_the_protocol() -> None:
    source = (ROOT / "crates" / "runtime" / "src" / "session.rs").read_text()
    (version,) = re.findall(r"pub const VERSION: u16 = (\d+);", source)
    session = (ROOT / "docs" / "reference" / "protocols" / "session.md").read_text()
    assert f"at present {version}." in session
    changes = (ROOT / "CHANGELOG.md").read_text().partition("\n## [Unreleased]")[2]
    assert f"the version of the protocol is {version}," in changes
