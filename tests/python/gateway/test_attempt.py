"""Attempts at a worker: whom they trust, what they refuse to run, and that they can be stopped."""

from __future__ import annotations

import asyncio
import hashlib
import math
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.attacks.scene import INPUT, SOON, small_model

from privet import _native, keys
from privet.compiler.compile import Compiled
from privet.compiler.graph.front import Front, Given
from privet.compiler.graph.head import Head
from privet.errors import (
    InvalidProgram,
    LinkError,
    MaterialError,
    Misuse,
    NobodyListens,
    PeerMisbehaved,
)
from privet.gateway import attempt as module
from privet.gateway.attempt import MOST_SECONDS, Attempt, WorkerClient, read_lease
from privet.gateway.client import FEW_NUMBERS, _is_small, encode_portions
from privet.gateway.jobs import AttemptExecutor
from privet.gateway.model import Model, Offer, Offered, Tensor, Terms, read_model
from privet.runtime import Credentials, Finished, MaterialStore, Server
from privet.suites import Fss, Gmw

GO: dict[str, Any] = {
    "job": "j/pre#1",
    "phase": "prepare",
    "host": "localhost",
    "port": 1,
    "server_name": "localhost",
    "program": "",
    "suite": "gmw linear exact tables",
    "material": None,
    "samples": 1,
    "grace": 1.0,
    "seconds": SOON,
    "dealer": None,
}


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


@pytest.fixture
def heard() -> queue.Queue[Finished]:
    return queue.Queue()


@pytest.fixture
def port(
    key_folder: Path, tmp_path: Path, compiled: Compiled, heard: queue.Queue[Finished]
) -> Iterator[int]:
    """A server in the place of a worker."""
    credentials = Credentials.from_directory(key_folder, "server")
    with Server(credentials, state=tmp_path / "server", on_finished=heard.put) as server:
        server.add(compiled.program, compiled.weights)
        yield server.start().address[1]


def offer_of(compiled: Compiled, **changes: Any) -> Offer:
    """The compiled model as a service offers it."""
    program = compiled.program
    fields: dict[str, Any] = {
        "name": "small",
        "version": 1,
        "versions": (1,),
        "description": "",
        "program": program.program_hash,
        "batch": 1,
        "inputs": (Tensor("x", (1, 4)),),
        "outputs": (Tensor("y", (1, 3)),),
        "suites": (Offered("gmw", "semi-honest", ("linear", "blocks"), None),),
        "stock": {},
    }
    return Offer(Model(**{**fields, **changes}), program.to_public_bytes())


@pytest.fixture
def attempt(
    key_folder: Path, tmp_path: Path, compiled: Compiled, port: int
) -> Callable[..., Attempt]:
    """An attempt with a lease of these fields."""

    def make(name: str = "localhost", folder: Path = key_folder, **fields: Any) -> Attempt:
        offer = offer_of(compiled)
        go = {**GO, "port": port, "program": compiled.program.program_hash, **fields}
        credentials = Credentials.from_directory(folder, "client")
        worker_client = WorkerClient(credentials, tmp_path / "client", name)
        return Attempt(read_lease(go), worker_client, offer, offer.resolve(Terms()))

    return make


def test_an_entry_is_made_and_spent_once(
    attempt: Callable[..., Attempt], compiled: Compiled
) -> None:
    material, report = attempt().prepare()
    assert report
    (portion,) = encode_portions(compiled.program, [INPUT])
    infer = {"phase": "infer", "material": material}
    outcome, new_entry = attempt(**infer).infer(portion.payload)
    assert (outcome[0], len(outcome[1]), new_entry) == (material, 1, None)
    with pytest.raises(PeerMisbehaved, match="material"):
        attempt(phase="infer").infer(portion.payload)
    with pytest.raises(MaterialError, match="used"):
        attempt(**infer).infer(portion.payload)


def test_attempts_share_a_store_that_is_opened_once(
    key_folder: Path, tmp_path: Path, compiled: Compiled, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores: list[MaterialStore] = []

    def store(*arguments: Any, **options: Any) -> MaterialStore:
        stores.append(MaterialStore(*arguments, **options))
        return stores[-1]

    monkeypatch.setattr(module, "MaterialStore", store)
    credentials = Credentials.from_directory(key_folder, "client")
    client = WorkerClient(credentials, tmp_path / "client", "localhost")
    go = read_lease({**GO, "port": port, "program": compiled.program.program_hash})
    offer = offer_of(compiled)
    entries = {Attempt(go, client, offer, offer.resolve(Terms())).prepare()[0] for _ in range(2)}
    assert len(stores) == 1
    assert {entry.id for entry in stores[0].entries()} == entries


def test_only_what_was_asked_for_is_run(
    attempt: Callable[..., Attempt], heard: queue.Queue[Finished]
) -> None:
    with pytest.raises(PeerMisbehaved, match="another program"):
        attempt(program="0" * 64).prepare()
    for suite in ("gmw blocks exact tables", "gmw linear one-bit tables", "fss"):
        with pytest.raises(PeerMisbehaved, match="was asked for"):
            attempt(suite=suite).prepare()
    assert heard.empty()


def test_the_name_of_a_worker_is_the_services(
    attempt: Callable[..., Attempt], heard: queue.Queue[Finished]
) -> None:
    with pytest.raises(PeerMisbehaved, match="it is for another name"):
        attempt("model.example.org", server_name="localhost").prepare()
    assert attempt("localhost", server_name="elsewhere.example").prepare()
    reports = (heard.get(timeout=10) for _ in range(2))
    assert [report.kind for report in reports if report.error is None] == ["prepared"]


def test_a_worker_of_another_authority_is_refused(
    attempt: Callable[..., Attempt], tmp_path: Path
) -> None:
    keys.make(tmp_path / "keys")
    with pytest.raises(PeerMisbehaved, match="certificate"):
        attempt(folder=tmp_path / "keys").prepare()


def test_an_attempt_that_is_stopped_ends_soon(
    key_folder: Path, tmp_path: Path, attempt: Callable[..., Attempt]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        pending = attempt(host="127.0.0.1", port=mute.getsockname()[1], grace=2.0)
        threading.Timer(0.3, pending.stop).start()
        start = time.monotonic()
        with pytest.raises(LinkError):
            pending.prepare()
        assert time.monotonic() - start < 5


def test_a_worker_that_refuses_connections_is_left_long_before_its_grace_is_over(
    attempt: Callable[..., Attempt],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    start = time.monotonic()
    with pytest.raises(NobodyListens):
        attempt(host="127.0.0.1", port=port, grace=15.0).prepare()
    assert time.monotonic() - start < 5


def test_who_refuses_connections_while_the_worker_has_one_is_the_dealer(
    attempt: Callable[..., Attempt],
) -> None:
    def knock(session: Any, plan: Any) -> None:
        raise NobodyListens("nothing listens at dealer.example.org:7401")

    one = attempt(dealer="dealer.example.org:7401")
    session = one._open()
    with pytest.raises(LinkError, match="whether `privet dealer` runs there"):
        one._work("key", session, knock)
    assert one.dealer_is_away
    assert not one.was_refused


def test_a_worker_that_was_refused_for_a_moment_is_reached(
    attempt: Callable[..., Attempt], port: int
) -> None:
    """As behind a proxy that has just lost sight of it."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        place = gone.getsockname()
    relay = socket.socket()
    relay.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    relay.bind(place)  # and does not listen yet

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        # Whoever was served may leave before all that it was sent is passed on.
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)

    def come_back() -> None:
        relay.listen()
        near, far = relay.accept()[0], socket.create_connection(("127.0.0.1", port))
        for ends in ((near, far), (far, near)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()

    threading.Timer(0.4, come_back).start()
    assert attempt(host="127.0.0.1", port=place[1]).prepare()
    relay.close()


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "reveal"},
        {"material": "m"},
        {"port": "x"},
        {"grace": None},
        {"seconds": "soon"},
        {"seconds": math.nan},
        {"seconds": -1.0},
        {"grace": 0.0},
        {"grace": 10**400},
        {"port": math.inf},
        {"port": 0},
        {"port": 70_000},
    ],
)
def test_a_malformed_lease_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PeerMisbehaved, match="no proper lease"):
        read_lease({**GO, **change})
    with pytest.raises(PeerMisbehaved, match="no proper lease"):
        read_lease({name: value for name, value in GO.items() if name not in change})


def test_times_of_a_lease_end() -> None:
    lease = read_lease({**GO, "seconds": math.inf, "grace": 1e300})
    assert (lease.seconds, lease.grace) == (MOST_SECONDS, MOST_SECONDS)


def test_an_offer_is_the_program_that_it_is_called(compiled: Compiled) -> None:
    with pytest.raises(PeerMisbehaved, match="another hash"):
        offer_of(compiled, program="0" * 64)
    offer = offer_of(compiled)
    model = offer.model
    junk = b"{}"
    with pytest.raises(InvalidProgram):
        Offer(replace(model, program=hashlib.sha256(junk).hexdigest()), junk)


def test_terms_are_resolved_by_what_is_offered(compiled: Compiled) -> None:
    offer = offer_of(compiled)
    resolved = offer.resolve(Terms())
    assert (resolved.suite, resolved.program_hash) == (
        Gmw(rounds="linear"),
        compiled.program.program_hash,
    )
    assert offer.resolve(Terms(Gmw(rounds="blocks"))).suite == Gmw(rounds="blocks")
    with pytest.raises(Misuse, match="not offered in fss malicious"):
        offer.resolve(Terms(Fss(security="malicious")))
    with pytest.raises(PeerMisbehaved, match="ask the service's operator"):
        offer.resolve(Terms(program_hash="0" * 64))


def test_terms_are_resolved_for_the_network_whatever_was_asked_before(compiled: Compiled) -> None:
    slow = _native.Link("100ms,10Mbit")
    suite = offer_of(compiled).resolve(Terms(), slow).suite
    offer = offer_of(compiled)
    # Whoever asks whether a model is ready knows of no network.
    assert offer.resolve(Terms()).suite != suite
    assert not offer.has_resolved(Terms(), slow)
    assert offer.resolve(Terms(), slow).suite == suite
    assert offer.has_resolved(Terms(), slow)


@pytest.mark.parametrize("document", [None, [], {}, {"name": "m", "privet": {}}, {"privet": 3}])
def test_a_description_that_is_none(document: Any) -> None:
    with pytest.raises(PeerMisbehaved, match="describes no model"):
        read_model(document)


def test_portions_are_integers_of_the_program(compiled: Compiled) -> None:
    (portion,) = encode_portions(compiled.program, {"x": INPUT})
    scale = 1 << compiled.program.scale_bits
    assert np.frombuffer(portion.payload[0], "<i8").tolist() == (INPUT.ravel() * scale).tolist()
    assert len(encode_portions(compiled.program, [np.repeat(INPUT, 3, axis=0)])) == 3


def test_inputs_are_small_if_they_are_few_numbers_and_stay_few_in_the_program(
    compiled: Compiled,
) -> None:
    program = compiled.program
    assert _is_small(program, [INPUT])
    assert not _is_small(program, [np.zeros((FEW_NUMBERS, 4))])
    assert not _is_small(program, [INPUT.tolist()])
    # One sample is made as many as the program takes, and an index a row as long as a table.
    (entry,) = program.inputs
    for shape, one_hot in (((2048, 4), False), ((1, 4, 2048), True)):
        values = list(program.values)
        values[entry.value] = replace(values[entry.value], shape=shape)
        inputs = (replace(entry, one_hot=one_hot),)
        assert not _is_small(replace(program, values=tuple(values), inputs=inputs), [INPUT])
    front = Front((Given("x", "text", (1, 1)),), Head(17, ("x",), (), {}))
    assert not _is_small(replace(program, front=front), [np.array([["a" * 100_000]])])


def test_what_ends_while_the_store_is_looked_at_is_not_waited_for(
    key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = threading.Event()
    credentials = Credentials.from_directory(key_folder, "client")
    executor = AttemptExecutor(WorkerClient(credentials, tmp_path / "client", "localhost"), 2)

    def prepare() -> tuple[str, str]:
        assert looking.wait(10)
        raise LinkError("it broke off")

    async def act() -> None:
        preparing = asyncio.create_task(
            executor.prepare(cast(Any, SimpleNamespace(prepare=prepare)))
        )
        await asyncio.sleep(0)
        over = threading.Event()
        preparing.add_done_callback(lambda _: over.set())

        def holds(_: str) -> bool:
            looking.set()
            return not over.wait(10)

        monkeypatch.setattr(executor, "_holds", holds)
        lease = SimpleNamespace(material="a" * 32)
        using: Any = SimpleNamespace(lease=lease, infer=lambda _: (("a", [], ""), None))
        async with asyncio.timeout(10):
            assert (await executor.infer(using, []))[0][0] == "a"
        with pytest.raises(LinkError):
            await preparing
        await executor.close()

    asyncio.run(act())
