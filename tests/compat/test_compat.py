"""What an earlier version left on a disk is still good: its program, its material, its policy.

Entries are for a peer by its certificate, and certificates expire. So tests name new ones in the
metadata; nothing else of the files is touched.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet import keys, load, suites
from privet.compiler.executor import execute
from privet.runtime import Client, Credentials, Server
from privet.suites import Gmw

VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob("*/answer.json"))
OTHER = {"client": "server", "server": "client"}


@pytest.fixture(params=VERSIONS, ids=[path.name for path in VERSIONS])
def version(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a version's files, with keys of today."""
    folder = tmp_path / "files"
    shutil.copytree(request.param, folder)
    keys.make(folder / "keys", ())
    for side, other in OTHER.items():
        (path,) = (folder / side / "ready").glob("*.json")
        peer = keys.fingerprint(folder / "keys" / f"{other}.pem")
        metadata = json.loads(path.read_text()) | {"peer": peer}
        path.write_text(json.dumps(metadata))
        shutil.copytree(folder / side, folder / "state" / side / side)
    return folder


def told(version: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((version / "answer.json").read_text())
    return found


def test_there_is_a_version_to_read() -> None:
    assert [path.name for path in VERSIONS][:1] == ["0.2.0"]


def test_a_program_is_read_and_means_the_same(version: Path) -> None:
    program, weights = load(version / "program")
    expected = told(version)
    assert program.program_hash == expected["program"]
    found = execute(program, weights, [np.array(expected["input"])])
    assert found.outputs["y"].tolist() == expected["output"]


def test_a_policy_means_the_same(version: Path) -> None:
    """A later version may have more choices, and no other answer to these."""
    found = json.loads(suites.make_policy(version / "policy.toml").text())
    assert contains(found, told(version)["policy"])


def contains(found: Any, expected: Any) -> bool:
    """Whether all of `expected` is in `found`."""
    if isinstance(expected, dict):
        return all(key in found and contains(found[key], expected[key]) for key in expected)
    return bool(found == expected)


def test_material_is_used_with_the_program(version: Path) -> None:
    expected = told(version)
    server, client = (
        Credentials.from_directory(version / "keys", side) for side in ("server", "client")
    )
    policy = suites.make_policy(version / "policy.toml")
    with Server(server, state=version / "state" / "server", policy=policy) as serving:
        serving.add_saved(version / "program")
        serving.start()
        host, port = serving.address
        state = version / "state" / "client"
        with Client(host, port, client, state=state, suite=Gmw(rounds="log")) as asking:
            assert asking.label == expected["label"]
            assert asking.program_hash == expected["program"]
            assert asking.ready() == [expected["material"]]
            found = asking.infer([np.array(expected["input"])])
            assert found.material == expected["material"]
            assert found.outputs["y"].tolist() == expected["output"]
            assert asking.ready() == []
