"""Encrypted weights that a client keeps: sent once, and anew when they are lost or damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import model, node

from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.errors import MaterialError, NotAccepted, StoreFull
from privet.runtime import Client, Credentials, Server
from privet.suites import Gmw, make_policy

ROWS, INNER, COLUMNS = 16, 64, 1024
INPUT = np.random.default_rng(3).uniform(-1, 1, (ROWS, INNER)).astype(np.float32)
Session = Callable[..., AbstractContextManager[Client]]
SUITE = Gmw(encrypts="weights", rounds="log")


def network(seed: int, inner: int = INNER) -> onnx.ModelProto:
    """Two products of one input, whose weights are kept, and a small one, whose are not."""
    rng = np.random.default_rng(seed)
    weights = {
        "v": rng.uniform(-0.2, 0.2, (inner, COLUMNS)),
        "w": rng.uniform(-0.2, 0.2, (inner, COLUMNS)),
        "u": rng.uniform(-0.1, 0.1, (COLUMNS, 2)),
    }
    nodes = [
        node("MatMul", ["x", "v"], ["a"]),
        node("MatMul", ["x", "w"], ["b"]),
        node("Add", ["a", "b"], ["sum"]),
        node("Relu", ["sum"], ["h"]),
        node("MatMul", ["h", "u"], ["y"]),
    ]
    for index, operator in enumerate(nodes):
        operator.name = f"{operator.op_type}{index}"
    return model(
        nodes, {"x": (ROWS, inner)}, ["y"], {k: v.astype(np.float32) for k, v in weights.items()}
    )


def compiled(folder: Path, seed: int) -> Compiled:
    path = folder / f"{seed}.onnx"
    onnx.save(network(seed), path)
    return compile(path, input_range=(-1, 1), name="kept")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[Compiled]:
    """Two models of the same shapes."""
    folder = tmp_path_factory.mktemp("models")
    return [compiled(folder, seed) for seed in (1, 2)]


@pytest.fixture
def session(key_folder: Path, tmp_path: Path) -> Session:
    """A client of a server of a program; both keep their state between sessions."""

    @contextmanager
    def open_(source: Compiled, max_disk: int | None = None) -> Iterator[Client]:
        server_credentials, client_credentials = (
            Credentials.from_directory(key_folder, role) for role in ("server", "client")
        )
        policy = make_policy(encrypts="weights")
        with Server(server_credentials, state=tmp_path, policy=policy) as server:
            server.add(source.program, source.weights)
            place = server.start().address
            options: dict[str, Any] = {"keep_base_ots": False, "max_disk": max_disk}
            with Client(
                *place, client_credentials, state=tmp_path, suite=SUITE, **options
            ) as client:
                yield client

    return open_


def setup_bytes(client: Client, source: Compiled) -> int:
    """Prepares, checks the prediction, and tells what was sent for it once."""
    (material,) = client.prepare()
    result = client.infer([INPUT], material=material)
    expected = execute(source.program, source.weights, {"x": INPUT}).integers[0]
    assert np.array_equal(result.integers[0], expected)
    assert result.offline is not None
    return result.offline.bytes_setup


def kept_file(folder: Path) -> Path:
    (path,) = (folder / "client" / "kept").iterdir()
    return path


def test_weights_are_sent_once_for_all_preparations(
    programs: list[Compiled], session: Session, tmp_path: Path
) -> None:
    with session(programs[0]) as client:
        kept_bytes = client.forecast.kept_bytes
        assert kept_bytes > 1_000_000
        (material,) = client.prepare()
        offline = client.infer([INPUT], material=material).offline
        assert offline is not None
        assert kept_bytes < offline.bytes_setup < kept_bytes + 2_000
        forecast = client.forecast
        assert offline.bytes_client == forecast.offline_bytes_client
        assert offline.bytes_server == forecast.offline_bytes_server
        assert offline.rounds == forecast.offline_rounds
        assert setup_bytes(client, programs[0]) == 0
    with session(programs[0]) as client:
        assert setup_bytes(client, programs[0]) == 0
    assert kept_file(tmp_path).stat().st_size > kept_bytes


def test_weights_are_sent_anew_when_a_party_lost_them_or_serves_others(
    programs: list[Compiled], session: Session, tmp_path: Path
) -> None:
    first, other = programs

    def sent(source: Compiled) -> bool:
        with session(source) as client:
            return setup_bytes(client, source) > 0

    assert sent(first)
    kept_file(tmp_path).unlink()
    assert sent(first)
    path = kept_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    assert sent(first)
    path.write_bytes(b"something else")
    assert sent(first)
    assert not sent(first)
    shutil.rmtree(tmp_path / "server" / "secrets")
    assert sent(first)
    assert not sent(first)
    # Of other weights nothing is kept yet; the first ones' stay.
    assert sent(other)
    assert not sent(first)


def test_weights_beyond_the_limit_on_disk_take_the_place_of_others(
    programs: list[Compiled],
    session: Session,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with session(programs[0]) as client:
        setup_bytes(client, programs[0])
        kept_bytes, entry = client.forecast.kept_bytes, client.entry_bytes
    first = kept_file(tmp_path)
    with (
        pytest.raises(StoreFull, match="is the limit for all"),
        session(programs[1], kept_bytes // 2) as client,
    ):
        client.prepare()
    assert first.exists()
    with session(programs[1], entry + kept_bytes + kept_bytes // 2) as client:
        assert setup_bytes(client, programs[1]) > 0
    assert kept_file(tmp_path) != first
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"of program {programs[0].program.program_hash[:16]} from server" in warning
    assert "were removed, and will be fetched anew: " in warning


def test_damaged_weights_are_detected_and_fetched_again(
    programs: list[Compiled], session: Session, tmp_path: Path
) -> None:
    with session(programs[0]) as client:
        setup_bytes(client, programs[0])
    path = kept_file(tmp_path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    with (
        pytest.raises(MaterialError, match="fetches the weights anew"),
        session(programs[0]) as client,
    ):
        client.prepare()
    with session(programs[0]) as client:
        assert setup_bytes(client, programs[0]) > 0


def test_a_server_has_to_accept_that_weights_are_kept(
    programs: list[Compiled], key_folder: Path, tmp_path: Path
) -> None:
    server_credentials, client_credentials = (
        Credentials.from_directory(key_folder, role) for role in ("server", "client")
    )
    message = "encrypts weights: accepted for you: masks"
    with Server(server_credentials, state=tmp_path) as server:
        server.add(programs[0].program, programs[0].weights)
        place = server.start().address
        with (
            pytest.raises(NotAccepted, match=message),
            Client(*place, client_credentials, state=tmp_path, suite=SUITE) as client,
        ):
            client.prepare()
    assert not list((tmp_path / "client" / "kept").iterdir())
