"""A pool beside a server, a dealer and clients: real processes, real sockets."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.processes import SOON, Running, lines, listening, running
from tests.e2e.test_commands import DIGITS, SEVEN, privet

MODEL = "digits-cnn"
TRUST = "needs a dealer that colludes with neither party"


@dataclass
class Scene:
    """A server, a client's state directory, and perhaps a dealer."""

    server: str
    keys: Path
    state: Path
    dealt: tuple[object, ...] = ()

    def pool(self, level: int, *options: object, disk: object = "100MB") -> list[object]:
        """The words of a pool."""
        words = ["pool", self.server, "--keys", self.keys, "--state", self.state]
        return [*words, "--level", f"{MODEL}={level}", "--max-disk", disk, *self.dealt, *options]

    def client(self, *options: object) -> list[object]:
        """The words of a client that asks for a prediction."""
        words = ["client", self.server, "--keys", self.keys, "--state", self.state]
        return [*words, "--input", SEVEN, *self.dealt, *options]

    def predict(self, *options: object) -> dict[str, Any]:
        """A client's result, which is right."""
        result = privet(*self.client(*options))
        assert int(np.argmax(result["output"])) == 7
        return result

    def files(self, folder: str) -> list[Path]:
        """Files of the client's store."""
        return sorted((self.state / "client" / folder).iterdir())


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder)
    return folder


@contextmanager
def serving(
    keys: Path, folder: Path, *options: object, dealer: bool = False
) -> Iterator[tuple[Scene, Running]]:
    """A server, and a dealer if wanted."""
    with ExitStack() as stack:
        there: tuple[object, ...] = ()
        if dealer:
            _, address = stack.enter_context(listening("dealer", "--keys", keys))
            there = ("--dealer", address)
        words = ["server", DIGITS, "--keys", keys, "--state", folder / "server"]
        input_range = ["--input-range", 0, 1]
        server, address = stack.enter_context(listening(*words, *input_range, *there, *options))
        yield Scene(address, keys, folder / "client", there), server


@pytest.fixture
def scene(key_folder: Path, tmp_path: Path) -> Iterator[Scene]:
    with serving(key_folder, tmp_path) as (scene, _):
        yield scene


def piped(command: Sequence[str | Path]) -> subprocess.Popen[str]:
    """A process that talks over pipes."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ready(count: int) -> Any:
    """Whether an event's only level has `count` pieces ready."""
    return lambda event: event["levels"][0]["ready"] == count


def test_a_pool_fills_up_and_refills_what_clients_use(scene: Scene) -> None:
    with running(*scene.pool(2)) as pool:
        made = pool.until(lambda event: event["event"] == "made")
        assert made["model"] == MODEL
        assert made["cost"]["bytes_client"] > 0
        full = pool.until(ready(2))
        assert full["levels"][0]["wanted"] == 2
        files = sum(path.stat().st_size for path in scene.files("ready"))
        assert full["bytes"] == full["levels"][0]["bytes"] == files

        result = scene.predict("--when-dry", "refuse")
        used = time.monotonic()
        assert result["dry"] is None
        assert result["offline"] is None
        pool.until(ready(1))
        assert time.monotonic() - used < 2
        pool.until(ready(2))

        status = privet("pool", "--status", "--state", scene.state)
        (held,) = status["ready"]
        assert (held["model"], held["ready"]) == (MODEL, 2)
        assert held["suite"].startswith("gmw ")
        assert status["bytes"] == held["bytes"]

        assert pool.end(signal.SIGTERM) == 0
        stopped = pool.until(lambda event: event["event"] == "stopped")
        assert ready(2)(stopped)
    assert len(scene.files("spent")) == 1


def test_once_fills_what_the_disk_allows_and_ends(scene: Scene) -> None:
    first = lines(scene.pool(1, "--once"))
    size = first[-1]["bytes"]
    # Room for two pieces and a half.
    limit = 5 * size // 2
    told = lines(scene.pool(9, "--once", disk=limit))
    assert max(line["bytes"] for line in told) <= limit
    assert [line["model"] for line in told if line["event"] == "full"] == [MODEL]
    assert told[-1]["event"] == "filled"
    assert told[-1]["levels"][0]["ready"] == 2
    assert sum(path.stat().st_size for path in scene.files("ready")) <= limit


@pytest.mark.parametrize("suite", [("--correlations", "dealer"), ("--suite", "fss")])
def test_a_pool_of_dealt_material(key_folder: Path, tmp_path: Path, suite: tuple[str, str]) -> None:
    with serving(key_folder, tmp_path, dealer=True) as (scene, _):
        with running(*scene.pool(2, *suite)) as pool:
            pool.until(ready(2))
            assert pool.end(signal.SIGINT) == 0
        result = scene.predict(*suite, "--when-dry", "refuse")
        assert (result["dry"], result["trust"]) == (None, TRUST)
        # Material of one way is none of another.
        refused = privet(*scene.client("--when-dry", "refuse"), code=4)
        assert refused["error"]["type"] == "MaterialError"


def test_a_dry_client_refuses_before_it_says_anything(key_folder: Path, tmp_path: Path) -> None:
    with serving(key_folder, tmp_path) as (scene, server):
        refused = privet(*scene.client("--when-dry", "refuse"), code=4)
        assert "no material is ready" in refused["error"]["message"]
        made = scene.predict()
        assert made["dry"]["action"] == "made"
        assert made["dry"]["seconds"] >= made["offline"]["seconds"]
        events = [server.next()["event"] for _ in range(4)]
        assert events == ["described", "described", "prepared", "inferred"]


def test_a_dry_client_waits_for_the_pool(scene: Scene) -> None:
    wait = scene.client("--when-dry", "wait", "--timeout")
    late = privet(*wait, 1, code=4)
    assert "after 1 s" in late["error"]["message"]
    with running(*wait, SOON) as client:
        time.sleep(1)
        with running(*scene.pool(1)):
            result = client.next()
    assert result["dry"]["action"] == "waited"
    assert result["offline"] is None


def test_a_client_falls_back_where_no_dealer_answers(key_folder: Path, tmp_path: Path) -> None:
    with serving(key_folder, tmp_path, dealer=True) as (scene, _):
        asked = ("--suite", "fss", "--when-dry", "gmw")
        fine = scene.predict(*asked)
        assert (fine["suite"], fine["trust"], fine["dry"]["action"]) == ("fss", TRUST, "made")

        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            nowhere = f"127.0.0.1:{taken.getsockname()[1]}"
            made = scene.predict(*asked, "--dealer", nowhere)
            assert (made["suite"], made["correlations"], made["trust"]) == ("gmw", "parties", None)
            assert made["dry"]["action"] == "fell back"
            assert made["dry"]["asked"].startswith("fss")
            assert nowhere in made["dry"]["reason"]
            assert made["offline"]["bytes_dealer"] == 0

        lines(Scene(scene.server, scene.keys, scene.state).pool(1, "--once"))
        stocked = scene.predict(*asked)
        assert (stocked["suite"], stocked["offline"]) == ("gmw", None)
        assert stocked["dry"]["reason"] is None


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--when-dry", "gmw"), "what was asked for"),
        (("--when-dry", "fss"), "HOST:PORT"),
        (("--when-dry", "magic"), "refuse"),
    ],
)
def test_policies_that_cannot_be_are_refused(
    key_folder: Path, tmp_path: Path, words: tuple[str, str], part: str
) -> None:
    scene = Scene("127.0.0.1:1", key_folder, tmp_path)
    refused = privet(*scene.client(*words), code=2)
    assert part in refused["error"]["message"]


def test_a_full_server_refuses_and_the_pool_comes_back(key_folder: Path, tmp_path: Path) -> None:
    with serving(key_folder, tmp_path, "--max-material", "1MB") as (scene, _):
        with running(*scene.pool(50)) as pool:
            waiting = pool.until(lambda event: event["event"] == "waiting")
            assert waiting["error"]["type"] == "PeerBusy"
            assert "store is full" in waiting["error"]["message"]
            count = waiting["levels"][0]["ready"]
            assert 0 < count < 50
            again = pool.until(lambda event: event["event"] == "waiting")
            assert again["seconds"] == 2 * waiting["seconds"]

            # A client hears the same; one that uses a piece makes room for the next.
            refused = privet(*scene.client()[:-2], "--prepare", 1, code=4)
            assert refused["error"]["type"] == "PeerBusy"
            scene.predict("--when-dry", "refuse")
            pool.until(lambda event: event["event"] == "made")
        store = tmp_path / "server" / "server" / "ready"
        assert sum(path.stat().st_size for path in store.iterdir()) <= 10**6


def test_a_pool_waits_for_a_server_that_is_away(key_folder: Path, tmp_path: Path) -> None:
    with serving(key_folder, tmp_path) as (scene, _):
        pass
    with running(*scene.pool(1)) as pool:
        first = pool.until(lambda event: event["event"] == "waiting")
        second = pool.until(lambda event: event["event"] == "waiting")
        assert first["error"]["type"] == "LinkError"
        assert 0 < first["seconds"] < second["seconds"]
        port = scene.server.rpartition(":")[2]
        words = ("server", DIGITS, "--keys", key_folder, "--state", tmp_path / "server")
        with running(*words, "--listen", f"127.0.0.1:{port}", "--input-range", 0, 1):
            pool.until(ready(1))
            assert pool.end(signal.SIGTERM) == 0


def test_a_pool_waits_for_a_dealer_that_is_away(key_folder: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    with serving(key_folder, tmp_path, "--dealer", address) as (scene, _):
        scene.dealt = ("--dealer", address)
        with running(*scene.pool(1, "--suite", "fss")) as pool:
            waiting = pool.until(lambda event: event["event"] == "waiting")
            assert address in waiting["error"]["message"]
            with running("dealer", "--keys", key_folder, "--listen", address):
                pool.until(ready(1))


@pytest.mark.parametrize("suite", ["gmw", "fss"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_pool_that_ends_in_the_middle_leaves_no_half_piece(
    key_folder: Path, tmp_path: Path, how: int, suite: str
) -> None:
    with serving(key_folder, tmp_path, dealer=True) as (scene, _):
        with running(*scene.pool(50, "--suite", suite, "--link", "200ms,1Mbit")) as pool:
            pool.until(lambda event: event["levels"][0]["ready"] == 0)
            while not any(path.suffix == ".partial" for path in scene.files("ready")):
                time.sleep(0.01)
            time.sleep(1)
            started = time.monotonic()
            code = pool.end(how)
            assert time.monotonic() - started < 5
            assert code == (0 if how == signal.SIGTERM else -how)
        assert len(scene.files("ready")) == (how == signal.SIGKILL)
        assert privet("pool", "--status", "--state", scene.state) == {"ready": [], "bytes": 0}
        assert scene.files("ready") == []
        scene.predict("--suite", suite)


def test_many_processes_share_a_pool(scene: Scene, tmp_path: Path) -> None:
    processes, each = 4, 5
    lines(scene.pool(processes * each, "--once"))
    host, _, port = scene.server.rpartition(":")
    job = {"host": host, "port": int(port), "keys": str(scene.keys), "state": str(scene.state)}
    (tmp_path / "job.json").write_text(json.dumps({**job, "count": each}))
    script = Path(__file__).with_name("sharing_client.py")
    command: list[str | Path] = [sys.executable, script, tmp_path / "job.json"]
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(processes))
        clients = [stack.enter_context(piped(command)) for _ in range(processes)]
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "connected\n"
        told = list(threads.map(lambda client: client.communicate("go\n", SOON)[0], clients))
    used = [material for output in told for material in json.loads(output)]
    assert len(used) == len(set(used)) == processes * each
    assert sorted(path.name for path in scene.files("spent")) == sorted(used)
    assert scene.files("ready") == []


def test_what_a_pool_cannot_be_told_is_refused(key_folder: Path, tmp_path: Path) -> None:
    scene = Scene("127.0.0.1:1", key_folder, tmp_path / "state")
    for words, part in (
        (scene.pool(0), "at least 1"),
        (scene.pool(1, "--level", f"{MODEL}=2"), "again"),
        (scene.pool(1, "--level", "3"), "MODEL=COUNT"),
        (scene.pool(1, disk="lots"), "disk space"),
        (scene.pool(1)[:2], "--level"),
        (["pool", "--status", "--state", scene.state], "state directory"),
    ):
        assert part in privet(*words, code=2)["error"]["message"]
    assert list(tmp_path.iterdir()) == []
