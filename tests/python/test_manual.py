"""The manual page privet(1), as `make man` writes it, has every command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from privet.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("reference", "commands.md")


def test_the_manual_names_every_command(tmp_path: Path) -> None:
    """Sphinx reads this page alone: with all of the site it takes a minute."""
    (tmp_path / "docs" / PAGE).parent.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / PAGE, tmp_path / "docs" / PAGE)
    command = [sys.executable, "-m", "sphinx", "--builder", "man", "--quiet"]
    command += ["-c", str(ROOT / "docs"), "-D", f"root_doc={PAGE.with_suffix('')}"]
    command += [str(tmp_path / "docs"), str(tmp_path / "man")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    page = (tmp_path / "man" / "privet.1").read_text(encoding="utf-8")
    lines = page.replace("\\-", "-").splitlines()
    assert lines[lines.index(".SH NAME") + 1] == "privet - private predictions from ONNX models"
    chapters = [
        line.removeprefix(".SH PRIVET ") for line in lines if line.startswith(".SH PRIVET ")
    ]
    assert chapters == [name.upper() for name in COMMANDS]
    for name, entry in COMMANDS.items():
        command_group = getattr(entry.load(name), "commands", {})
        for inner in command_group:
            assert f".SS \\fBprivet {name} {inner}\\fP" in lines
