"""What an earlier version left on a disk or says on the wire is still good.

Its program, its material, its policy, its session, its service's records and calls.
"""

from __future__ import annotations

import copy
import json
import shutil
import socket
import sqlite3
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from tests.compat.record import frame_bytes, restore
from tests.kills.wiretap import PROTOCOL

from privet import keys, load, suites
from privet.compiler.executor import execute
from privet.errors import Misuse
from privet.runtime import Client, Credentials, Server
from privet.service.control import openapi
from privet.service.control.routes import ROUTES
from privet.service.records import RESTARTED, VERSION, Records
from privet.suites import Gmw

VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob("*/answer.json"))
TEXT = ("description", "summary", "title", "version", "tags", "info")
"""Keys of an OpenAPI document that promise nothing."""


@pytest.fixture(params=VERSIONS, ids=[path.name for path in VERSIONS])
def version(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a version's files, with keys of today."""
    folder = tmp_path / "files"
    shutil.copytree(request.param, folder)
    keys.make(folder / "keys", ())
    restore(folder, folder / "state", folder / "keys")
    return folder


def answer_of(version: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((version / "answer.json").read_text())
    return answer


def test_there_is_a_version_to_read() -> None:
    assert [path.name for path in VERSIONS][:1] == ["0.2.0"]


def test_a_program_is_read_and_means_the_same(version: Path) -> None:
    program, weights = load(version / "program")
    expected = answer_of(version)
    assert program.program_hash == expected["program"]
    result = execute(program, weights, [np.array(expected["input"])])
    assert result.outputs["y"].tolist() == expected["output"]


def test_a_policy_means_the_same(version: Path) -> None:
    """A later version may have more choices, and no other answer to these."""
    policy = json.loads(suites.make_policy(version / "policy.toml").text())
    assert contains(policy, answer_of(version)["policy"])


def contains(actual: Any, expected: Any) -> bool:
    """Whether all of `expected` is in `actual`."""
    if isinstance(expected, dict):
        return all(key in actual and contains(actual[key], expected[key]) for key in expected)
    return bool(actual == expected)


@contextmanager
def serving(version: Path) -> Iterator[int]:
    """The port of a server of the version's program with its half of the material."""
    credentials = Credentials.from_directory(version / "keys", "server")
    policy = suites.make_policy(version / "policy.toml")
    with Server(credentials, state=version / "state" / "server", policy=policy) as server:
        server.add_saved(version / "program")
        server.start()
        yield server.address[1]


def test_material_is_used_with_the_program(version: Path) -> None:
    expected = answer_of(version)
    credentials = Credentials.from_directory(version / "keys", "client")
    state = version / "state" / "client"
    with (
        serving(version) as port,
        Client("localhost", port, credentials, state=state, suite=Gmw(rounds="log")) as client,
    ):
        assert client.label == expected["label"]
        assert client.program_hash == expected["program"]
        assert client.ready() == [expected["material"]]
        result = client.infer([np.array(expected["input"])])
        assert result.material == expected["material"]
        assert result.outputs["y"].tolist() == expected["output"]
        assert client.ready() == []


GREETING = b"PRIVET"
TODAY = (9).to_bytes(2, "little")
"""The version of the wire, which follows the name in a greeting."""
REFUSED = {"kind": 2, "payload": "01"}
"""An abort, whose reason is the version."""


@contextmanager
def played(version: Path, request: bytes) -> Iterator[BinaryIO]:
    """What the server answers to a client that sends these frames."""
    context = ssl.create_default_context(cafile=str(version / "keys" / "ca.pem"))
    context.load_cert_chain(version / "keys" / "client.pem", version / "keys" / "client.key")
    context.set_alpn_protocols([PROTOCOL])
    with (
        serving(version) as port,
        socket.create_connection(("localhost", port), timeout=20.0) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as link,
        link.makefile("rb") as answers,
    ):
        link.sendall(request)
        certificate_accepted = answers.read(1)
        assert certificate_accepted
        yield answers


def recorded(version: Path, party: str, *, today: bool) -> bytes:
    """A party's frames; with `today`, it greets with the version of today."""
    frames = json.loads((version / "session.json").read_text())
    messages = [dict(frame) for frame in frames if frame["from"] == party]
    assert bytes.fromhex(messages[0]["payload"]) == GREETING + b"\1\0"
    if today:
        messages[0]["payload"] = (GREETING + TODAY).hex()
    return b"".join(frame_bytes(frame) for frame in messages)


def test_a_client_of_that_version_is_refused_by_its_number(version: Path) -> None:
    """What the two would make together would give wrong results: OTs are hashed in another way."""
    greeting = {"kind": 1, "payload": (GREETING + TODAY).hex()}
    refusal = frame_bytes(greeting) + frame_bytes(REFUSED)
    with played(version, recorded(version, "client", today=False)) as answers:
        assert answers.read(len(refusal)) == refusal


def test_an_inference_is_answered_as_in_that_version_but_for_the_greeting(version: Path) -> None:
    """A client of that version is played from its record; the online phase draws no randomness."""
    requests, replies = (recorded(version, party, today=True) for party in ("client", "server"))
    assert b'{"request":"infer"' in requests
    with played(version, requests) as answers:
        assert answers.read(len(replies)) == replies
        assert answers.read() == b""


def test_calls_of_a_service_stay_compatible(version: Path) -> None:
    old = json.loads((version / "openapi.json").read_text())
    today = json.loads(json.dumps(openapi.document(ROUTES, version.name)))
    assert list(broken(old, today)) == []


@pytest.mark.parametrize("change", ["path", "status", "parameter", "demand", "field", "kind"])
def test_a_call_that_changes_is_named(version: Path, change: str) -> None:
    old = json.loads((version / "openapi.json").read_text())
    new = copy.deepcopy(old)
    path = next(route for route in new["paths"] if "{" in route and "get" in new["paths"][route])
    call = new["paths"][path]["get"]
    if change == "path":
        del new["paths"][path]
    elif change == "status":
        del call["responses"]["200"]
    elif change == "parameter":
        del call["parameters"][0]
    elif change == "demand":
        call["parameters"].append({"name": "more", "in": "query", "required": True})
    else:
        error = new["components"]["schemas"]["Error"]
        name = next(iter(error["properties"]))
        if change == "field":
            del error["properties"][name]
        else:
            error["properties"][name]["type"] = "boolean"
    assert list(broken(old, new))


def broken(old: Any, new: Any, place: str = "", *, in_request: bool = False) -> Iterator[str]:
    """Places at which `new` keeps less than an OpenAPI document `old` promised.

    In what callers send (`in_request`), nothing may become required; in answers, nothing may go.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() - set(TEXT):
            if key not in new:
                yield f"{place}/{key}"
            else:
                sends = in_request or key in ("parameters", "requestBody")
                yield from broken(old[key], new[key], f"{place}/{key}", in_request=sends)
        if in_request and new.get("required") and not old.get("required"):
            yield f"{place}/required"
    elif isinstance(old, list) and isinstance(new, list):
        yield from _broken_lists(old, new, place, in_request)
    elif old != new and not place.endswith("/default"):
        yield place


def _broken_lists(old: list[Any], new: list[Any], place: str, in_request: bool) -> Iterator[str]:
    if place.endswith("/parameters"):
        before, now = (
            {parameter["name"]: parameter for parameter in parameters} for parameters in (old, new)
        )
        yield from broken(before, now, place, in_request=True)
        yield from (f"{place}/{name}" for name in now.keys() - before if now[name].get("required"))
    elif in_request and place.endswith("/required"):
        yield from (f"{place}: {entry}" for entry in new if entry not in old)
    else:
        yield from (f"{place}: {entry}" for entry in old if entry not in new)


def test_a_services_records_are_read_and_written_on(version: Path, tmp_path: Path) -> None:
    """The profiles and what was done stay; what was under way is said to be interrupted."""
    path = tmp_path / "service.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.executescript((version / "service.sql").read_text())
    records = Records(path)
    (profile,) = records.profiles()
    assert (profile["model"], profile["seconds"], profile["material"]) == ("digits/3", 1.5, 2048)
    (run,) = records.runs(0.0)
    assert (run.request, run.cores, run.memory) == ("0a", (0, 1), 1 << 20)
    assert records.interrupt(1.8e9 + 9) == 1
    success, failure = (records.past("cd" * 32, id) for id in ("0a", "0b"))
    assert success is not None
    assert failure is not None
    assert (success["outcome"], failure["outcome"], failure["reason"]) == (
        "done",
        "failed",
        RESTARTED,
    )
    records.add_run(replace(run, job="0a-2"))
    assert len(records.runs(0.0)) == 2
    records.close()


def test_records_of_a_later_version_are_refused_and_left(tmp_path: Path) -> None:
    path = tmp_path / "service.sqlite"
    Records(path).close()
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA user_version").fetchone() == (VERSION,)
        base.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(Misuse, match="later version"):
        Records(path)
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
        base.execute(f"PRAGMA user_version = {VERSION}")
    Records(path).close()
