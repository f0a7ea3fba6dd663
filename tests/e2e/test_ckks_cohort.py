"""A cohort of suite `ckks` as the commands of several hosts: a service, members and a client."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.processes import Running, listening, running
from tests.e2e.test_ckks_commands import RANGE, plain
from tests.e2e.test_commands import privet

import privet as library
from privet import keys, zoo

X = np.random.default_rng(3).uniform(0, 1, (1, 1, 28, 28)).astype(np.float32)


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
    np.save(folder / "x.npy", X)
    return folder


class Cohort:
    """A service that coordinates the cohort, and the words of the other commands."""

    def __init__(self, address: str, owner: Path, key_folder: Path, parties: int) -> None:
        self.address, self._owner, self._keys = address, owner, key_folder
        self._shared = ("--parties", parties)

    def join(self, member: int, *more: object, keys: Path | None = None) -> list[object]:
        """The words of a member."""
        program = self._owner if member == 0 else self._owner / "program.json"
        words = ["cohort", "join", self.address, program, "--member", member, *self._shared]
        return [*words, "--model", "shared", "--keys", keys or self._keys, *more]

    def infer(self, *more: object) -> list[object]:
        """The words of a client."""
        words = ["infer", self.address, "shared", "--suite", "ckks", "--scenario", "collective"]
        words += [*self._shared, "--keys", self._keys, "--input", self._keys / "x.npy"]
        return [*words, *more]


@contextmanager
def serving(
    folder: Path, owner: Path, key_folder: Path, *more: object, parties: int = 2
) -> Iterator[tuple[Running, Cohort]]:
    """A service of a repository with the public half alone, on two cores."""
    home = folder / "repository" / "shared"
    (home / "1").mkdir(parents=True, exist_ok=True)
    shutil.copy(owner / "program.json", home / "1")
    (home / "config.toml").write_text(
        f'suites = ["ckks"]\nscenario = "collective"\nparties = {parties}\ncores = 2\n'
    )
    words = ["serve", folder / "repository", "--keys", key_folder, "--state", folder / "state"]
    with listening(*words, "--cores", 2, *more) as (service, address):
        yield service, Cohort(address, owner, key_folder, parties)


@pytest.mark.parametrize("parties", [2, 3])
def test_members_help_with_one_inference_after_the_other(
    parties: int, nn5: Path, owner: Path, key_folder: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        serve = serving(tmp_path, owner, key_folder, parties=parties)
        _, cohort = stack.enter_context(serve)
        members = [stack.enter_context(running(*cohort.join(k))) for k in range(parties)]
        for _ in range(2):
            found = privet(*cohort.infer())
            np.testing.assert_allclose(found["output"], plain(nn5, X), atol=8e-3)
            assert found["plan"]["statistical"] is True
            assert "coordinator follows the protocol" in found["trust"]
            for k, member in enumerate(members):
                helped = member.next()
                assert (helped["event"], helped["member"]) == ("helped", k)
                assert helped["cost"]["bytes_client"] > 0
    assert not list((tmp_path / "state").rglob("*.safetensors")), "the coordinator has weights"
