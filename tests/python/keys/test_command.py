"""`privet keys` as it is typed, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from privet.keys import fingerprint


def privet(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command with this interpreter, as the installed script does."""
    start = [sys.executable, "-c", "from privet.cli import main; main()"]
    return subprocess.run([*start, *arguments], capture_output=True, text=True, timeout=60)


def test_prints_for_people(tmp_path: Path) -> None:
    process = privet("keys", str(tmp_path / "keys"))
    assert process.returncode == 0, process.stderr
    assert "server.pem" in process.stdout
    assert "not kept" in process.stdout
    assert not (tmp_path / "keys" / "ca.key").exists()


def test_warns_about_a_kept_authority_key(tmp_path: Path) -> None:
    process = privet("keys", str(tmp_path), "--keep-ca-key")
    assert process.returncode == 0, process.stderr
    assert "move it away" in process.stdout
    assert (tmp_path / "ca.key").exists()


def test_prints_for_programs(tmp_path: Path) -> None:
    process = privet("keys", str(tmp_path), "--server-name", "model.example", "--json")
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    assert report["ca_key"] is None
    assert Path(report["ca"]) == tmp_path / "ca.pem"
    for party in ("server", "client"):
        certificate = Path(report[party]["certificate"])
        assert report[party]["fingerprint"] == fingerprint(certificate)


def test_refusal_for_people_goes_to_standard_error(tmp_path: Path) -> None:
    (tmp_path / "server.key").write_text("mine")
    process = privet("keys", str(tmp_path))
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.startswith("error: ")
    assert "server.key" in process.stderr
    assert "Traceback" not in process.stderr


def test_refusal_for_programs_is_one_object(tmp_path: Path) -> None:
    process = privet("keys", str(tmp_path), "--server-name", "no name", "--json")
    assert process.returncode == 2
    error = json.loads(process.stdout)["error"]
    assert error["type"] == "Misuse"
    assert "no name" in error["message"]


def test_a_failing_disk_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    process = privet("keys", str(tmp_path / "file" / "keys"))
    assert process.returncode == 1
    assert process.stderr.startswith("error: ")
    assert "Traceback" not in process.stderr
