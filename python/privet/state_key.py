"""The key that encrypts what a party keeps on its disk, from where its owner keeps it.

`PRIVET_STATE_KEY` says where: `file:PATH`, or `command:PROGRAM ARGUMENT ...`, which prints it.
Without the variable it is systemd's credential `privet-state-key`, if the unit has one. Wherever it
is from, it is 64 hexadecimal digits. Without a key files are plain, readable by their owner.

Worker processes inherit the variable and ask for themselves, so that no key is in a file or in the
arguments of a process.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from functools import lru_cache
from pathlib import Path

from privet.errors import Misuse

VARIABLE = "PRIVET_STATE_KEY"
CREDENTIAL = "privet-state-key"
DIGITS = 64
COMMAND_SECONDS = 60.0


def state_key() -> bytes | None:
    """The key's 32 bytes; None if this process has none. Raises `Misuse` if there should be one and
    it cannot be had."""
    source = os.environ.get(VARIABLE)
    if source:
        kind, _, value = source.partition(":")
        if kind == "file" and value:
            return _from_file(Path(value))
        if kind == "command" and value.strip():
            return _from_command(value)
        raise Misuse(f"{VARIABLE} is neither file:PATH nor command:PROGRAM")
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    if credentials and (Path(credentials) / CREDENTIAL).exists():
        return _from_file(Path(credentials) / CREDENTIAL)
    return None


def _from_file(path: Path) -> bytes:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise Misuse(f"the state key {path} cannot be read: {error.strerror}") from error
    return _parse(text, str(path))


@lru_cache(maxsize=4)
def _from_command(command: str) -> bytes:
    """Asks once in a process: a command may ask a service elsewhere."""
    try:
        process = subprocess.run(
            shlex.split(command), capture_output=True, check=True, timeout=COMMAND_SECONDS
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        # What the command printed may be part of a key.
        raise Misuse(f"the command of {VARIABLE} failed: {_reason(error)}") from None
    return _parse(process.stdout, f"the command of {VARIABLE}")


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer in {COMMAND_SECONDS:.0f} s"
    return str(error)


def _parse(text: bytes, source: str) -> bytes:
    digits = text.strip()
    try:
        key = bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        key = b""
    if len(digits) != DIGITS or len(key) != DIGITS // 2:
        raise Misuse(
            f"the state key of {source} is not {DIGITS} hexadecimal digits: "
            "`openssl rand -hex 32` makes one"
        )
    return key
