"""Where a party listens."""

from __future__ import annotations

from privet.errors import Misuse


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; an IPv6 host is written in brackets.

    # Errors
    `Misuse` if there is no host or no port.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise Misuse(f"{text!r} is not HOST:PORT, such as localhost:7400 or [::1]:7400")
    return host.strip("[]"), int(port)
