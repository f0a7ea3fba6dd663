"""What `privet.keys.make` writes: which files, with which rights, saying what."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from privet.errors import Misuse
from privet.keys import KeyPaths, fingerprint, issue, make


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(path: Path) -> list[str]:
    extension = load(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in extension]


def test_members_of_a_cohort_have_names_of_their_own(tmp_path: Path) -> None:
    make(tmp_path / "k", members=2)
    names = {path.name for path in (tmp_path / "k").iterdir()}
    assert names >= {"member-0.pem", "member-0.key", "member-1.pem", "member-1.key"}
    assert (tmp_path / "k" / "member-1.key").stat().st_mode & 0o777 == 0o600


def test_writes_exactly_the_seven_files(tmp_path: Path) -> None:
    paths = make(tmp_path / "keys")
    assert paths.ca_key is None
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == [
        "ca.pem",
        "client.key",
        "client.pem",
        "dealer.key",
        "dealer.pem",
        "operator.key",
        "operator.pem",
        "server.key",
        "server.pem",
    ]


def test_only_the_owner_reads_keys_whatever_the_umask(tmp_path: Path, lax_umask: None) -> None:
    paths = make(tmp_path / "deep" / "keys", keep_ca_key=True)
    assert paths.ca_key is not None
    keys = (paths.server_key, paths.client_key, paths.dealer_key, paths.operator_key)
    for key in (*keys, paths.ca_key):
        assert mode(key) == 0o600
    assert mode(paths.ca) == 0o644
    assert mode(tmp_path / "deep" / "keys") == 0o700


def test_each_key_belongs_to_its_certificate_alone(tmp_path: Path) -> None:
    paths = make(tmp_path, keep_ca_key=True)
    assert paths.ca_key is not None
    pairs = [
        (paths.ca, paths.ca_key),
        (paths.server_certificate, paths.server_key),
        (paths.client_certificate, paths.client_key),
        (paths.dealer_certificate, paths.dealer_key),
        (paths.operator_certificate, paths.operator_key),
    ]
    fingerprints = set()
    for certificate, key in pairs:
        private = load_pem_private_key(key.read_bytes(), password=None)
        assert private.public_key() == load(certificate).public_key()
        fingerprints.add(fingerprint(certificate))
    assert len(fingerprints) == 5


def test_both_parties_are_signed_by_the_authority(tmp_path: Path) -> None:
    paths = make(tmp_path)
    for certificate in (paths.server_certificate, paths.client_certificate):
        load(certificate).verify_directly_issued_by(load(paths.ca))


def test_certificates_are_for_their_purposes_only(tmp_path: Path) -> None:
    paths = make(tmp_path)
    serves, asks = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
    for certificate, purposes in (
        (paths.server_certificate, [serves, asks]),
        (paths.client_certificate, [asks]),
        (paths.dealer_certificate, [serves]),
        (paths.operator_certificate, [asks]),
    ):
        extensions = load(certificate).extensions
        assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == purposes
        assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    authority = load(paths.ca).extensions.get_extension_for_class(x509.BasicConstraints).value
    assert authority.ca
    assert authority.path_length == 0


def test_validity_covers_now_and_ends_after_the_days_asked_for(tmp_path: Path) -> None:
    paths = make(tmp_path, days=7)
    now = datetime.now(UTC)
    for certificate in (paths.ca, paths.server_certificate, paths.client_certificate):
        content = load(certificate)
        assert content.not_valid_before_utc < now
        assert timedelta(days=6, hours=23) < content.not_valid_after_utc - now <= timedelta(days=7)


def test_server_answers_to_this_machine_and_to_the_names_given(tmp_path: Path) -> None:
    paths = make(tmp_path, ["Model.Example", "192.0.2.7", "[2001:db8::1]", "localhost"])
    assert names(paths.server_certificate) == [
        "localhost",
        "127.0.0.1",
        "::1",
        "model.example",
        "192.0.2.7",
        "2001:db8::1",
    ]


@pytest.mark.parametrize(
    "name", ["", "a b", "https://host", "host:443", "-x", "*.example", "x" * 64, "a..b", "grün"]
)
def test_refuses_what_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(Misuse, match="neither a host name"):
        make(tmp_path / "keys", [name])
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("name", ["privet-dealer", "Privet-Dealer"])
def test_no_server_gets_the_dealers_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(Misuse, match="stand in for it"):
        make(tmp_path / "keys", [name])
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("days", [0, -1, 826])
def test_refuses_odd_validity(tmp_path: Path, days: int) -> None:
    with pytest.raises(Misuse, match="1 to 825"):
        make(tmp_path, days=days)


@pytest.mark.parametrize("name", [path.name for path in KeyPaths.below(Path(), ca_key=True).all()])
def test_never_overwrites_unasked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(Misuse, match=name):
        make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_force_replaces_everything_even_a_kept_authority_key(tmp_path: Path) -> None:
    first = fingerprint(make(tmp_path, keep_ca_key=True).ca)
    (tmp_path / "server.key").chmod(0o644)
    paths = make(tmp_path, force=True)
    assert fingerprint(paths.ca) != first
    assert mode(paths.server_key) == 0o600
    assert not (tmp_path / "ca.key").exists()


def test_force_does_not_write_through_a_link(tmp_path: Path) -> None:
    file = tmp_path / "outside"
    file.write_text("untouched")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "server.key").symlink_to(file)
    paths = make(tmp_path / "keys", force=True)
    assert file.read_text() == "untouched"
    assert not paths.server_key.is_symlink()


def test_more_clients_are_issued_by_a_kept_authority(tmp_path: Path) -> None:
    paths = make(tmp_path, keep_ca_key=True)
    certificate, key = issue(tmp_path, "alice", days=7)
    content = load(certificate)
    assert (certificate.name, key.stat().st_mode & 0o777) == ("alice.pem", 0o600)
    assert content.subject.rfc4514_string() == "CN=alice"
    assert content.issuer == load(paths.ca).subject
    assert content.not_valid_after_utc < load(paths.client_certificate).not_valid_after_utc
    with pytest.raises(Misuse, match="already holds"):
        issue(tmp_path, "alice")
    for name in ("../bob", "", "a b"):
        with pytest.raises(Misuse, match="cannot name a client"):
            issue(tmp_path, name)
    for fingerprint_like in ("ab" * 32, "AB" * 32):
        with pytest.raises(Misuse, match="reads as the fingerprint"):
            issue(tmp_path, fingerprint_like)
    issue(tmp_path, "ab" * 31)


def test_an_authority_that_was_forgotten_issues_nothing(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(Misuse, match="--keep-ca-key"):
        issue(tmp_path, "alice")
