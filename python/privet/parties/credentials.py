"""A party's certificate and key, and whom it trusts."""

from __future__ import annotations

import os
from pathlib import Path

from privet import _native
from privet.errors import Misuse


class Credentials:
    """PEM files of one party: its certificate, its key, and the authority that it trusts."""

    def __init__(
        self,
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
        trust: str | os.PathLike[str],
    ) -> None:
        texts = [_read(path) for path in (certificate, key, trust)]
        self.native = _native.Credentials(*texts)

    @classmethod
    def from_directory(cls, directory: str | os.PathLike[str], role: str) -> Credentials:
        """The files that `privet keys` wrote into `directory` for `client`, `server`, `dealer`, or
        whom else it issued a certificate."""
        folder = Path(directory)
        return cls(folder / f"{role}.pem", folder / f"{role}.key", folder / "ca.pem")


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Misuse(
            f"{path} cannot be read ({error.strerror}): `privet keys DIR` makes certificates for a "
            "first try"
        ) from error
