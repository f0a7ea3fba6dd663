"""A party's certificate and key, and whom it trusts."""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from privet import _native
from privet.errors import Misuse
from privet.runtime.revocation import Revoked, refusing


class Credentials:
    """PEM files of one party: its certificate, its key, and the authority that it trusts.

    `digest` is a hash of what they held when they were read, and `authorities` are those in DER.
    """

    def __init__(
        self,
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
        trust: str | os.PathLike[str],
    ) -> None:
        self.files = (Path(certificate), Path(key), Path(trust))
        texts = self._texts = [_read(path) for path in self.files]
        self.native = _native.Credentials(*texts)
        self.authorities = _native.authorities(texts[2])
        self.digest = hashlib.sha256(b"\0".join(texts)).hexdigest()
        check_dates(self.files[0])

    @classmethod
    def from_directory(cls, directory: str | os.PathLike[str], role: str) -> Credentials:
        """The files that `privet keys` wrote into `directory` for `client`, `server`, `dealer`, or
        whom else it issued a certificate."""
        return cls(*(Path(directory) / name for name in _names(role)))

    def link_into(self, folder: Path, role: str) -> None:
        """Makes links to the files in `folder`, called as `from_directory` reads them."""
        for name, file in zip(_names(role), self.files, strict=True):
            (folder / name).symlink_to(file.resolve())

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate, as it was read, in hexadecimal."""
        return x509.load_pem_x509_certificates(self._texts[0])[0].fingerprint(SHA256()).hex()

    @contextmanager
    def kept(self, role: str) -> Iterator[Path]:
        """A folder meanwhile, as `from_directory` reads it, of what the files held when they were
        read: links into this process's memory, and no copy on the disk."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="privet-")))
            for name, text in zip(_names(role), self._texts, strict=True):
                memory = stack.enter_context(open(os.memfd_create(name), "wb"))
                memory.write(text)
                memory.flush()
                (folder / name).symlink_to(f"/proc/{os.getpid()}/fd/{memory.fileno()}")
            yield folder

    def tls(self, revoked: Revoked | None = None) -> ssl.SSLContext:
        """TLS 1.3 for a client of Python's own libraries: shows the certificate, and trusts only
        servers of the authority whose certificate carries the name that they are called by, and is
        not on the list of the `revoked`.

        # Errors
        `Misuse` if the files are no certificates, or do not fit each other.
        """
        context = self._context(ssl.PROTOCOL_TLS_CLIENT)
        if revoked is not None:
            context.sslobject_class = refusing(revoked)
        return context

    def tls_server(self) -> ssl.SSLContext:
        """TLS 1.3 for a server of Python's own libraries, which lets in only whom the authority has
        signed.

        # Errors
        As `tls`.
        """
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _context(self, protocol: int) -> ssl.SSLContext:
        certificate, key, trust = self.files
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            context.load_cert_chain(certificate, key)
            trust_authorities(context, trust)
        except (OSError, ssl.SSLError) as error:
            raise Misuse(f"{certificate} and {key} cannot be used: {error}") from error
        return context


def _names(role: str) -> tuple[str, str, str]:
    """What the files of a party are called in a folder."""
    return f"{role}.pem", f"{role}.key", "ca.pem"


def common_name(certificate: object) -> str | None:
    """The common name in what `getpeercert` of an SSL object tells."""
    subject = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if names else None


def check_dates(certificate: Path) -> None:
    """Raises `Misuse` unless a party's own certificate is valid now: its peers refuse it else."""
    try:
        leaf = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise Misuse(f"{certificate} cannot be read: {error}") from error
    now, first = datetime.now(UTC), leaf.not_valid_before_utc
    if now > leaf.not_valid_after_utc:
        raise Misuse(
            f"{certificate} expired on {leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC: get a new "
            "one from your authority, or make new ones by `privet keys`"
        )
    if now < first:
        raise Misuse(
            f"{certificate} is not valid before {first:%Y-%m-%d %H:%M} UTC: look at this machine's "
            "clock"
        )


def trust_authorities(context: ssl.SSLContext, path: str | os.PathLike[str]) -> None:
    """Has `context` accept certificates that the authorities in a PEM file issued, and no others.
    Raises `Misuse` if the file cannot be read, holds no certificate, or one that is not of an
    authority, whose holder could otherwise issue certificates for any name."""
    context.load_verify_locations(cadata=b"".join(authorities(path)))


def authorities(path: str | os.PathLike[str]) -> list[bytes]:
    """The certificates of authorities in a PEM file, each in DER. Raises what `trust_authorities`
    does."""
    return _native.authorities(_read(path))


def check_credentials(given: object) -> None:
    """Raises `Misuse` where something else, such as a path, is given in place of credentials."""
    if not isinstance(given, Credentials):
        raise Misuse(
            f"credentials are {given!r}: give privet.Credentials, such as those of "
            'privet.Credentials.from_directory("keys", "client")'
        )


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Misuse(
            f"{path} cannot be read ({error.strerror}): `privet keys DIR` makes certificates for a "
            "first try"
        ) from error
