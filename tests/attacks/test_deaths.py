"""Parties that die or are restarted: nobody hangs, and no material entry serves twice."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest
from tests.attacks.scene import INPUT, SOON, Scene

from privet import _native
from privet.errors import LinkError, MaterialError, PrivetError
from privet.runtime import Finished


def ready(store: Path) -> set[str]:
    """Ids of the entries that a party's store still hands out."""
    entries = {path.stem for path in (store / "ready").glob("*.json")}
    return entries - {path.name for path in (store / "spent").iterdir()}


def test_a_client_killed_in_the_middle_costs_the_server_nothing_but_the_entry(
    scene: Scene,
) -> None:
    with scene.server() as server:
        port = server.address[1]
        with scene.process("client", port=port, input=INPUT.tolist()) as client:
            output, _ = client.communicate(timeout=SOON)
        assert client.returncode == -signal.SIGKILL
        material = output.strip()
        assert isinstance(scene.next_failure().error, LinkError)
        for side in ("client", "server"):
            store = scene.folder / side / side
            assert material not in ready(store)
            assert (store / "spent" / material).exists()
        # The dead client's successor, on the same store, cannot use the entry and gets another.
        with scene.client(port) as successor:
            with pytest.raises(MaterialError):
                successor.infer([INPUT], material=material)
            scene.check(successor.infer([INPUT]))


def test_a_server_killed_in_the_middle_is_noticed_and_forgets_nothing(scene: Scene) -> None:
    with scene.server_process() as (process, port):
        client = scene.client(port)
        first, second = client.prepare(2)

        def kill(phase: str, done: int, _total: int, _step: str) -> None:
            if phase == "online" and done == 1:
                process.kill()
                process.wait(SOON)

        start = time.monotonic()
        with pytest.raises(LinkError):
            client.infer([INPUT], material=first, progress=kill)
        assert time.monotonic() - start < SOON
        with pytest.raises(PrivetError):
            client.infer([INPUT], material=second)

    assert ready(scene.folder / "client" / "client") <= {second}
    assert ready(scene.folder / "server" / "server") == {second}


def test_material_from_before_a_restart_serves_once(scene: Scene) -> None:
    with scene.server_process() as (process, port):
        with scene.client(port) as client:
            first, second = client.prepare(2)
        process.kill()
        process.wait(SOON)

    with scene.server_process() as (_, port), scene.client(port) as client:
        assert set(client.ready()) == {first, second}
        scene.check(client.infer([INPUT], material=first))
        with pytest.raises(MaterialError):
            client.infer([INPUT], material=first)
        scene.check(client.infer([INPUT], material=second))
    for side in ("client", "server"):
        assert ready(scene.folder / side / side) == set()


def test_material_that_the_server_lost_is_refused(scene: Scene) -> None:
    with scene.server() as server, scene.client(server.address[1]) as client:
        (material,) = client.prepare()
    (scene.folder / "server").rename(scene.folder / "gone")
    with scene.server() as server:
        client = scene.client(server.address[1])
        with pytest.raises(MaterialError, match="no preprocessed material"):
            client.infer([INPUT], material=material)
        scene.assert_serves(server.address[1])


def test_a_closed_server_is_gone_at_once(scene: Scene) -> None:
    with scene.server() as server:
        port = server.address[1]
        scene.assert_serves(port)
    with pytest.raises(LinkError, match="nothing listens"):
        scene.client(port)
    assert server.address[1] == port


def test_a_listener_that_fails_is_logged_and_stops_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[Finished] = []

    class Deaf:
        def put(self, finished: Finished) -> None:
            reports.append(finished)
            raise ValueError("the listener fails")

    scene.finished = Deaf()  # type: ignore[assignment]
    with scene.server() as server:
        for _ in range(2):
            scene.assert_serves(server.address[1])
        with pytest.raises(PrivetError):
            scene.client(server.address[1], model="unknown")
        deadline = time.monotonic() + SOON
        while len(reports) < 7 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert [finished.kind for finished in reports] == ["described", "prepared", "inferred"] * 2 + [
        "failed"
    ]
    assert caplog.text.count("ValueError: the listener fails") == 7


def test_a_system_that_is_short_of_something_stops_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, enough = _native.Listener, threading.Event()

    class Short:
        """A listening socket that fails to accept a few times."""

        def __init__(self, address: str, credentials: _native.Credentials) -> None:
            self.socket, self.left = real(address, credentials), 3
            self.address = self.socket.address

        def accept(self, timeout: float) -> _native.Pending | None:
            if self.left:
                self.left -= 1
                raise LinkError("the system failed at accepting a client: too many open files")
            if timeout:
                enough.set()
            return self.socket.accept(timeout)

    monkeypatch.setattr(_native, "Listener", Short)
    with scene.server() as server:
        # Said once, however often it happens: the system may stay short for long.
        assert isinstance(scene.next_failure().error, LinkError)
        # Until then whoever comes is turned away.
        assert enough.wait(20.0)
        scene.assert_serves(server.address[1])
