"""Whose certificates still stand after the trusted authorities have changed.

A handshake judges a peer by the authorities of its moment. Where one of them is trusted no more,
whoever holds a connection from before is judged once more here, by the certificates that the peer
showed.
"""

from __future__ import annotations

import hashlib
import ssl
import sys
from collections.abc import Iterable, Sequence

from cryptography import x509

MOST_CERTIFICATES = 10
"""Of a peer's chain that are looked at: it may send any number."""


class PeerTrust:
    """The authorities that are trusted now, each in DER. May be used from any thread.

    An authority that cannot be read vouches for nobody here. Dates, and limits that an authority
    has put on those between it and a peer, are left to handshakes.
    """

    def __init__(self, authorities: Iterable[bytes] = ()) -> None:
        self._state = _read_all(authorities), False

    def renew(self, authorities: Iterable[bytes]) -> None:
        """Trusts these from now on."""
        (previous, taken_out), current = self._state, _read_all(authorities)
        self._state = current, taken_out or not previous.keys() <= current.keys()

    def refuses(self, chain: Sequence[bytes]) -> str | None:
        """Why the peer that showed these certificates (in DER, its own first, and accepted by its
        handshake) is trusted no more; None if it is. Nobody is judged as long as no authority was
        taken out."""
        authorities, taken_out = self._state
        if not taken_out or _stands(
            chain, [authority for authority in authorities.values() if authority is not None]
        ):
            return None
        return "the authority of this certificate is trusted no more"


def chain_of(link: ssl.SSLObject) -> list[bytes]:
    """The certificates that the peer of a connection showed, each in DER, its own first. A
    connection that goes on with the keys of an earlier one knows the peer's own alone."""
    if sys.version_info >= (3, 13):
        chain = link.get_unverified_chain()
    else:
        certificates = link._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
        chain = [
            ssl.PEM_cert_to_DER_cert(certificate.public_bytes())
            for certificate in certificates or ()
        ]
    leaf = link.getpeercert(binary_form=True)
    return chain or ([] if leaf is None else [leaf])


def fingerprint_of(chain: Sequence[bytes]) -> str:
    """The SHA-256 of a peer's own certificate, in hexadecimal; empty if it showed none."""
    return hashlib.sha256(chain[0]).hexdigest() if chain else ""


def _stands(chain: Sequence[bytes], authorities: Sequence[x509.Certificate]) -> bool:
    certificates = [_read(certificate) for certificate in chain[:MOST_CERTIFICATES]]
    if not certificates or certificates[0] is None:
        return False
    # What a peer sends beside its own certificate counts only as a path from that one.
    intermediates = [
        certificate
        for certificate in certificates[1:]
        if certificate is not None and _may_sign(certificate)
    ]
    reached = [certificates[0]]
    for certificate in reached:  # it grows meanwhile
        if any(_is_issued(certificate, issuer) for issuer in authorities):
            return True
        reached += [
            issuer
            for issuer in intermediates
            if issuer not in reached and _is_issued(certificate, issuer)
        ]
    return False


def _read_all(certificates: Iterable[bytes]) -> dict[bytes, x509.Certificate | None]:
    return {certificate: _read(certificate) for certificate in certificates}


def _read(certificate: bytes) -> x509.Certificate | None:
    """None if it cannot be read: the errors of that have no kind in common, and a peer may send
    whatever it likes beside its own."""
    try:
        result = x509.load_der_x509_certificate(certificate)
        len(result.extensions)  # They are read when they are first asked for.
    except Exception:
        return None
    return result


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return constraints.value.ca


def _is_issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:  # as above: of names, signatures, algorithms, and keys that cannot be read
        return False
    return True
