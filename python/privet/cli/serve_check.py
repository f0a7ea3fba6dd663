"""What `privet serve --check` looks at before anything is compiled or served."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from privet.errors import Misuse
from privet.runtime.quantities import split_address
from privet.state_key import state_key

if TYPE_CHECKING:
    from privet.service.repository import Models


def check(
    source: Models,
    addresses: Sequence[tuple[str, int]],
    *,
    state: Path,
    audit: Path | None,
    dealer: str | None,
) -> None:
    """Raises `Misuse` or `OSError` with what would keep a service from its models' configuration,
    its dealer, its state with the key to it, its audit log or its addresses. Makes nothing."""
    for name in source.names():
        source.read(name)
    if dealer is not None:
        split_address(dealer)
    state_key()
    _check_folder(state, "the state directory")
    if audit is not None and not audit.exists():
        if not audit.parent.is_dir():
            raise Misuse(f"the audit log {audit} cannot be opened: its folder is not there")
        _check_folder(audit.parent, "the folder of the audit log")
    elif audit is not None and not os.access(audit, os.R_OK | os.W_OK):
        raise Misuse(f"the audit log {audit} cannot be opened: this user may not write it")
    _check_addresses(addresses)


def _check_folder(folder: Path, name: str) -> None:
    """Whether files can be made in a folder, or in the one above it that is there."""
    near = folder.absolute()
    while not near.exists():
        near = near.parent
    if not near.is_dir() or not os.access(near, os.W_OK | os.X_OK):
        raise Misuse(f"{name} {folder} cannot be written: this user may make no files in {near}")


def _check_addresses(addresses: Sequence[tuple[str, int]]) -> None:
    """Whether all addresses can be had, at the same time."""
    with ExitStack() as stack:
        for place, (host, port) in enumerate(addresses):
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            try:
                stack.enter_context(socket.create_server((host, port), family=family))
            except OSError as error:
                is_own = port in {used_port for _, used_port in addresses[:place]}
                if error.errno != errno.EADDRINUSE or not is_own:
                    raise
                raise Misuse(
                    f"{host}:{port} is to serve for two things: the control plane, probes and each "
                    "worker need a port of their own"
                ) from error
