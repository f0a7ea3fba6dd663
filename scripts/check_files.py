"""Checks that source files stay readable: none over 700 lines, none named `utils` or the like.

Exit code 1 and one line per offence.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_LINES = 700
SOURCE_SUFFIXES = {".c", ".go", ".h", ".md", ".py", ".pyi", ".rs", ".sh", ".toml"}
VAGUE_NAMES = {"common", "helper", "helpers", "misc", "util", "utils"}


def repository_files(root: Path) -> list[Path]:
    """Files that git tracks or would track, relative to `root`."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [
        path for name in listing.split("\0") if name and (root / (path := Path(name))).is_file()
    ]


def offences(root: Path, files: Iterable[Path]) -> Iterator[str]:
    """What is wrong with `files` (relative to `root`), one line each."""
    for path in files:
        if path.suffix not in SOURCE_SUFFIXES:
            continue
        vague = VAGUE_NAMES.intersection([*path.parts[:-1], path.stem])
        if vague:
            yield f"{path}: `{vague.pop()}` says nothing; name it after what it holds"
        lines = (root / path).read_bytes().count(b"\n")
        if lines > LIMIT_LINES:
            yield f"{path}: {lines} lines, {LIMIT_LINES} at most; split it at a seam"


def main() -> int:
    """Checks this repository."""
    files = repository_files(ROOT)
    offending = list(offences(ROOT, files))
    for offence in offending:
        print(offence, file=sys.stderr)
    if not offending:
        print(f"files: {len(files)} looked at, none too long or vaguely named")
    return 1 if offending else 0


if __name__ == "__main__":
    sys.exit(main())
