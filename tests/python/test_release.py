"""The check of a release: a whole bill, licences that are read, no green without a look."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts.release import advisories, licences
from scripts.release.bill import bill
from scripts.release.component import ROOT, Component, crates, packages
from scripts.release.reproduce import compare
from scripts.release.verdict import Verdict, exit_code

ALLOWED = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"}


def test_the_bill_has_the_crates_that_are_linked_and_what_a_user_installs() -> None:
    components = {(crate.name, crate.version): crate for crate in crates()}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    locks = {
        (package["name"], package["version"]): package.get("checksum", "") for package in locked
    }
    assert components.keys() <= locks.keys()
    assert all(crate.sha256 == locks[key] for key, crate in components.items())
    names = {name for name, _ in components}
    # Linked, a build dependency of what is linked, and one of tests alone.
    assert {"ring", "pyo3", "pyo3-build-config"} <= names
    assert "proptest" not in names
    installed = {package.name for package in packages()}
    assert {"numpy", "onnx", "grpcio", "multidict"} <= installed
    assert not {"pytest", "ray", "privet"} & installed


def test_the_bill_is_the_same_for_the_same_components() -> None:
    one = Component("cargo", "one", "1.0", "MIT", "ab" * 32)
    other = Component("pypi", "other", "2.0", "")
    document = bill("9.9", [one, other, one])
    assert document == bill("9.9", [other, one])
    content = json.loads(document)
    assert (content["bomFormat"], content["specVersion"]) == ("CycloneDX", "1.6")
    assert [component["purl"] for component in content["components"]] == [
        "pkg:cargo/one@1.0",
        "pkg:pypi/other@2.0",
    ]
    assert content["components"][0]["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert "licenses" not in content["components"][1]
    assert content["dependencies"][0]["dependsOn"] == [
        component["purl"] for component in content["components"]
    ]


@pytest.mark.parametrize(
    ("expression", "is_accepted"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("MIT OR GPL-3.0-only AND GPL-2.0-only", True),
        ("(MIT OR GPL-3.0-only) AND GPL-2.0-only", False),
        ("(MIT OR GPL-3.0-only) AND ISC", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
        ("", False),
        ("MIT MIT", False),
        ("(MIT", False),
    ],
)
def test_licences_are_read_as_expressions(expression: str, is_accepted: bool) -> None:
    assert licences.is_accepted(expression, ALLOWED) == is_accepted


def test_a_licence_that_is_not_accepted_is_named() -> None:
    parts = [Component("cargo", "good", "1", "MIT"), Component("cargo", "bad", "1", "GPL-3.0-only")]
    unknown = Component("pypi", "unknown", "1", "")
    assert licences.refused([*parts, unknown], ALLOWED) == [
        "pkg:cargo/bad@1: GPL-3.0-only",
        "pkg:pypi/unknown@1: no licence was found",
    ]
    assert "GPL-3.0-only" not in licences.accepted()


AUDITED = '{"dependencies": [{"name": "a", "version": "1", "vulns": []}%s], "fixes": []}'
FLAWED = ', {"name": "b", "version": "2", "vulns": [{"id": "X"}]}'
SKIPPED = ', {"name": "c", "skip_reason": "not found"}'


@pytest.mark.parametrize(
    ("check", "tool", "code", "says", "word"),
    [
        (advisories.cargo_deny, "cargo-deny", 0, "advisories ok", "passed"),
        (advisories.cargo_deny, "cargo-deny", 1, "error[vulnerability]", "failed"),
        (
            advisories.cargo_deny,
            "cargo-deny",
            1,
            "failed to fetch advisory database",
            "not checked",
        ),
        (advisories.crate_policy, "cargo-deny", 0, "licenses ok", "passed"),
        (advisories.crate_policy, "cargo-deny", 4, "licenses FAILED", "failed"),
        (advisories.govulncheck, "govulncheck", 0, "No vulnerabilities found.", "passed"),
        (advisories.govulncheck, "govulncheck", 3, "Your code is affected by 1", "failed"),
        (advisories.govulncheck, "govulncheck", 1, "fetching vulnerabilities", "not checked"),
        (advisories.pip_audit, "pip-audit", 0, AUDITED % "", "passed"),
        (advisories.pip_audit, "pip-audit", 1, AUDITED % FLAWED, "failed"),
        (advisories.pip_audit, "pip-audit", 0, AUDITED % SKIPPED, "not checked"),
        (advisories.pip_audit, "pip-audit", 1, AUDITED % (FLAWED + SKIPPED), "failed"),
        (advisories.pip_audit, "pip-audit", 0, '{"dependencies": []}', "not checked"),
        (advisories.pip_audit, "pip-audit", 1, "requests.exceptions", "not checked"),
    ],
)
def test_what_a_tool_says_is_read(
    check: Callable[[], Verdict],
    tool: str,
    code: int,
    says: str,
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "says").write_text(says + "\n")
    program = tmp_path / tool
    program.write_text(f"#!/bin/sh\n{shutil.which('cat')} {tmp_path / 'says'}\nexit {code}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    verdict = check()
    assert verdict.word == word, verdict


def test_a_tool_that_is_not_there_has_checked_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    verdicts = [check() for check in advisories.CHECKS]
    assert {verdict.word for verdict in verdicts} == {"not checked"}
    assert "cargo install" in str(verdicts[0])


def test_strict_means_that_nothing_is_unchecked() -> None:
    passed, unchecked, failed = Verdict.passed(""), Verdict.unchecked(""), Verdict.failed("")
    assert [exit_code([passed], strict) for strict in (False, True)] == [0, 0]
    assert [exit_code([passed, unchecked], strict) for strict in (False, True)] == [0, 1]
    assert [exit_code([unchecked, failed], strict) for strict in (False, True)] == [1, 1]
    assert compare(["a", "a"]).word == "passed"
    assert compare(["a", "b"]).word == "failed"
