"""Keys of two authorities that replace each other, and processes that are told to read them."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.processes import SOON, Running

from privet import keys as certificates


def until(look: Callable[[], Any]) -> Any:
    """What `look` gives once that is something."""
    end = time.monotonic() + SOON
    while not (result := look()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return result


@dataclass(frozen=True)
class Rotation:
    """Keys of two authorities. `old` and `new` are of one each, and trust both; `folder` is what a
    process reads, and begins as `old`."""

    folder: Path
    old: Path
    new: Path

    def put(self, keys: Path, *trusted: Path) -> None:
        """Puts these keys in place, which trust the authorities of some (both by default)."""
        for path in keys.iterdir():
            if path.name not in ("ca.pem", "own.pem"):
                shutil.copy(path, self.folder)
        self.trust(self.folder, *(trusted or (self.old, self.new)))

    def trust(self, folder: Path, *trusted: Path) -> None:
        """Has the keys in a folder trust the authorities of these."""
        texts = [(keys / "own.pem").read_text() for keys in trusted]
        (folder / "ca.pem").write_text("".join(texts))

    def shown(self, keys: Path, party: str) -> str:
        """The fingerprint of a party's certificate."""
        return certificates.fingerprint(keys / f"{party}.pem")


@pytest.fixture
def rotation(tmp_path: Path) -> Rotation:
    """Two authorities whose parties trust both."""
    folders = Rotation(tmp_path / "keys", tmp_path / "old", tmp_path / "new")
    for keys in (folders.old, folders.new):
        certificates.make(keys, members=2)
        shutil.move(keys / "ca.pem", keys / "own.pem")
    for keys in (folders.old, folders.new):
        folders.trust(keys, folders.old, folders.new)
    folders.folder.mkdir()
    folders.put(folders.old)
    return folders


@dataclass
class Log:
    """The log of a process that is told to read its files again."""

    path: Path

    def hangup(self, process: Running, message: str) -> dict[str, Any]:
        """Sends SIGHUP; the line of the log that says what came of it."""
        offset = len(self.path.read_bytes())
        process.process.send_signal(signal.SIGHUP)

        def line() -> dict[str, Any] | None:
            for text in self.path.read_bytes()[offset:].splitlines():
                with contextlib.suppress(ValueError):
                    entry: dict[str, Any] = json.loads(text)
                    if message in entry["message"]:
                        return entry
            return None

        return until(line)  # type: ignore[no-any-return]


READ, NOT_READ = "certificates were read again", "nothing was read again"
