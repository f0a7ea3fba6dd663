"""A cohort of suite `ckks` as the commands of several hosts: coordinator, members and client."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.processes import listening, running
from tests.e2e.test_ckks_commands import RANGE, plain
from tests.e2e.test_commands import privet

import privet as library
from privet import keys, zoo


@pytest.fixture(scope="module")
def nn5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.build("nn5", tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def owner(nn5: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the owner of the model compiled; `program.json` in it is for everybody."""
    folder = tmp_path_factory.mktemp("owner") / "program"
    made = privet("compile", nn5, folder, "--suite", "ckks", *RANGE)
    assert made["program"] == str(folder / "program.json")
    return folder


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder, "--members", "3")
    return folder


@pytest.mark.parametrize("parties", [2, 3])
def test_hosts_of_a_cohort(
    parties: int, nn5: Path, owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    x = np.random.default_rng(parties).uniform(0, 1, (1, 1, 28, 28)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    public = owner / "program.json"
    shared: tuple[object, ...] = ("--parties", parties, "--keys", key_folder)
    with ExitStack() as stack:
        hub, address = stack.enter_context(listening("cohort", "coordinate", public, *shared))
        members = [
            stack.enter_context(
                running("cohort", "join", address, public if k else owner, "--member", k, *shared)
            )
            for k in range(parties)
        ]
        asked = ("cohort", "infer", address, public, *shared)
        found = privet(*asked, "--input", tmp_path / "x.npy")
        assert [hub.next()["event"] for _ in range(2)] == ["prepared", "inferred"]
        for k, member in enumerate(members):
            helped = member.next()
            assert helped["member"] == k
            assert helped["cost"]["bytes_client"] > 0
    np.testing.assert_allclose(found["output"], plain(nn5, x), atol=8e-3)
    assert found["plan"]["statistical"] is True


def test_who_is_absent_or_has_the_wrong_program_is_named(
    nn5: Path, owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    privet("compile", nn5, other, "--suite", "ckks", *RANGE)  # a fresh salt, another program
    shared: tuple[object, ...] = ("--parties", 3, "--keys", key_folder)
    public = owner / "program.json"
    with ExitStack() as stack:
        hub, address = stack.enter_context(
            listening("cohort", "coordinate", public, *shared, "--timeout", "8")
        )
        join = ("cohort", "join", address)
        stack.enter_context(running(*join, public, "--member", 2, *shared))
        refused = privet(*join, other, "--member", 0, *shared, code=4)
        assert "this cohort has 3 members and program" in refused["error"]["message"]
        failed = hub.next()
    assert "member 0, member 1, the client has not come within 8s" in failed["error"]["message"]


def test_a_coordinator_refuses_who_asks_for_light_flooding(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 28, 28), np.float32))
    shared: tuple[object, ...] = ("--parties", 2, "--keys", key_folder)
    public = owner / "program.json"
    with listening("cohort", "coordinate", public, *shared, "--timeout", 60) as (hub, address):
        join = ("cohort", "join", address)
        member = (*join, owner, "--member", 0, *shared)
        client = ("cohort", "infer", address, public, *shared, "--input", tmp_path / "x.npy")
        for words in (member, client):
            refused = privet(*words, "--flooding", "light", code=4)["error"]
            assert refused["type"] == "NotAccepted"
            assert "flooded statistically" in refused["message"]
        # They took no seat: who asks for what the coordinator does is served.
        with (
            running(*member),
            running(*join, public, "--member", 1, *shared),
        ):
            assert privet(*client)["weaknesses"] == []
            assert hub.next()["event"] == "prepared"


def test_a_coordinator_turns_a_revoked_client_away(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 28, 28), np.float32))
    shared: tuple[object, ...] = ("--parties", 2, "--keys", key_folder)
    public, path = owner / "program.json", tmp_path / "revoked"
    path.write_text(keys.fingerprint(key_folder / "client.pem"))
    words = ("cohort", "coordinate", public, *shared, "--revoked", path)
    with listening(*words) as (_, address):
        join = ("cohort", "join", address)
        with (
            running(*join, owner, "--member", 0, *shared),
            running(*join, public, "--member", 1, *shared),
        ):
            asked = ("cohort", "infer", address, public, *shared, "--input", tmp_path / "x.npy")
            refused = privet(*asked, code=4)["error"]
            assert refused["type"] == "NotAccepted"
            assert "this certificate was revoked" in refused["message"]


def test_member_0_must_have_the_model(owner: Path, key_folder: Path) -> None:
    words = ["cohort", "join", "127.0.0.1:1", owner / "program.json", "--member", 0]
    words += ["--keys", key_folder]
    assert "member 0 has the model" in privet(*words, code=2)["error"]["message"]


@pytest.mark.slow
def test_twenty_members(nn5: Path) -> None:
    run = library.run(
        nn5,
        suite=library.Ckks(scenario="collective", parties=20),
        input_range=(0, 1),
        timeout=1200,
    )
    assert run.config.facts()["parties"] == 20
    assert run.argmax_agrees
    assert run.max_abs_error < 8e-3
