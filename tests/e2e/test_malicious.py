"""Suite `fss` against parties that deviate, as hosts would run it: real processes, real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.test_commands import DIGITS, SEVEN, privet
from tests.e2e.test_dealer import FSS, TRUST, ask, hosts, stock

from privet.errors import Misuse
from privet.runtime import Client, Credentials
from privet.suites import Fss

MALICIOUS = (*FSS, "--security", "malicious")


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder)
    return folder


def setups(folder: Path, side: str) -> list[Path]:
    """The setups that a party keeps."""
    paths = (folder / side / side / "setups").glob("*/*")
    return [path for path in paths if len(path.name) == 32]


def lie(path: Path, liar: str) -> None:
    """Changes what a party was dealt, so that it deviates: its seed, or at the server its codes."""
    content = bytearray(path.read_bytes())
    for place in range(16) if liar == "client" else range(16, len(content)):
        content[place] ^= 1
    path.write_bytes(content)


def test_run_says_what_it_withstands_and_what_it_costs() -> None:
    result = privet("run", DIGITS, "--input", SEVEN, *MALICIOUS)
    expected = {"suite": "fss", "security": "malicious", "correlations": "dealer", "trust": TRUST}
    assert {name: result[name] for name in expected} == expected
    assert int(np.argmax(result["output"])) == 7
    assert result["argmax_agrees"] is True
    assert result["max_abs_error"] < 0.1
    forecast = privet("inspect", DIGITS, *MALICIOUS)["forecast"]
    for party in ("client", "server"):
        assert result["online"][f"bytes_{party}"] == forecast[f"online_bytes_{party}"]
    assert result["online"]["rounds"] == forecast["online_rounds"]
    assert result["dealer"]["bytes_client"] == forecast["dealer_bytes_client"]
    # The server gets codes for its weights besides, once.
    codes = 16 * forecast["correlations"]["authenticated_weights"]
    assert 0 < result["dealer"]["bytes_server"] - forecast["dealer_bytes_server"] - codes < 100
    assert sum(layer["bytes_keys"] for layer in result["layers"]) > 0
    semi_honest = privet("run", DIGITS, "--input", SEVEN, *FSS)
    assert semi_honest["security"] == "semi-honest"
    assert result["online"]["bytes_server"] > semi_honest["online"]["bytes_server"]


def test_two_parties_keep_a_setup_until_one_of_them_deviates(
    key_folder: Path, tmp_path: Path
) -> None:
    with hosts(key_folder, tmp_path) as (dealer, server):
        words = ask(server, dealer, key_folder, tmp_path, MALICIOUS)
        names: set[str] = set()
        for liar in ("client", "server"):
            for _ in range(2):
                result = privet(*words)
                assert (result["security"], int(np.argmax(result["output"]))) == ("malicious", 7)
            assert stock(words, 1)["ready"] == 1
            client_setups, server_setups = setups(tmp_path, "client"), setups(tmp_path, "server")
            assert [path.name for path in client_setups] == [path.name for path in server_setups]
            (setup,) = server_setups if liar == "server" else client_setups
            lie(setup, liar)
            failure = privet(*words, code=4)["error"]
            assert failure["type"] == "PeerMisbehaved"
            assert setups(tmp_path, "client") == setups(tmp_path, "server") == []
            names.add(setup.name)
        # Another one takes its place, and nothing is left of what was made with the old ones.
        assert int(np.argmax(privet(*words)["output"])) == 7
        (setup,) = setups(tmp_path, "client")
        assert len(names | {setup.name}) == 3
        for side in ("client", "server"):
            assert not list((tmp_path / side / side / "ready").iterdir())


def test_nothing_takes_the_place_of_the_malicious_mode(key_folder: Path, tmp_path: Path) -> None:
    credentials = Credentials.from_directory(key_folder, "client")
    options: dict[str, Any] = {
        "suite": Fss(security="malicious"),
        "dealer": "127.0.0.1:1",
    }
    for suite in ("gmw", "fss"):
        with pytest.raises(Misuse, match="no suite to fall back to"):
            Client("127.0.0.1", 1, credentials, state=tmp_path, when_dry=suite, **options)
    assert not (tmp_path / "client").exists()
    failure = privet("run", DIGITS, "--input", SEVEN, "--security", "malicious", code=2)["error"]
    assert "--security is an option of suite fss" in failure["message"]
