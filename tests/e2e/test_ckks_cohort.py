"""A cohort of suite `ckks` as the commands of several hosts: a service, members and a client."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.processes import Running, listening, running
from tests.e2e.test_ckks_commands import RANGE, plain
from tests.e2e.test_commands import privet

import privet as library
from privet import keys, zoo

MODEL = Path(__file__).parents[2] / "zoo" / "models" / "digits-smooth" / "square.onnx"

X = np.random.default_rng(3).uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the owner of the model compiled; `program.json` in it is for everybody."""
    folder = tmp_path_factory.mktemp("owner") / "program"
    report = privet("compile", MODEL, folder, "--suite", "ckks", *RANGE)
    assert report["program"] == str(folder / "program.json")
    return folder


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder, "--members", "3")
    np.save(folder / "x.npy", X)
    return folder


class Cohort:
    """A service that coordinates the cohort, and the words of the other commands."""

    def __init__(self, address: str, owner: Path, key_folder: Path, parties: int) -> None:
        self.address, self._owner, self._keys = address, owner, key_folder
        self._shared = ("--parties", parties)

    def join(self, member: int, *extra: object, identity: Path | None = None) -> list[object]:
        """The words of a member."""
        program = self._owner if member == 0 else self._owner / "program.json"
        words: list[object] = ["cohort", "join", self.address, program, "--member", member]
        return [*words, *self._shared, "--keys", identity or self._keys, *extra]

    def infer(self, *extra: object, identity: Path | None = None) -> list[object]:
        """The words of a client."""
        words: list[object] = ["infer", self.address, "shared", "--suite", "ckks"]
        words += ["--scenario", "collective", *self._shared, "--keys", identity or self._keys]
        return [*words, "--input", self._keys / "x.npy", *extra]

    def check(self) -> None:
        """Gets a prediction, which must be right."""
        check(privet(*self.infer()))


def check(report: Any) -> None:
    """A prediction is right, and says what it rests on."""
    np.testing.assert_allclose(report["output"], plain(MODEL, X), atol=8e-3)
    assert report["plan"]["statistical"] is True
    assert report["weaknesses"] == []
    assert "coordinator follows the protocol" in report["trust"]


@contextmanager
def serving(
    folder: Path, owner: Path, key_folder: Path, *extra: object, parties: int = 2
) -> Iterator[Cohort]:
    """A service of a repository with the public half alone, on two cores."""
    home = folder / "repository" / "shared"
    (home / "1").mkdir(parents=True)
    shutil.copy(owner / "program.json", home / "1")
    (home / "config.toml").write_text(
        f'suites = ["ckks"]\nscenario = "collective"\nparties = {parties}\ncores = 2\n'
    )
    words = ["serve", folder / "repository", "--keys", key_folder, "--state", folder / "state"]
    with listening(*words, "--cores", 2, "--grace", 60, *extra) as (_, address):
        yield Cohort(address, owner, key_folder, parties)


def until(member: Running, event: str) -> dict[str, Any]:
    """The next such event of a member."""
    return member.until(lambda line: line["event"] == event)


def test_members_help_with_one_inference_after_the_other(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        cohort = stack.enter_context(serving(tmp_path, owner, key_folder, parties=3))
        members = [stack.enter_context(running(*cohort.join(k))) for k in range(3)]
        for _ in range(2):
            cohort.check()
            for k, member in enumerate(members):
                helped = until(member, "helped")
                assert helped["member"] == k
                assert helped["cost"]["bytes_client"] > 0
    assert not list((tmp_path / "state").rglob("*.safetensors")), "the coordinator has weights"


def test_an_absent_member_is_named_and_the_next_inference_has_it(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    with (
        serving(tmp_path, owner, key_folder, "--grace", 15) as cohort,
        running(*cohort.join(0)) as owning,
    ):
        error = privet(*cohort.infer(), code=4)["error"]
        assert error["type"] == "PeerBusy"
        # Member 0 may not have been there either, on a machine that is slow to start it.
        assert "member 1 ha" in error["message"]
        assert "not come: try again later" in error["message"]
        with running(*cohort.join(1)):
            cohort.check()
        # Nothing had begun for the client that was refused.
        assert until(owning, "begun")["member"] == 0
        assert owning.next()["event"] == "helped"


def test_a_member_that_dies_in_an_inference_is_named_and_the_others_wait_on(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        cohort = stack.enter_context(serving(tmp_path, owner, key_folder))
        owning = stack.enter_context(running(*cohort.join(0)))
        with running(*cohort.join(1)) as other:
            client = stack.enter_context(running(*cohort.infer()))
            until(other, "begun")
        error = client.next()["error"]
        assert "member 1 of the cohort left" in error["message"]
        assert until(owning, "failed")["member"] == 0
        stack.enter_context(running(*cohort.join(1)))
        cohort.check()
        assert until(owning, "helped")["member"] == 0


def test_a_seat_is_for_the_certificate_of_its_member_alone(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        cohort = stack.enter_context(serving(tmp_path, owner, key_folder))
        for role in ("client", "member-2", "member-0"):
            identity = disguised(tmp_path, key_folder, role, "member-1")
            error = privet(*cohort.join(1, identity=identity), code=4)["error"]
            assert "is not that of member 1" in error["message"]
        # Whoever has the certificate gets the seat.
        for member in range(2):
            stack.enter_context(running(*cohort.join(member)))
        cohort.check()


@pytest.mark.parametrize(
    ("role", "reason"),
    [
        ("server", "the coordinator signed the client's public key"),
        ("member-1", "member 1 signed the client's public key"),
    ],
)
def test_members_hand_no_result_to_the_coordinator_or_a_member(
    role: str, reason: str, owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    """The relay at a member tells it whose certificate the service has. The control is every other
    test, in which a client's certificate gets its result."""
    identity = disguised(tmp_path, key_folder, role, "client")
    with (
        serving(tmp_path, owner, key_folder) as cohort,
        running(*cohort.join(0)) as owning,
        running(*cohort.join(1)),
    ):
        privet(*cohort.infer(identity=identity), code=4)
        assert reason in until(owning, "failed")["message"]


def disguised(folder: Path, key_folder: Path, role: str, name: str) -> Path:
    """Keys among which those of one party are called as another's."""
    identity = folder / f"{role} as {name}"
    identity.mkdir()
    shutil.copy(key_folder / "ca.pem", identity)
    for suffix in ("pem", "key"):
        shutil.copy(key_folder / f"{role}.{suffix}", identity / f"{name}.{suffix}")
    return identity


def test_parties_must_mean_the_same(owner: Path, key_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    privet("compile", MODEL, other, "--suite", "ckks", *RANGE)  # a fresh salt, another program
    with serving(tmp_path, owner, key_folder) as cohort:
        words = cohort.join(0)
        words[3] = other
        error = privet(*words, code=4)["error"]
        assert "this cohort has 2 members and program" in error["message"]
        for words in (cohort.join(0, "--flooding", "light"), cohort.infer("--flooding", "light")):
            error = privet(*words, code=4)["error"]
            assert error["type"] == "NotAccepted"
            assert "flooded statistically" in error["message"]


def test_policy_and_revocation_hold_for_clients_and_members(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "revoked"
    path.write_text("")
    words = ("--answers-per-hour", 1, "--revoked", path)
    with ExitStack() as stack:
        cohort = stack.enter_context(serving(tmp_path, owner, key_folder, *words))
        members = [stack.enter_context(running(*cohort.join(k))) for k in range(2)]
        cohort.check()
        for member in members:
            assert until(member, "helped")
        error = privet(*cohort.infer(), code=4)["error"]
        assert "1 answers in an hour" in error["message"]
        # A member that is revoked is let go and comes in no more, while it waits as well.
        path.write_text(keys.fingerprint(key_folder / "member-1.pem"))
        assert members[1].process.wait(60) == 4
        error = privet(*cohort.join(1), code=4)["error"]
        assert (error["type"], "revoked" in error["message"]) == ("NotAccepted", True)


def test_a_member_that_asks_as_a_client_has_no_more_in_a_minute(
    owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    as_client = disguised(tmp_path, key_folder, "member-1", "client")
    words = ("--requests-per-minute", 1, "--grace", 1)
    with serving(tmp_path, owner, key_folder, *words) as cohort:
        errors = [privet(*cohort.infer(identity=as_client), code=4)["error"] for _ in range(2)]
    assert "not come" in errors[0]["message"]
    assert "more than 1 inferences in a minute" in errors[1]["message"]


def test_member_0_must_have_the_model(owner: Path, key_folder: Path) -> None:
    words = ["cohort", "join", "127.0.0.1:1", owner / "program.json", "--member", 0]
    words += ["--keys", key_folder]
    assert "member 0 has the model" in privet(*words, code=2)["error"]["message"]


@pytest.mark.slow
def test_twenty_members(tmp_path: Path) -> None:
    run = library.run(
        zoo.build("nn5", tmp_path),
        suite=library.Ckks(scenario="collective", parties=20),
        input_range=(0, 1),
        timeout=1200,
    )
    assert run.config.facts()["parties"] == 20
    assert run.argmax_agrees
    assert run.max_abs_error < 8e-3
