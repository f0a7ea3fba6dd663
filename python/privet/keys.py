"""A private certificate authority and one certificate per party, for a first try of Privet.

The parties speak TLS 1.3 and each shows a certificate of the same small authority. `make`
issues them: ECDSA on P-256, X.509 version 3, valid for 90 days. The authority's key signs these
certificates and is then forgotten, so that nobody can issue another; `keep_ca_key` writes it for
those who want more clients, and then it belongs on another machine. For a lasting service use
the certificate authority you already run: Privet asks only for the key usages set here.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from privet.errors import Misuse

ALWAYS_NAMED = ("localhost", "127.0.0.1", "::1")
"""Names every server certificate carries: this machine."""

OPERATOR_NAME = "privet operator"
"""Common name in an operator's certificate, by which a service knows one."""

DEALER_NAME = "privet-dealer"
"""The only name in a dealer's certificate, so that no server can pass for the dealer."""

ROLES = ("server", "client", "dealer", "operator")
"""Parties that `make` issues a certificate for, besides members of a cohort."""

VALIDITY_DAYS = 90
CLOCK_SKEW = timedelta(minutes=5)
_HOST = re.compile(
    r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
)


@dataclass(frozen=True)
class KeyPaths:
    """Files that `make` writes. All are PEM; the keys are PKCS#8 with mode 0600.

    The server host needs `ca`, `server_certificate` and `server_key`; the client host `ca`,
    `client_certificate` and `client_key`; a dealer, where there is one, `ca`,
    `dealer_certificate` and `dealer_key`; who watches over a service `ca`, `operator_certificate`
    and `operator_key`. `ca_key` is None unless it was asked for.
    """

    ca: Path
    server_certificate: Path
    server_key: Path
    client_certificate: Path
    client_key: Path
    dealer_certificate: Path
    dealer_key: Path
    operator_certificate: Path
    operator_key: Path
    ca_key: Path | None = None

    @classmethod
    def below(cls, directory: Path, *, ca_key: bool = False) -> KeyPaths:
        """The paths that `make` uses in `directory`, whether or not they exist."""
        certificates = {f"{role}_certificate": directory / f"{role}.pem" for role in ROLES}
        keys = {f"{role}_key": directory / f"{role}.key" for role in ROLES}
        authority_key = directory / "ca.key" if ca_key else None
        return cls(ca=directory / "ca.pem", ca_key=authority_key, **certificates, **keys)

    def of(self, role: str) -> tuple[Path, Path]:
        """The certificate and the key of one of `ROLES`."""
        return getattr(self, f"{role}_certificate"), getattr(self, f"{role}_key")

    def all(self) -> list[Path]:
        """Every path, in the order in which the files are written."""
        paths = [self.ca, *(path for role in ROLES for path in self.of(role))]
        return [*paths, self.ca_key] if self.ca_key else paths


@dataclass(frozen=True)
class _Identity:
    """A certificate and the key that goes with it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make(
    directory: Path | str,
    names: Iterable[str] = (),
    *,
    days: int = VALIDITY_DAYS,
    keep_ca_key: bool = False,
    force: bool = False,
    members: int = 0,
) -> KeyPaths:
    """Writes a new authority, and certificates for server, client, dealer and operator.

    `names` are host names or IP addresses under which clients reach the server, besides
    `ALWAYS_NAMED`. `directory` is created with mode 0700 if it is missing. With `force`, files of
    an earlier run are replaced, a kept authority key among them. `members` of a cohort in suite
    `ckks` get `member-0.pem`, `member-0.key` and so on, each under its own name.

    Raises:
        Misuse: a name is no host name and no address, `days` is not in 1 to 825, or a file
            exists already and `force` is not set; nothing has been written then.
    """
    if not 1 <= days <= 825:
        raise Misuse(f"a certificate is valid for 1 to 825 days, not {days}")
    subjects = _subjects([*ALWAYS_NAMED, *names])
    directory = Path(directory)
    paths = KeyPaths.below(directory, ca_key=keep_ca_key)
    before = [path for path in KeyPaths.below(directory, ca_key=True).all() if _present(path)]
    before += sorted(directory.glob("member-*.*"))
    if before and not force:
        existing = ", ".join(path.name for path in before)
        raise Misuse(
            f"{directory} already holds {existing}; choose another directory, or replace them with "
            "--force"
        )

    authority = _authority(days)
    serves, asks = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
    parties = {
        # A server asks a dealer under the certificate that its clients know it by.
        "server": _issue(authority, "privet server", [serves, asks], subjects),
        "client": _issue(authority, "privet client", [asks], []),
        "dealer": _issue(authority, "privet dealer", [serves], [x509.DNSName(DEALER_NAME)]),
        "operator": _issue(authority, OPERATOR_NAME, [asks], []),
    }
    for index in range(members):
        parties[f"member-{index}"] = _issue(authority, certified(f"member {index}"), [asks], [])

    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in before:
        path.unlink()
    _write(paths.ca, _certificate_pem(authority), 0o644)
    for role, identity in parties.items():
        _write_identity(directory, role, identity)
    if paths.ca_key:
        _write(paths.ca_key, _key_pem(authority), 0o600)
    return paths


def certified(party: str) -> str:
    """The common name in the certificate of a party that others rely on."""
    return f"privet {party}"


def issue(directory: Path | str, name: str, *, days: int = VALIDITY_DAYS) -> tuple[Path, Path]:
    """Writes `NAME.pem` and `NAME.key` for another client, signed by the `ca.key` kept there.

    The certificate's common name is `name`, and it ends with its authority's at the latest.

    Raises:
        Misuse: `name` is no plain name, its files exist, or there is no authority's key.
    """
    directory = Path(directory)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise Misuse(f"{name!r} cannot name a client: letters, digits and ._-, at most 64")
    if re.fullmatch(r"[0-9A-Fa-f]{64}", name):
        raise Misuse(f"{name} cannot name a client: it reads as the fingerprint of a certificate")
    if not 1 <= days <= 825:
        raise Misuse(f"a certificate is valid for 1 to 825 days, not {days}")
    if any(_present(directory / f"{name}.{suffix}") for suffix in ("pem", "key")):
        raise Misuse(f"{directory} already holds {name}.pem or {name}.key")
    authority = _load_identity(KeyPaths.below(directory, ca_key=True))
    asks = ExtendedKeyUsageOID.CLIENT_AUTH
    client = _issue(authority, name, [asks], [], ends=datetime.now(UTC) + timedelta(days=days))
    return _write_identity(directory, name, client)


def _load_identity(paths: KeyPaths) -> _Identity:
    """The authority whose key was kept."""
    try:
        certificate = x509.load_pem_x509_certificate(paths.ca.read_bytes())
        key = serialization.load_pem_private_key((paths.ca_key or paths.ca).read_bytes(), None)
    except (OSError, ValueError) as error:
        raise Misuse(
            f"{paths.ca_key} cannot be used ({error}): it is there only if the authority was made "
            "with --keep-ca-key"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Misuse(f"{paths.ca_key} is no key that `privet keys` made")
    return _Identity(certificate, key)


def fingerprint(certificate: Path) -> str:
    """SHA-256 of a PEM certificate's DER form, in hexadecimal: how Privet names a peer."""
    x509_certificate = x509.load_pem_x509_certificate(certificate.read_bytes())
    return x509_certificate.fingerprint(hashes.SHA256()).hex()


def _present(path: Path) -> bool:
    return os.path.lexists(path)


def _subjects(names: Sequence[str]) -> list[x509.GeneralName]:
    """Alternative names in the order given, each once."""
    subjects = dict.fromkeys(_subject(name) for name in names)
    return list(subjects)


def _subject(name: str) -> x509.GeneralName:
    with contextlib.suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(name.strip("[]")))
    if not _HOST.fullmatch(name.lower()):
        raise Misuse(
            f"{name!r} is neither a host name nor an IP address; "
            "give it without scheme or port, international names in their xn-- form"
        )
    if name.lower() == DEALER_NAME:
        raise Misuse(
            f"{DEALER_NAME} is the dealer's name: a server of that name could stand in for it"
        )
    return x509.DNSName(name.lower())


def _authority(days: int) -> _Identity:
    """A self-signed authority that may sign end certificates and no further authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "privet authority")])
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Identity(certificate, key)


def _issue(
    authority: _Identity,
    common_name: str,
    purposes: Sequence[x509.ObjectIdentifier],
    subjects: Sequence[x509.GeneralName],
    ends: datetime | None = None,
) -> _Identity:
    """An end certificate for these `purposes`, valid exactly as long as its authority, or until it
    `ends` before that."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(min(filter(None, [ends, issuer.not_valid_after_utc])))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    if subjects:
        builder = builder.add_extension(x509.SubjectAlternativeName(subjects), critical=False)
    return _Identity(builder.sign(authority.key, hashes.SHA256()), key)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """An authority signs certificates, a party signs handshakes; neither does anything else."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _certificate_pem(identity: _Identity) -> bytes:
    return identity.certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(identity: _Identity) -> bytes:
    return identity.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    """Creates `path`, which must not exist, readable by nobody else before `mode` is set."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)


def _write_identity(directory: Path, name: str, identity: _Identity) -> tuple[Path, Path]:
    """Writes `NAME.pem` and `NAME.key`."""
    certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
    _write(certificate, _certificate_pem(identity), 0o644)
    _write(key, _key_pem(identity), 0o600)
    return certificate, key
