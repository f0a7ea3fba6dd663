"""The certificates at work: mutual TLS 1.3 in Python's own `ssl`, with its strict X.509 checks."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from privet.keys import DEALER_NAME, KeyPaths, fingerprint, make

GREETING = b"hello from the server"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyPaths:
    return make(tmp_path_factory.mktemp("keys"), ["model.example", "192.0.2.7"])


def context(purpose: ssl.Purpose, ca: Path, pair: tuple[Path, Path] | None) -> ssl.SSLContext:
    """Strict TLS 1.3; `purpose` names the peer that is verified, `pair` is what we show it."""
    tls = ssl.create_default_context(purpose, cafile=str(ca))
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.verify_flags |= ssl.VERIFY_X509_STRICT
    if pair:
        tls.load_cert_chain(*map(str, pair))
    return tls


@dataclass
class Handshake:
    """What each side saw of the other."""

    protocol: str | None
    greeting: bytes
    server_fingerprint: str
    client_fingerprint: str


def sha256(certificate: bytes | None) -> str:
    return hashlib.sha256(certificate or b"").hexdigest()


def shake(server: ssl.SSLContext, client: ssl.SSLContext, hostname: str) -> Handshake:
    """Connects both sides and sends the greeting; raises what the first side to fail raised."""
    near, far = socket.socketpair()
    near.settimeout(10)
    far.settimeout(10)
    fingerprints: list[str] = []
    failure: list[Exception] = []

    def serve() -> None:
        try:
            with server.wrap_socket(near, server_side=True) as tls:
                fingerprints.append(sha256(tls.getpeercert(binary_form=True)))
                tls.sendall(GREETING)
        except (ssl.SSLError, OSError) as error:
            failure.append(error)
        finally:
            near.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(far, server_hostname=hostname) as tls:
            protocol = tls.version()
            greeting = tls.recv(len(GREETING))
            server_seen = sha256(tls.getpeercert(binary_form=True))
    finally:
        far.close()
        thread.join(10)
    if failure:
        raise failure[0]
    return Handshake(protocol, greeting, server_seen, fingerprints[0])


def server_side(keys: KeyPaths) -> ssl.SSLContext:
    pair = (keys.server_certificate, keys.server_key)
    return context(ssl.Purpose.CLIENT_AUTH, keys.ca, pair)


def client_side(keys: KeyPaths) -> ssl.SSLContext:
    pair = (keys.client_certificate, keys.client_key)
    return context(ssl.Purpose.SERVER_AUTH, keys.ca, pair)


@pytest.mark.parametrize(
    "hostname", ["localhost", "127.0.0.1", "::1", "model.example", "192.0.2.7"]
)
def test_mutual_handshake(keys: KeyPaths, hostname: str) -> None:
    handshake = shake(server_side(keys), client_side(keys), hostname)
    assert handshake.protocol == "TLSv1.3"
    assert handshake.greeting == GREETING
    assert handshake.server_fingerprint == fingerprint(keys.server_certificate)
    assert handshake.client_fingerprint == fingerprint(keys.client_certificate)


@pytest.mark.parametrize("hostname", ["other.example", "192.0.2.8"])
def test_client_refuses_another_host(keys: KeyPaths, hostname: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid for"):
        shake(server_side(keys), client_side(keys), hostname)


def test_server_refuses_a_client_without_certificate(keys: KeyPaths) -> None:
    anonymous = context(ssl.Purpose.SERVER_AUTH, keys.ca, None)
    with pytest.raises((ssl.SSLError, OSError)):
        shake(server_side(keys), anonymous, "localhost")


def test_server_refuses_a_client_of_another_authority(keys: KeyPaths, tmp_path: Path) -> None:
    other = make(tmp_path)
    pair = (other.client_certificate, other.client_key)
    stranger = context(ssl.Purpose.SERVER_AUTH, keys.ca, pair)
    with pytest.raises((ssl.SSLError, OSError)):
        shake(server_side(keys), stranger, "localhost")


def test_client_refuses_a_server_of_another_authority(keys: KeyPaths, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(server_side(make(tmp_path)), client_side(keys), "localhost")


def test_a_client_cannot_pose_as_the_server(keys: KeyPaths) -> None:
    posing = context(ssl.Purpose.CLIENT_AUTH, keys.ca, (keys.client_certificate, keys.client_key))
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        shake(posing, client_side(keys), "localhost")


def dealer_side(keys: KeyPaths) -> ssl.SSLContext:
    pair = (keys.dealer_certificate, keys.dealer_key)
    return context(ssl.Purpose.CLIENT_AUTH, keys.ca, pair)


@pytest.mark.parametrize("party", ["client", "server"])
def test_both_parties_reach_the_dealer_under_their_own_certificates(
    keys: KeyPaths, party: str
) -> None:
    certificate, key = getattr(keys, f"{party}_certificate"), getattr(keys, f"{party}_key")
    client_context = context(ssl.Purpose.SERVER_AUTH, keys.ca, (certificate, key))
    handshake = shake(dealer_side(keys), client_context, DEALER_NAME)
    assert handshake.client_fingerprint == fingerprint(certificate)


def test_a_server_cannot_pose_as_the_dealer(keys: KeyPaths) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake(server_side(keys), client_side(keys), DEALER_NAME)


def test_the_dealer_cannot_pose_as_the_server(keys: KeyPaths) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid for"):
        shake(dealer_side(keys), client_side(keys), "localhost")


def test_the_dealer_cannot_pose_as_a_client(keys: KeyPaths) -> None:
    posing = context(ssl.Purpose.SERVER_AUTH, keys.ca, (keys.dealer_certificate, keys.dealer_key))
    with pytest.raises((ssl.SSLError, OSError)):
        shake(server_side(keys), posing, "localhost")
