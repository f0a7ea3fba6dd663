"""What parties keep on their disks under a key: nothing readable, and predictions as without."""

from __future__ import annotations

import queue
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.scene import INPUT, small_model

from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.errors import MaterialError, Misuse
from privet.runtime import Client, Credentials, Dealer, MaterialStore, Server
from privet.state_key import VARIABLE
from privet.suites import Fss, Gmw, MaterialSuite

WAYS: tuple[MaterialSuite, ...] = (
    Gmw(),
    Gmw(correlations="dealer"),
    Fss(),
    Fss(security="malicious"),
)
"""The second keeps hidden weights, the last setups."""


def give_key(folder: Path, monkeypatch: pytest.MonkeyPatch, digit: str = "1") -> None:
    """Puts a key where processes find it."""
    path = folder / f"key-{digit}"
    path.write_text(digit * 64)
    monkeypatch.setenv(VARIABLE, f"file:{path}")


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


def predictions(compiled: Compiled, keys: Path, folder: Path, suite: MaterialSuite) -> None:
    """Two sessions on the same state: the second uses what the first one made."""
    server_credentials, client_credentials, dealers = (
        Credentials.from_directory(keys, role) for role in ("server", "client", "dealer")
    )
    expected = execute(compiled.program, compiled.weights, {"x": INPUT}).outputs["y"]
    with Dealer(dealers) as dealer:
        host, port = dealer.start().address
        options: dict[str, Any] = {"dealer": f"{host}:{port}"}
        served: queue.Queue[str] = queue.Queue()
        for _ in range(2):
            with Server(
                server_credentials,
                state=folder,
                on_finished=lambda event: served.put(event.kind),
                **options,
            ) as server:
                server.add(compiled.program, compiled.weights)
                place = server.start().address
                with Client(
                    *place, client_credentials, state=folder, suite=suite, **options
                ) as client:
                    client.prepare()
                    client.prepare()
                    result = client.infer([INPUT])
                    assert np.abs(result.outputs["y"] - expected).max() < 0.01
                # By then the server has removed what is spent.
                while served.get(timeout=10) != "inferred":
                    pass


def entropy(path: Path) -> float:
    """Bits of a byte, as often as bytes occur in a file."""
    counts = np.bincount(np.frombuffer(path.read_bytes(), np.uint8), minlength=256)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def secrets_of(folder: Path) -> list[Path]:
    """All files of both stores that hold anything but locks, counts and markers."""
    folders = ("ready", "setups", "secrets", "hidden", "base")
    files = [path for party in ("client", "server") for path in (folder / party).rglob("*")]
    parts = [file for file in files if file.is_file() and file.stat().st_size > 0]
    return [part for part in parts if part.relative_to(folder).parts[1] in folders]


@pytest.mark.parametrize("suite", WAYS, ids=["gmw", "gmw-dealt", "fss", "fss-malicious"])
def test_predictions_with_a_key_and_nothing_to_read_on_the_disk(
    suite: MaterialSuite,
    compiled: Compiled,
    key_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_key(tmp_path, monkeypatch)
    sealed, plain = tmp_path / "sealed", tmp_path / "plain"
    predictions(compiled, key_folder, sealed, suite)
    files = secrets_of(sealed)
    assert all(file.read_bytes().startswith(b"PRIVETS1") for file in files)
    folders = {file.relative_to(sealed).parts[1] for file in files}
    # The control: without a key the same files are there, and metadata is text.
    monkeypatch.delenv(VARIABLE)
    predictions(compiled, key_folder, plain, suite)
    assert {path.relative_to(plain).parts[1] for path in secrets_of(plain)} == folders
    assert len(secrets_of(plain)) == len(files)
    program = compiled.program.program_hash.encode()
    for folder, readable in ((plain, True), (sealed, False)):
        texts = [path.read_bytes() for path in secrets_of(folder)]
        assert any(program in text for text in texts) == readable
    assert all(entropy(file) > 7 for file in files if file.stat().st_size > 1000)


def test_another_key_and_none_are_refused_in_words(
    compiled: Compiled, key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(tmp_path, monkeypatch)
    predictions(compiled, key_folder, tmp_path, Gmw())
    assert len(MaterialStore(tmp_path).entries()) == 2
    give_key(tmp_path, monkeypatch, "2")
    with pytest.raises(Misuse, match="encrypted under another key"):
        MaterialStore(tmp_path)
    server_credentials = Credentials.from_directory(key_folder, "server")
    with pytest.raises(Misuse, match="encrypted under another key"):
        Server(server_credentials, state=tmp_path)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(Misuse, match=r"is encrypted: give its key.*PRIVET_STATE_KEY=file:PATH"):
        MaterialStore(tmp_path)


def test_an_entry_that_was_changed_is_never_used(
    compiled: Compiled, key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(tmp_path, monkeypatch)
    predictions(compiled, key_folder, tmp_path, Gmw())
    for path in (tmp_path / "client" / "ready").glob("*.material"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    server_credentials, client_credentials = (
        Credentials.from_directory(key_folder, role) for role in ("server", "client")
    )
    with Server(server_credentials, state=tmp_path) as server:
        server.add(compiled.program, compiled.weights)
        client = Client(*server.start().address, client_credentials, state=tmp_path)
        with pytest.raises((MaterialError, Misuse), match="changed since they were encrypted"):
            client.infer([INPUT])


def test_the_restore_that_the_page_describes(
    compiled: Compiled, key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's store is set back and emptied; the client keeps its half, which is refused."""
    give_key(tmp_path, monkeypatch)
    page = Path("docs/how-to/state.md").read_text()
    words = next(line for line in page.splitlines() if "rm -rf" in line).split("rm -rf ")[1].split()
    predictions(compiled, key_folder, tmp_path, Gmw())
    server_store = tmp_path / "server"
    left = {folder.name for folder in server_store.iterdir() if folder.is_dir()} - {
        *words,
        "answers",
    }
    assert left <= {"programs"}
    for word in words:
        path = server_store / word
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    server_credentials, client_credentials = (
        Credentials.from_directory(key_folder, role) for role in ("server", "client")
    )
    with Server(server_credentials, state=tmp_path) as server:
        server.add(compiled.program, compiled.weights)
        place = server.start().address
        client = Client(*place, client_credentials, state=tmp_path)
        with pytest.raises(MaterialError, match="no preprocessed material is left"):
            client.infer([INPUT])
    for entry in MaterialStore(tmp_path).entries():
        MaterialStore(tmp_path).discard([entry.id])
    predictions(compiled, key_folder, tmp_path, Gmw())
