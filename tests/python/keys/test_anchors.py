"""Only certificates of authorities are trust anchors, wherever Python verifies peers."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from privet.errors import Misuse
from privet.gateway.endpoint import EndpointKeys
from privet.keys import KeyPaths, make
from privet.runtime import Credentials
from privet.service.control.identity import tls
from privet.service.watch import Watch


def lone(*extensions: x509.ExtensionType) -> bytes:
    """A client's own certificate, signed by itself, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def no_signing() -> x509.KeyUsage:
    return x509.KeyUsage(True, *[False] * 8)


NO_ANCHORS = {
    "no certificate at all": (b"", "no BEGIN CERTIFICATE"),
    "no constraints": (lone(), "no BasicConstraints"),
    "no authority": (lone(x509.BasicConstraints(False, None)), "CA:FALSE"),
    "no signatures": (lone(x509.BasicConstraints(True, None), no_signing()), "keyCertSign"),
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyPaths:
    return make(tmp_path_factory.mktemp("keys"))


@pytest.mark.parametrize(("text", "reason"), NO_ANCHORS.values(), ids=NO_ANCHORS)
def test_what_is_no_authority_is_refused_everywhere(
    keys: KeyPaths, tmp_path: Path, text: bytes, reason: str
) -> None:
    folder = keys.ca.parent
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    anchor = tmp_path / "ca.pem"
    pair = tmp_path / "server.pem", tmp_path / "server.key"
    loaders: list[Callable[[], object]] = [
        lambda: Credentials(*pair, anchor),
        EndpointKeys(*pair, anchor).context,
        EndpointKeys(*pair, anchor).grpc,
        lambda: tls(tmp_path),
        lambda: Watch("localhost:1", tmp_path, "server"),
    ]
    for load in loaders:
        load()
    anchor.write_bytes(text)
    for load in loaders:
        with pytest.raises(Misuse, match=reason):
            load()
    if text:
        # The control: Python's own `ssl` takes it for an anchor.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(anchor)
        assert context.cert_store_stats()["x509"] == 1
