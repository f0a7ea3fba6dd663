"""Addresses, sizes and times as people give them: `localhost:7400`, `2GB`."""

from __future__ import annotations

import re

from privet.errors import Misuse

_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
YEAR_SECONDS = 31_536_000.0
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)")


def parse_size(size: int | str | None, subject: str = "memory") -> int | None:
    """Bytes of `subject`; None stays None. Raises `Misuse` if it is no positive size."""
    if size is None:
        return None
    match = _SIZE.fullmatch(str(size).strip())
    if match is None or match[2] not in _UNITS:
        raise Misuse(f"{size!r} is no size of {subject}, such as 2GB, 1500MB or 512MiB")
    count = int(float(match[1]) * _UNITS[match[2]])
    if count < 1:
        raise Misuse(f"{size!r} is no {subject} at all")
    return count


def check_seconds(seconds: float) -> None:
    """`Misuse` unless these are some seconds, and no more than a year."""
    if not 0 < seconds <= YEAR_SECONDS:
        raise Misuse(f"{seconds!r} is no time to wait: give seconds above 0, up to a year")


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; an IPv6 host is written in brackets. Raises `Misuse` if there
    is no host or no port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise Misuse(f"{text!r} is not HOST:PORT, such as localhost:7400 or [::1]:7400")
    return host.strip("[]"), int(port)
