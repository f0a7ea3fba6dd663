"""What a client does that finds no material, and what processes that share material do."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, SOON, small_model

from privet.compiler.compile import Compiled
from privet.errors import MaterialError, Misuse
from privet.runtime import Client, Credentials, Dealer, Finished, Result, Server
from privet.suites import Fss, Gmw, Suite

TRUST = "needs a dealer that colludes with neither party"


class Scene:
    """A server of a small model; `events` are its reports, `dealt` is how it reaches a dealer."""

    def __init__(self, keys: Path, folder: Path, compiled: Compiled) -> None:
        self.keys = keys
        self.folder = folder
        self.compiled = compiled
        self.events: queue.Queue[Finished] = queue.Queue()
        self.address = ("", 0)

    @contextmanager
    def serving(self, **options: Any) -> Iterator[None]:
        """Runs the server."""
        credentials = Credentials.from_directory(self.keys, "server")
        with Server(
            credentials, state=self.folder / "server", on_finished=self.events.put, **options
        ) as server:
            server.add(self.compiled.program, self.compiled.weights)
            self.address = server.start().address
            yield

    def options(self, **options: Any) -> dict[str, Any]:
        """What clients are given."""
        return {"state": self.folder / "client", "timeout": SOON, **options}

    def infer(self, **options: Any) -> Result:
        """One prediction."""
        credentials = Credentials.from_directory(self.keys, "client")
        with Client(*self.address, credentials, **self.options(**options)) as client:
            return client.infer([INPUT])

    def fill(self, level: int, **options: Any) -> None:
        """Makes material."""
        credentials = Credentials.from_directory(self.keys, "client")
        with Client(*self.address, credentials, **self.options(**options)) as client:
            client.prepare(level)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


@pytest.fixture
def scene(key_folder: Path, tmp_path: Path, compiled: Compiled) -> Iterator[Scene]:
    scene = Scene(key_folder, tmp_path, compiled)
    with scene.serving():
        yield scene


@contextmanager
def dealing(keys: Path) -> Iterator[str]:
    """A dealer; its address."""
    with Dealer(Credentials.from_directory(keys, "dealer")) as dealer:
        dealer.start()
        yield "{}:{}".format(*dealer.address)


def test_a_client_that_refuses_says_nothing_to_the_server(scene: Scene) -> None:
    with pytest.raises(MaterialError, match="no material is ready"):
        scene.infer(when_dry="refuse")
    report = scene.infer()
    assert report.dry is not None
    assert report.offline is not None
    assert report.dry.action == "made"
    assert report.dry.seconds >= report.offline.seconds
    kinds = [scene.events.get(timeout=SOON).kind for _ in range(4)]
    assert kinds == ["described", "described", "prepared", "inferred"]


def test_a_client_waits_for_another_process(scene: Scene) -> None:
    with pytest.raises(MaterialError, match="after 1 s"):
        scene.infer(when_dry="wait", timeout=1)
    timer = threading.Timer(0.5, scene.fill, (1,))
    timer.start()
    result = scene.infer(when_dry="wait")
    timer.join()
    assert result.dry is not None
    assert result.dry.action == "waited"
    assert result.offline is None


def test_a_client_falls_back_where_no_dealer_answers(
    key_folder: Path, tmp_path: Path, compiled: Compiled
) -> None:
    scene = Scene(key_folder, tmp_path, compiled)
    options = {"suite": "fss", "when_dry": "gmw"}
    with dealing(key_folder) as dealer, scene.serving(dealer=dealer):
        fine = scene.infer(**options, dealer=dealer)
        assert fine.dry is not None
        assert (fine.config.name, fine.trust, fine.dry.action) == ("fss", TRUST, "made")

        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            nowhere = f"127.0.0.1:{listener.getsockname()[1]}"
            report = scene.infer(**options, dealer=nowhere)
            assert (report.config.label, report.trust) == ("gmw linear exact tables", None)
            assert report.dry is not None
            assert report.offline is not None
            assert report.dry.action == "fell back"
            assert (report.dry.asked or "").startswith("fss")
            assert nowhere in (report.dry.reason or "")
            assert report.offline.bytes_dealer == 0

        scene.fill(1)
        stocked = scene.infer(**options, dealer=dealer)
        assert (stocked.config.name, stocked.offline) == ("gmw", None)
        assert stocked.dry is not None
        assert stocked.dry.reason is None


@pytest.mark.parametrize("suite", [Gmw(correlations="dealer"), Fss()])
def test_material_of_one_suite_is_not_used_by_another(
    key_folder: Path, tmp_path: Path, compiled: Compiled, suite: Suite
) -> None:
    scene = Scene(key_folder, tmp_path, compiled)
    with dealing(key_folder) as dealer, scene.serving(dealer=dealer):
        scene.fill(2, suite=suite, dealer=dealer)
        result = scene.infer(suite=suite, dealer=dealer, when_dry="refuse")
        assert (result.dry, result.trust) == (None, TRUST)
        with pytest.raises(MaterialError):
            scene.infer(when_dry="refuse")


@pytest.mark.parametrize(
    ("policy", "part"), [("gmw", "what was asked for"), ("fss", "HOST:PORT"), ("magic", "refuse")]
)
def test_policies_that_cannot_be_are_refused(
    key_folder: Path, tmp_path: Path, policy: str, part: str
) -> None:
    credentials = Credentials.from_directory(key_folder, "client")
    with pytest.raises(Misuse, match=part):
        Client("127.0.0.1", 1, credentials, state=tmp_path / "client", when_dry=policy)
    assert list(tmp_path.iterdir()) == []


def test_many_processes_share_material(scene: Scene, tmp_path: Path) -> None:
    processes, per_process = 4, 5
    scene.fill(processes * per_process)
    host, port = scene.address
    job = {"host": host, "port": port, "keys": str(scene.keys), "count": per_process}
    (tmp_path / "job.json").write_text(json.dumps({**job, "state": str(scene.folder / "client")}))
    script = Path(__file__).with_name("sharing_client.py")
    command = [sys.executable, str(script), str(tmp_path / "job.json")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        clients = [
            stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(processes)
        ]
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "connected\n"
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        outputs = [client.communicate(timeout=SOON)[0] for client in clients]
    entries = [material for output in outputs for material in json.loads(output)]
    assert len(entries) == len(set(entries)) == processes * per_process
    store = scene.folder / "client" / "client"
    assert sorted(path.name for path in (store / "spent").iterdir()) == sorted(entries)
    assert list((store / "ready").iterdir()) == []
