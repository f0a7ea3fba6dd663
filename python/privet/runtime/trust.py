"""Whose certificates still stand after the trusted authorities have changed.

A handshake judges a peer by the authorities of its moment. Where one of them is trusted no more,
whoever holds a connection from before is judged once more here, by the certificates that the peer
showed.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterable, Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

MOST_CERTIFICATES = 10
"""Of a peer's chain that are looked at: it may send any number."""


class Trust:
    """The authorities that are trusted now, each in DER. May be used from any thread."""

    def __init__(self, authorities: Iterable[bytes] = ()) -> None:
        self._state: tuple[frozenset[bytes], bool] = frozenset(authorities), False

    def renew(self, authorities: Iterable[bytes]) -> None:
        """Trusts these from now on."""
        (before, fewer), now = self._state, frozenset(authorities)
        self._state = now, fewer or not before <= now

    def refuses(self, chain: Sequence[bytes]) -> str | None:
        """Why the peer that showed these certificates (in DER, its own first, and accepted by its
        handshake) is trusted no more; None if it is. Nobody is judged as long as no authority was
        taken out."""
        trusted, fewer = self._state
        if not fewer or _stands(chain, trusted):
            return None
        return "the authority of this certificate is trusted no more"


def chain_of(link: ssl.SSLObject) -> list[bytes]:
    """The certificates that the peer of a connection showed, each in DER, its own first. A
    connection that goes on with the keys of an earlier one knows the peer's own alone."""
    if sys.version_info >= (3, 13):
        chain = link.get_unverified_chain()
    else:
        shown = link._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
        chain = [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in shown or ()]
    own = link.getpeercert(binary_form=True)
    return chain or ([] if own is None else [own])


def _stands(chain: Sequence[bytes], trusted: Iterable[bytes]) -> bool:
    try:
        shown = [x509.load_der_x509_certificate(each) for each in chain[:MOST_CERTIFICATES]]
        authorities = [x509.load_der_x509_certificate(each) for each in trusted]
    except ValueError:
        return False
    if not shown:
        return False
    # What a peer sends beside its own certificate counts only as a path from that one.
    certificate, between = shown[0], [each for each in shown[1:] if _may_sign(each)]
    while not any(_is_issued(certificate, by) for by in authorities):
        issuers = [each for each in between if _is_issued(certificate, each)]
        if not issuers:
            return False
        certificate = issuers[0]
        between.remove(certificate)
    return True


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except (ValueError, x509.ExtensionNotFound):
        return False
    return constraints.value.ca


def _is_issued(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
