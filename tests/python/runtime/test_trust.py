"""Who stands after authorities have changed, by the certificates that they showed."""

from __future__ import annotations

import datetime
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from privet.runtime import trust
from privet.runtime.trust import PeerTrust, chain_of


@dataclass(frozen=True)
class Party:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def der(self) -> bytes:
        """The certificate, as it goes over a connection."""
        return self.certificate.public_bytes(Encoding.DER)


def party(
    name: str,
    issuer: Party | None = None,
    *,
    authority: bool = False,
    key: ec.EllipticCurvePrivateKey | None = None,
    identified: bool = False,
) -> Party:
    """A party whose certificate `issuer` has signed, or itself; `identified`: its key is named."""
    private_key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(private_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
    )
    if identified:
        identifier = x509.SubjectKeyIdentifier.from_public_key(private_key.public_key())
        builder = builder.add_extension(identifier, critical=False)
    return Party(builder.sign(issuer.key if issuer else private_key, hashes.SHA256()), private_key)


OLD, NEW = party("old", authority=True), party("new", authority=True)


def changed(*authorities: Party) -> PeerTrust:
    """What trusted the old authority, and trusts these now."""
    current_trust = PeerTrust([OLD.der])
    current_trust.renew(authority.der for authority in authorities)
    return current_trust


def test_nobody_is_judged_where_no_authority_was_taken_out() -> None:
    stranger = party("stranger")
    assert PeerTrust([OLD.der]).refuses([stranger.der]) is None
    assert changed(OLD, NEW).refuses([stranger.der]) is None
    assert changed(NEW).refuses([stranger.der]) is not None


def test_an_authority_that_was_taken_out_and_came_back_stands() -> None:
    client, other = party("client", OLD), party("client", NEW)
    current_trust = changed(NEW)
    assert current_trust.refuses([client.der]) is not None
    assert current_trust.refuses([other.der]) is None
    current_trust.renew([OLD.der])
    assert current_trust.refuses([client.der]) is None
    assert current_trust.refuses([other.der]) is not None


def test_a_certificate_stands_by_a_path_through_what_was_shown() -> None:
    intermediate = party("between", NEW, authority=True)
    client = party("client", intermediate)
    current_trust = changed(NEW)
    assert current_trust.refuses([client.der, intermediate.der]) is None
    assert current_trust.refuses([client.der]) is not None


def test_an_authority_that_was_issued_anew_for_its_key_stands() -> None:
    successor = party("old", authority=True, key=OLD.key)
    assert changed(successor).refuses([party("client", OLD).der]) is None


@pytest.mark.parametrize("case", ["beside", "unable", "name", "many"])
def test_what_is_shown_beside_a_certificate_helps_nobody(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, honest = party("client", OLD), party("honest", NEW)
    if case == "beside":
        # Certificates are public: that of somebody who is trusted comes along.
        chain = [client, honest, NEW]
    elif case == "unable":
        # Somebody who is trusted, and is no authority, has signed another certificate.
        chain = [party("client", honest), honest]
    elif case == "name":
        # An authority that calls itself as the new one.
        chain = [party("client", party("new", authority=True)), NEW]
    else:
        chain = [client, *(party("old", authority=True, key=OLD.key) for _ in range(50))]
    assert changed(NEW).refuses([entry.der for entry in chain]) is not None
    if case == "unable":
        # The control: without a look at what may sign, it would stand.
        monkeypatch.setattr(trust, "_may_sign", lambda _: True)
        assert changed(NEW).refuses([entry.der for entry in chain]) is None


def test_the_certificates_that_a_peer_of_tls_showed(tmp_path: Path) -> None:
    intermediate = party("between", NEW, authority=True)
    client, server = party("client", intermediate), party("server", NEW)
    near, far = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    near.check_hostname, far.verify_mode = False, ssl.CERT_REQUIRED
    for context, leaf, chain in ((near, client, [client, intermediate]), (far, server, [server])):
        texts = [entry.certificate.public_bytes(Encoding.PEM) for entry in chain]
        (tmp_path / "own.pem").write_bytes(b"".join(texts))
        form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / "own.key").write_bytes(leaf.key.private_bytes(*form))
        context.load_cert_chain(tmp_path / "own.pem", tmp_path / "own.key")
        context.load_verify_locations(cadata=NEW.der)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = near.wrap_bio(to_client, to_server), far.wrap_bio(to_server, to_client, server_side=True)
    for end in ends * 2:
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert chain_of(ends[1]) == [client.der, intermediate.der]
    assert chain_of(ends[0])[0] == server.der


def test_nothing_shown_and_what_is_no_certificate_are_refused() -> None:
    assert changed(NEW).refuses([]) is not None
    assert changed(NEW).refuses([b"none"]) is not None


@pytest.mark.parametrize("odd", ["version", "extensions", "none"])
def test_what_cannot_be_read_beside_a_certificate_changes_nothing(odd: str) -> None:
    if odd == "version":
        # The tag, length and value of a version; there is none of this number.
        junk = NEW.der.replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020104"), 1)
    elif odd == "extensions":
        # The key's identifier called as the constraints are, so that those come twice.
        twice = party("twice", authority=True, identified=True).der
        junk = twice.replace(bytes.fromhex("0603551d0e"), bytes.fromhex("0603551d13"), 1)
    else:
        junk = b"none"
    assert changed(NEW).refuses([party("client", OLD).der, junk]) is not None
    assert changed(NEW).refuses([party("client", NEW).der, junk]) is None
    assert changed(NEW).refuses([junk]) is not None
    # Nor does an authority that cannot be read: it vouches for nobody.
    authorities = PeerTrust([OLD.der])
    authorities.renew([junk, NEW.der])
    assert authorities.refuses([party("client", OLD).der]) is not None
    assert authorities.refuses([party("client", NEW).der]) is None


def test_of_two_paths_one_is_enough_in_any_order() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    paths = [party("between", issuer, authority=True, key=key) for issuer in (OLD, NEW)]
    client = party("client", paths[0])
    for intermediates in (paths, paths[::-1]):
        assert changed(NEW).refuses([entry.der for entry in (client, *intermediates)]) is None
    assert changed(NEW).refuses([client.der, paths[0].der]) is not None
