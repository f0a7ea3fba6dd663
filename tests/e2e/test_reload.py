"""SIGHUP at a dealer and a gateway: certificates are read again, and what runs goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.attacks.scene import INPUT, small_model
from tests.e2e.gateways import GRPC, HTTP, IMAGES, Array, assert_right, gateway, tensor
from tests.e2e.processes import SOON, listening
from tests.e2e.rotations import NOT_READ, READ, Log, Rotation, rotation, until
from tests.e2e.services import put_digits, serving
from tritonclient.utils import InferenceServerException

from privet.errors import PrivetError
from privet.runtime import Client, Credentials, Server
from privet.suites import make_policy

__all__ = ["rotation"]

SEVEN = IMAGES[:1]
SLOW = "100ms,10Mbit"
"""A network on which a deal and an inference take seconds, so that a signal comes meanwhile."""

SLOWEST = "500ms,10Mbit"
"""One on which a deal alone does."""


def certificate_at(address: str, keys: Path, role: str = "client") -> str:
    """The fingerprint of what is shown at an address to a party of these keys."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_cert_chain(keys / f"{role}.pem", keys / f"{role}.key")
    context.load_verify_locations(keys / "ca.pem")
    context.set_alpn_protocols(["privet/1", "h2"])
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), SOON) as plain,
        context.wrap_socket(plain) as link,
    ):
        return hashlib.sha256(link.getpeercert(binary_form=True) or b"").hexdigest()


def connections_at(address: str) -> int:
    """How many established connections a listener of this machine has."""
    port = f"{int(address.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port}") and row[3] == "01" for row in rows)


class Parties:
    """A server and clients of a small model that a dealer deals for."""

    def __init__(self, dealer: str, folder: Path) -> None:
        self._dealer = f"localhost:{dealer.rpartition(':')[2]}"
        self._folder = folder
        self._deals = 0

    def deal(self, keys: Path, link: str | None = None) -> None:
        """Two parties with these keys get material, and use it."""
        self._deals += 1
        state = self._folder / str(self._deals)
        compiled = small_model()
        server_credentials = Credentials.from_directory(keys, "server")
        policy = make_policy(dealer=True)
        options: dict[str, Any] = {"dealer": self._dealer, "timeout": SOON}
        with Server(server_credentials, state=state / "server", policy=policy, **options) as server:
            server.add(compiled.program, compiled.weights)
            port = server.start().address[1]
            client_credentials = Credentials.from_directory(keys, "client")
            options |= {"suite": "fss", "link": link, "state": state / "client"}
            with Client("localhost", port, client_credentials, **options) as client:
                client.prepare()
                assert np.isfinite(client.infer([INPUT]).outputs["y"]).all()


def test_a_dealer_reads_its_certificates_again(rotation: Rotation, tmp_path: Path) -> None:
    old, new = rotation.old, rotation.new
    revoked, log = tmp_path / "revoked", Log(tmp_path / "log")
    revoked.write_text("")
    words = ("dealer", "--keys", rotation.folder, "--revoked", revoked)
    with listening(*words, log=log.path) as (process, address), ThreadPoolExecutor() as threads:
        parties = Parties(address, tmp_path)

        def shown() -> str:
            return certificate_at(address, new)

        under_way = threads.submit(parties.deal, old, SLOW)
        until(lambda: connections_at(address) >= 2)
        rotation.put(new)
        log.hangup(process, READ)
        assert not under_way.done()
        assert shown() == rotation.shown(new, "dealer") != rotation.shown(old, "dealer")
        under_way.result(SOON)
        process.until(lambda line: line["event"] == "dealt")

        # The next one finds a file that cannot be used, and nothing changes.
        rotation.put(old)
        (rotation.folder / "dealer.key").write_text("none")
        assert "cannot be used" in log.hangup(process, NOT_READ)["error"]
        assert shown() == rotation.shown(new, "dealer")
        parties.deal(new)
        parties.deal(old)

        # An authority that is trusted no more, and a certificate that is revoked.
        rotation.put(new, new)
        log.hangup(process, READ)
        with pytest.raises(PrivetError):
            parties.deal(old)
        parties.deal(new)
        revoked.write_text(rotation.shown(new, "client"))
        with pytest.raises(PrivetError):
            parties.deal(new)
        revoked.write_text(rotation.shown(old, "client"))
        parties.deal(new)
        assert process.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("hears", [True, False], ids=["reloaded", "control"])
def test_a_deal_under_way_ends_for_whom_is_trusted_no_more(
    rotation: Rotation, tmp_path: Path, hears: bool
) -> None:
    log = Log(tmp_path / "log")
    words = ("dealer", "--keys", rotation.folder)
    with listening(*words, log=log.path) as (process, address), ThreadPoolExecutor() as threads:
        parties = Parties(address, tmp_path)
        under_way = threads.submit(parties.deal, rotation.old, SLOWEST)
        until(lambda: connections_at(address) >= 2)
        rotation.put(rotation.new, rotation.new)
        if hears:
            log.hangup(process, READ)
        assert isinstance(under_way.exception(SOON), PrivetError) == hears
        assert process.end(signal.SIGTERM) == 0


class Caller:
    """An application before a gateway, with the keys of a client."""

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places

    def client(self, library: ModuleType, keys: Path) -> Any:
        """A client of Triton's library."""
        files = [str(keys / name) for name in ("ca.pem", "client.key", "client.pem")]
        address = self._places["grpc" if library is GRPC else "rest"]
        place = f"localhost:{address.rpartition(':')[2]}"
        if library is GRPC:
            names = ("root_certificates", "private_key", "certificate_chain")
            options: dict[str, Any] = dict(zip(names, files, strict=True))
        else:
            names = ("ca_certs", "keyfile", "certfile")
            options = {"ssl_options": dict(zip(names, files, strict=True)), "network_timeout": SOON}
        return library.InferenceServerClient(place, ssl=True, **options)

    def infer(self, library: ModuleType, keys: Path) -> None:
        """Asks what a seven is."""
        with self.client(library, keys) as client:
            assert_right(ask(client, library), SEVEN)

    def refusal(self, library: ModuleType, keys: Path) -> str:
        """Why it is told nothing."""
        with pytest.raises((InferenceServerException, OSError)) as excinfo:
            self.infer(library, keys)
        return str(excinfo.value)


def ask(client: Any, library: ModuleType) -> Array:
    """The logits of a seven."""
    logits: Array = client.infer("digits", [tensor(library, SEVEN)]).as_numpy("logits")
    return logits


def test_a_gateway_reads_its_certificates_again(rotation: Rotation, tmp_path: Path) -> None:
    old, new = rotation.old, rotation.new
    revoked, callers, log = tmp_path / "revoked", tmp_path / "callers.pem", Log(tmp_path / "log")
    audit = tmp_path / "audit.log"
    revoked.write_text("")
    shutil.copy(old / "ca.pem", callers)
    options = ["--tls-certificate", rotation.folder / "server.pem"]
    options += ["--tls-key", rotation.folder / "server.key", "--tls-clients", callers]
    options += ["--revoked", revoked, "--link", SLOW, "--patience", 5]
    put_digits(tmp_path / "repository")
    with (
        serving(tmp_path, old, "--audit", audit) as scene,
        gateway(scene.address, rotation.folder, tmp_path / "c", *options, log=log.path) as front,
        ThreadPoolExecutor() as threads,
    ):
        caller, process = Caller(front.places), front.process

        def shown() -> set[str]:
            return {certificate_at(front.places[name], new) for name in ("rest", "grpc")}

        def clients() -> set[str]:
            """Whose jobs the service has admitted."""
            rows = map(json.loads, audit.read_text().splitlines())
            return {row["client"] for row in rows if row["event"] == "asked"}

        assert shown() == {rotation.shown(old, "server")}
        under_way = [threads.submit(caller.infer, library, old) for library in (HTTP, GRPC)]
        until(clients)
        rotation.put(new)
        log.hangup(process, READ)
        assert not any(future.done() for future in under_way)
        assert shown() == {rotation.shown(new, "server")} != {rotation.shown(old, "server")}
        for future in under_way:
            future.result(SOON)

        # A file that cannot be used: nothing changes.
        for file_name in ("server.key", "client.pem", "ca.pem"):
            rotation.put(old)
            (rotation.folder / file_name).write_text("none")
            log.hangup(process, NOT_READ)
            assert shown() == {rotation.shown(new, "server")}
        caller.infer(HTTP, old)
        assert clients() == {rotation.shown(keys, "client") for keys in (old, new)}

        # The service is of an authority that is trusted no more, and then is again.
        rotation.put(new, new)
        log.hangup(process, READ)
        assert "another authority" in caller.refusal(HTTP, old)
        rotation.put(new)
        log.hangup(process, READ)
        with caller.client(GRPC, old) as open, ThreadPoolExecutor() as executor:
            assert open.is_server_live()
            shutil.copy(new / "own.pem", callers)
            # The control: what the files say counts when they are read.
            assert open.is_server_live()
            count = len(audit.read_text().splitlines())
            late = [executor.submit(caller.infer, library, old) for library in (HTTP, GRPC)]
            until(lambda: len(audit.read_text().splitlines()) >= count + len(late))
            log.hangup(process, READ)
            # An open connection takes no further call, and gives no answer to one under way.
            for call in (open.is_server_live, lambda: ask(open, GRPC)):
                with pytest.raises(InferenceServerException, match="trusted no more"):
                    call()
            assert isinstance(late[0].exception(SOON), (InferenceServerException, OSError))
            assert "trusted no more" in str(late[1].exception(SOON))
        for library in (HTTP, GRPC):
            caller.infer(library, new)
            caller.refusal(library, old)
            # A certificate that is revoked gets no further answer, on the connection that it has.
            with caller.client(library, new) as client:
                assert client.is_server_live()
                revoked.write_text(rotation.shown(new, "client"))
                with pytest.raises(InferenceServerException, match="certificate was revoked"):
                    ask(client, library)
                revoked.write_text(rotation.shown(old, "client"))
                assert client.is_server_live()
        assert process.end(signal.SIGTERM) == 0
