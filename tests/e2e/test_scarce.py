"""Few open files, little memory: service, worker, dealer and gateway say so, stay up and go on.

Limits are set on the running processes, so far down that hardly anything more can be opened.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.gateways import IMAGES, Gateway, gateway
from tests.e2e.processes import SOON, listening, running
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_commands import PRIVET, SEVEN, key_folder

__all__ = ["key_folder"]

pytestmark = pytest.mark.timeout(300)

FEW = 64
"""Files: what the smallest service needs, and little more."""


def with_files(count: int) -> list[str]:
    """The command `privet` of which each process may open so many files."""
    return ["bash", "-c", f'ulimit -n {count} && exec "$@"', "privet", *PRIVET]


def below(pid: int) -> list[int]:
    """The processes that a process started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children]


def files(pid: int) -> int:
    """How many files a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def mapped(pid: int) -> int:
    """Bytes that a process has mapped."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


@contextmanager
def squeezed(pid: int, kind: int, most: int) -> Iterator[None]:
    """A process may have no more than `most` of something for a while."""
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, kind, before)


def local(scene: Scene) -> str:
    """Where a service is, by the name in its certificate."""
    return scene.address.replace("127.0.0.1", "localhost")


def infer(scene: Scene, *options: object) -> tuple[int, str]:
    """What `privet infer` of a seven says: its exit code, and the class or the error's text."""
    words: list[object] = ["infer", local(scene), "digits"]
    words += ["--keys", scene.keys, "--state", scene.folder / "client", "--input", SEVEN, "--json"]
    command = [*PRIVET, *map(str, [*words, *options])]
    process = subprocess.run(command, capture_output=True, text=True, timeout=SOON, check=False)
    reply = json.loads(process.stdout.splitlines()[-1])
    if process.returncode:
        return process.returncode, str(reply["error"]["message"])
    return 0, str(int(np.argmax(reply["output"])))


def check_stores(folder: Path) -> None:
    """No side offers what it has spent."""
    for side in ("state/server", "client/client"):
        markers = {path.name for path in (folder / side / "spent").iterdir()}
        ready = {path.name.partition(".")[0] for path in (folder / side / "ready").iterdir()}
        assert not markers & ready, side


def test_a_service_needs_some_files_and_says_how_many(tmp_path: Path, key_folder: Path) -> None:
    put_digits(tmp_path / "repository")
    words = ["serve", tmp_path / "repository", "--keys", key_folder, "--state", tmp_path / "state"]
    words += ["--listen", "127.0.0.1:0"]
    with running(*words, program=with_files(40)) as process:
        line = process.next()
        assert process.process.wait(SOON) == 2
    assert "this process may open 40 files, and needs at least" in line["error"]["message"]
    assert "ulimit -n" in line["error"]["message"]


def test_with_few_files_a_crowd_is_served_or_turned_away(tmp_path: Path, key_folder: Path) -> None:
    """A service of 64 files for each of its processes, beside more connections than that."""
    put_digits(tmp_path / "repository")
    words = ["serve", tmp_path / "repository", "--keys", key_folder, "--state", tmp_path / "state"]
    words += ["--listen", "127.0.0.1:0", "--cores", 1]
    with running(*words, program=with_files(FEW)) as process, ExitStack() as crowd:
        address = process.next()["address"]
        process.next()
        scene = Scene(process, address, tmp_path, key_folder, [])
        host, _, port = address.rpartition(":")
        for _ in range(2 * FEW):
            crowd.enter_context(socket.create_connection((host, int(port)), timeout=5))
        assert infer(scene) == (0, "7")
        assert process.end(signal.SIGTERM) == 0
    check_stores(tmp_path)


@pytest.mark.slow
def test_a_worker_without_files_fails_its_job_at_once_and_says_why(
    tmp_path: Path, key_folder: Path, figures: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    put_digits(tmp_path / "repository")
    with serving(tmp_path, key_folder, "--cores", 1) as scene:
        assert infer(scene) == (0, "7")
        (worker,) = below(scene.process.process.pid)
        outcomes = {}
        for extra in (0, 1, 2, 4):
            with squeezed(worker, resource.RLIMIT_NOFILE, files(worker) + extra):
                outcomes[extra] = infer(scene)
        assert outcomes[0][0] == 4
        assert "open files" in outcomes[0][1]
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line[0] == "{"]
        reasons = [line["why"] for line in lines if line["message"] == "job failed"]
        # A client whose session breaks may not hear the reason, which the log always has.
        assert len([reason for reason in reasons if "open files" in reason]) == sum(
            code != 0 for code, _ in outcomes.values()
        )
        figures.append(f"files beyond those open: {sorted(outcomes.items())}")
        assert infer(scene) == (0, "7")
        assert below(scene.process.process.pid) == [worker], "it is the same process"
        assert scene.process.end(signal.SIGTERM) == 0
    check_stores(tmp_path)


@pytest.mark.slow
def test_a_service_without_files_takes_calls_again_when_there_are(
    tmp_path: Path, key_folder: Path, figures: list[str]
) -> None:
    put_digits(tmp_path / "repository")
    with serving(tmp_path, key_folder, "--cores", 1) as scene:
        pid = scene.process.process.pid
        assert infer(scene) == (0, "7")
        (worker,) = below(pid)
        with squeezed(pid, resource.RLIMIT_NOFILE, files(pid) - 3):
            os.kill(worker, signal.SIGKILL)
            reply = infer(scene)
            figures.append(f"service: {reply}")
            assert reply[0] == 4
            assert "localhost" in reply[1], "it is turned away, and does not wait in vain"
            assert scene.process.process.poll() is None
        assert infer(scene, "--wait", 30) == (0, "7")
        assert below(pid) != [worker], "a worker that died meanwhile was replaced"
        assert scene.process.end(signal.SIGTERM) == 0
    check_stores(tmp_path)


@pytest.mark.slow
def test_a_worker_without_memory_dies_alone_and_its_job_runs_again(
    tmp_path: Path, key_folder: Path
) -> None:
    put_digits(tmp_path / "repository")
    with serving(tmp_path, key_folder, "--cores", 1) as scene:
        assert infer(scene) == (0, "7")
        (worker,) = below(scene.process.process.pid)
        resource.prlimit(worker, resource.RLIMIT_AS, (mapped(worker), resource.RLIM_INFINITY))
        assert infer(scene) == (0, "7"), "another worker did it, on fresh material"
        assert below(scene.process.process.pid) != [worker]
        assert scene.process.end(signal.SIGTERM) == 0
    check_stores(tmp_path)


def ask(place: Gateway) -> tuple[int, str]:
    """What a gateway answers to a question: the status, and the class or the error's text."""
    data = IMAGES[:1].ravel().astype(float).tolist()
    input_tensor = {"name": "input", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": data}
    body = json.dumps({"inputs": [input_tensor]}).encode()
    url = f"http://{place.places['rest']}/v2/models/digits/infer"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=SOON) as reply:
            answer = json.load(reply)
            return reply.status, str(int(np.argmax(answer["outputs"][0]["data"])))
    except urllib.error.HTTPError as error:
        return error.code, str(json.load(error)["error"])
    except ConnectionError:
        return 0, "the connection broke off"


def test_a_gateway_refuses_for_want_of_files_or_memory_and_goes_on(
    tmp_path: Path, key_folder: Path, figures: list[str]
) -> None:
    put_digits(tmp_path / "repository")
    with (
        serving(tmp_path, key_folder, "--cores", 1) as scene,
        gateway(local(scene), key_folder, tmp_path / "client", "--patience", 2) as place,
    ):
        pid = place.process.process.pid
        right = ask(place)
        assert right[0] == 200
        outcomes: dict[Any, tuple[int, str]] = {}
        # The call to the gateway takes one file itself.
        for extra in (1, 3, 5):
            with squeezed(pid, resource.RLIMIT_NOFILE, files(pid) + extra):
                outcomes[extra] = ask(place)
        for extra in (0, 1 << 20, 32 << 20):
            with squeezed(pid, resource.RLIMIT_AS, mapped(pid) + extra):
                outcomes["memory", extra] = ask(place)
        figures.append(f"gateway: {outcomes}")
        # Without any memory more, a call may not even be read.
        if outcomes["memory", 0][0] == 0:
            del outcomes["memory", 0]
        for limit, (status, text) in outcomes.items():
            word = "memory" if isinstance(limit, tuple) else "open files"
            assert (status, text) == right or (status == 503 and word in text), (limit, outcomes)
        assert {
            outcomes[limit][0] for limit in outcomes if limit == 1 or isinstance(limit, tuple)
        } == {503}
        assert ask(place) == right
        assert place.process.process.poll() is None
    check_stores(tmp_path)


def test_a_dealer_without_memory_fails_what_it_was_asked_for_and_goes_on(
    tmp_path: Path, key_folder: Path, figures: list[str]
) -> None:
    put_digits(tmp_path / "repository")
    with (
        listening("dealer", "--keys", key_folder) as (dealer, address),
        serving(tmp_path, key_folder, "--cores", 1, "--dealer", address) as scene,
    ):
        pid = dealer.process.pid
        assert infer(scene, "--suite", "fss") == (0, "7")
        outcomes = {}
        for extra in (0, 32 << 20):
            with squeezed(pid, resource.RLIMIT_AS, mapped(pid) + extra):
                outcomes[extra] = infer(scene, "--suite", "fss")
        figures.append(f"dealer: {outcomes}")
        assert {code for code, _ in outcomes.values()} == {4}
        assert infer(scene, "--suite", "fss") == (0, "7")
        assert dealer.process.poll() is None
        event = dealer.until(lambda line: line["event"] == "failed")
        assert event["error"] == {"type": "Short", "message": "out of memory: try again later"}
    check_stores(tmp_path)


@pytest.mark.slow
def test_a_dealer_without_files_fails_what_it_was_asked_for_and_goes_on(
    tmp_path: Path, key_folder: Path, figures: list[str]
) -> None:
    put_digits(tmp_path / "repository")
    with (
        listening("dealer", "--keys", key_folder) as (dealer, address),
        serving(tmp_path, key_folder, "--cores", 1, "--dealer", address) as scene,
    ):
        pid = dealer.process.pid
        # Later the worker keeps a link, and the client's may be there for a moment.
        least = files(pid)
        assert infer(scene, "--suite", "fss") == (0, "7")
        outcomes = {}
        for extra in (0, 2):
            with squeezed(pid, resource.RLIMIT_NOFILE, least + extra):
                outcomes[extra] = infer(scene, "--suite", "fss")
        figures.append(f"dealer: {outcomes}")
        assert outcomes[0][0] == 4
        assert infer(scene, "--suite", "fss") == (0, "7")
        assert dealer.process.poll() is None
    check_stores(tmp_path)
