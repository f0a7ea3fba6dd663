"""Whether the wheel comes out the same twice: built from nothing, Rust and Go, in two folders."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from .component import ROOT
from .verdict import Verdict


def wheel(folder: Path) -> Verdict:
    """Builds twice in `folder`, with the time of the last commit, and compares the bytes."""
    sums = []
    for turn in ("first", "second"):
        place = folder / turn
        # Nothing of an earlier build may be taken for a new one.
        shutil.rmtree(place, ignore_errors=True)
        (ROOT / ".venv" / ".ckks").unlink(missing_ok=True)
        environment = os.environ | {
            "CARGO_TARGET_DIR": str(place / "target"),
            "GOCACHE": str(place / "go"),
            "SOURCE_DATE_EPOCH": commit_time(),
        }
        command = ["make", "wheel", f"DIST={place / 'dist'}"]
        process = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if process.returncode:
            return Verdict.failed(process.stderr.strip()[-300:]).named("reproducible wheel")
        (archive,) = (place / "dist").glob("privet-*.whl")
        sums.append(hashlib.sha256(archive.read_bytes()).hexdigest())
        for output in ("target", "go"):
            shutil.rmtree(place / output, ignore_errors=True)
    return compare(sums).named("reproducible wheel")


def compare(sums: list[str]) -> Verdict:
    """What the hashes of two builds tell."""
    if len(set(sums)) == 1:
        return Verdict.passed(f"sha256 {sums[0]} twice")
    return Verdict.failed(f"two builds differ: {' and '.join(sums)}")


def commit_time() -> str:
    """When the last commit was made, in seconds since 1970; every file of the wheel gets it."""
    command = ["git", "log", "-1", "--format=%ct"]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return process.stdout.strip()
