"""Known flaws of dependencies, by the tools that know them.

A tool that could not ask its database has checked nothing, whatever its exit code says: pip-audit
ends with 0 where it skipped every package. So each result is read, and what was not looked up
counts as not checked.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from .component import ROOT
from .verdict import Verdict

SECONDS = 300.0

INSTALL = {
    "cargo-deny": "cargo install --locked cargo-deny",
    "govulncheck": "go install golang.org/x/vuln/cmd/govulncheck@latest",
    "pip-audit": "pipx install pip-audit",
}


def cargo_deny() -> Verdict:
    """Crates, against RustSec's database."""
    return _query(
        "crates (cargo deny)",
        ["cargo-deny", "check", "advisories"],
        ROOT,
        lambda code, text: (
            _unreachable(text)
            if "failed to fetch advisory database" in text
            else _tool_verdict(code, text)
        ),
    )


def crate_policy() -> Verdict:
    """Licences and sources of all crates, as deny.toml accepts them; needs no database."""
    command = ["cargo-deny", "--offline", "check", "licenses", "bans", "sources"]
    return _query("crates' policy (cargo deny)", command, ROOT, _policy)


def _policy(code: int, text: str) -> Verdict:
    return Verdict.failed(_last(text)) if code else Verdict.passed(_last(text))


def govulncheck() -> Verdict:
    """Go's own code and modules, against Go's database."""

    def read(code: int, text: str) -> Verdict:
        if code in (0, 3):
            return _tool_verdict(code, text)
        return _unreachable(text)

    return _query("Go modules (govulncheck)", ["govulncheck", "./..."], ROOT / "ckks", read)


def pip_audit() -> Verdict:
    """Python packages that are locked, against PyPI's database."""

    def read(code: int, text: str) -> Verdict:
        start = text.find('{"dependencies"')
        if start < 0:
            return _unreachable(text)
        report, _ = json.JSONDecoder().raw_decode(text[start:])
        packages = report["dependencies"]
        skipped = [package["name"] for package in packages if "skip_reason" in package]
        flawed = [
            f"{package['name']} {package['version']}"
            for package in packages
            if package.get("vulns")
        ]
        if flawed:
            return Verdict.failed("flaws are known of " + ", ".join(flawed))
        if skipped or not packages:
            count = f"{len(skipped)} of {len(packages)} packages"
            return Verdict.unchecked(f"{count} could not be looked up: database unreachable")
        return _tool_verdict(code, text)

    lock = ["--disable-pip", "--require-hashes", "--requirement", "requirements.txt"]
    command = ["pip-audit", *lock, "--format", "json"]
    return _query("Python packages (pip-audit)", command, ROOT, read)


CHECKS = (crate_policy, cargo_deny, govulncheck, pip_audit)


def _query(
    title: str, command: list[str], folder: Path, parse: Callable[[int, str], Verdict]
) -> Verdict:
    tool = command[0]
    if shutil.which(tool) is None:
        return Verdict.unchecked(f"there is no {tool}: {INSTALL[tool]}").named(title)
    try:
        process = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict.unchecked(f"{tool} did not end in {SECONDS:.0f} s").named(title)
    return parse(process.returncode, process.stdout + process.stderr).named(title)


def _tool_verdict(code: int, text: str) -> Verdict:
    return Verdict.failed(_last(text)) if code else Verdict.passed("no known flaws")


def _unreachable(text: str) -> Verdict:
    return Verdict.unchecked(f"database unreachable: {_last(text)}")


def _last(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
