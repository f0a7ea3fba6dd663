"""Certificates that let nobody in any more: a list that is read again when it changes.

A file of SHA-256 fingerprints, one a line, as `privet` prints them for clients or as `openssl`
does, with a title before `=`; `#` begins a comment. Whoever asks looks at the file's times and size
first, so a line that is added counts from the next question on, also for peers that are connected.
A file that cannot be read, or has another line, refuses everybody until it is mended: who edits
such a list wants fewer peers, not more.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from privet.errors import Misuse

T = TypeVar("T")

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")

REVOKED_CODE = 23
"""OpenSSL's code of a certificate that was revoked (`X509_V_ERR_CERT_REVOKED`)."""

_log = logging.getLogger(__name__)


class Reread(Generic[T]):
    """What `parse` makes of the file `path`, as it is now. May be used from any thread."""

    def __init__(self, path: str | os.PathLike[str], parse: Callable[[Path], T]) -> None:
        self._path = Path(path)
        self._parse = parse
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._value: T | None = None
        self._problem: Misuse | None = None

    def value(self) -> T:
        """The contents. Raises `Misuse` as `parse`, as long as the file is as it is."""
        with self._lock:
            stamp = self._look()
            if stamp is None or stamp != self._stamp:
                self._read(stamp)
            if self._problem is not None:
                raise self._problem
            assert self._value is not None
            return self._value

    def _look(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev

    def _read(self, stamp: tuple[int, ...] | None) -> None:
        last_problem = self._problem
        try:
            self._value, self._problem = self._parse(self._path), None
        except Misuse as problem:
            self._problem = problem
            if last_problem is None or str(last_problem) != str(problem):
                _log.error("nobody is let in: %s", problem)
        else:
            if self._stamp is not None:
                _log.info("read again", extra={"file": str(self._path)})
        self._stamp = stamp


class Revoked:
    """The list at `path`; without one nobody is refused. Raises `Misuse` if the file cannot be
    read, or has another line."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._list = None if path is None else Reread(path, read_fingerprints)
        if self._list is not None:
            self._list.value()

    def refuses(self, client: str) -> str | None:
        """Why the peer of this fingerprint may ask nothing now; None if it may."""
        if self._list is None:
            return None
        if not _FINGERPRINT.fullmatch(client):
            return "it showed no certificate"
        try:
            is_revoked = client in self._list.value()
        except Misuse:
            return "the list of revoked certificates cannot be read here: nobody is let in"
        return "this certificate was revoked" if is_revoked else None


def refusing(revoked: Revoked) -> type[ssl.SSLObject]:
    """For `SSLContext.sslobject_class`: connections whose handshake fails, as for another reason
    that OpenSSL has, if the peer's certificate is on the list."""

    class Refusing(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            fingerprint = hashlib.sha256(self.getpeercert(binary_form=True) or b"").hexdigest()
            if (why := revoked.refuses(fingerprint)) is not None:
                error = ssl.SSLCertVerificationError(1, why)
                error.verify_code, error.verify_message = REVOKED_CODE, why
                raise error

    return Refusing


def read_fingerprints(path: Path) -> frozenset[str]:
    """Fingerprints from a file, one a line. Raises `Misuse` if it cannot be read, or a line is
    something else; the error names the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise Misuse(f"the revoked certificates in {path} cannot be read: {error}") from error
    texts = {
        number: line.rpartition("=")[2].strip().replace(":", "").lower()
        for number, line in enumerate((line.partition("#")[0] for line in lines), 1)
        if line.strip()
    }
    for number, text in texts.items():
        if not _FINGERPRINT.fullmatch(text):
            raise Misuse(
                f"{path}, line {number}: needs a certificate's SHA-256 in 64 hexadecimal digits"
            )
    return frozenset(texts.values())
