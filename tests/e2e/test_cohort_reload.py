"""Certificates of a cohort's members and its service rotate and are revoked while members wait."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.processes import SOON, Running, listening, running
from tests.e2e.rotations import NOT_READ, READ, Log, Rotation, rotation
from tests.e2e.test_ckks_cohort import X, check, owner
from tests.e2e.test_ckks_cohort import until as event
from tests.e2e.test_commands import privet

from privet import keys as certificates

__all__ = ["owner", "rotation"]

pytestmark = pytest.mark.timeout(300)

AGAIN = "were read again"


@dataclass
class Scene:
    """A cohort of two: a service that reads `rotation.folder`, and members that read folders of
    their own."""

    rotation: Rotation
    address: str
    service: Running
    members: list[Running]
    folders: list[Path]
    logs: list[Log]
    """Those of the members, and the service's at last."""

    def infer(self, keys: Path) -> None:
        """Gets a prediction as a client of these keys, which must be right."""
        words = ["infer", self.address, "shared", "--suite", "ckks", "--scenario", "collective"]
        check(privet(*words, "--parties", 2, "--keys", keys, "--input", self.folders[0] / "x.npy"))
        for member in self.members:
            assert event(member, "helped")

    def put(self, member: int, keys: Path, *trusted: Path) -> None:
        """Gives a member these keys, which trust the authorities of some."""
        folder = self.folders[member]
        for end in ("pem", "key"):
            shutil.copy(keys / f"member-{member}.{end}", folder)
        self.rotation.trust(folder, *trusted)


@contextmanager
def cohort(rotation: Rotation, owner: Path, tmp_path: Path, *more: object) -> Iterator[Scene]:
    """Starts it; `more` are words of the members."""
    home = tmp_path / "repository" / "shared"
    (home / "1").mkdir(parents=True)
    shutil.copy(owner / "program.json", home / "1")
    text = 'suites = ["ckks"]\nscenario = "collective"\nparties = 2\ncores = 2\n'
    (home / "config.toml").write_text(text)
    folders = [Path(shutil.copytree(rotation.old, tmp_path / f"member {k}")) for k in range(2)]
    np.save(folders[0] / "x.npy", X)
    logs = [Log(tmp_path / f"log {k}") for k in range(3)]
    words = ["serve", tmp_path / "repository", "--keys", rotation.folder]
    words += ["--state", tmp_path / "state", "--cores", 2, "--grace", 60]
    with ExitStack() as stack:
        service, address = stack.enter_context(listening(*words, log=logs[2].path))
        members = []
        for k, program in enumerate((owner, owner / "program.json")):
            join = ["cohort", "join", address, program, "--member", k, "--parties", 2]
            join += ["--keys", folders[k], *more]
            members.append(stack.enter_context(running(*join, log=logs[k].path)))
        yield Scene(rotation, address, service, members, folders, logs)


def test_members_and_service_read_certificates_again(
    rotation: Rotation, owner: Path, tmp_path: Path
) -> None:
    old, new = rotation.old, rotation.new
    with cohort(rotation, owner, tmp_path) as testbed:
        testbed.infer(old)
        # Members change while an inference is under way, which goes on to its end.
        words: list[object] = ["infer", testbed.address, "shared", "--suite", "ckks"]
        words += ["--scenario", "collective"]
        words += ["--parties", 2, "--keys", old, "--input", testbed.folders[0] / "x.npy"]
        with running(*words) as client:
            for member in testbed.members:
                event(member, "begun")
            for k in range(2):
                testbed.put(k, new, old, new)
                testbed.logs[k].hangup(testbed.members[k], READ)
            rotation.put(new)
            testbed.logs[2].hangup(testbed.service, AGAIN)
            check(client.next())
            for member in testbed.members:
                assert event(member, "helped")
        testbed.infer(new)
        # A file that cannot be used leaves everything as it was.
        (testbed.folders[0] / "member-0.key").write_text("none")
        testbed.logs[0].hangup(testbed.members[0], NOT_READ)
        # The old authority is taken out everywhere.
        rotation.put(new, new)
        testbed.logs[2].hangup(testbed.service, AGAIN)
        for k in range(2):
            testbed.put(k, new, new)
            testbed.logs[k].hangup(testbed.members[k], READ)
        rotation.trust(new, new)
        testbed.infer(new)


@pytest.mark.parametrize("hears", [True, False], ids=["reloaded", "control"])
def test_a_member_whose_authority_is_gone_waits_no_more(
    rotation: Rotation, owner: Path, tmp_path: Path, hears: bool
) -> None:
    """The session in which it waits is cut, and it gets no other."""
    old, new = rotation.old, rotation.new
    with cohort(rotation, owner, tmp_path) as testbed:
        if hears:
            testbed.infer(old)
        rotation.put(new, new)
        if hears:
            testbed.logs[2].hangup(testbed.service, AGAIN)
            for member in testbed.members:
                assert member.process.wait(SOON) == 4
        else:
            rotation.trust(new, old, new)
            testbed.infer(old)


@pytest.mark.parametrize("hears", [True, False], ids=["reloaded", "control"])
def test_a_service_whose_authority_is_gone_has_no_member(
    rotation: Rotation, owner: Path, tmp_path: Path, hears: bool
) -> None:
    old, new = rotation.old, rotation.new
    with cohort(rotation, owner, tmp_path) as testbed:
        testbed.infer(old)
        testbed.put(1, old, new)
        if not hears:
            testbed.infer(old)
            return
        testbed.logs[1].hangup(testbed.members[1], READ)
        error = testbed.members[1].until(lambda line: "error" in line)["error"]
        assert "another authority" in error["message"]
        assert testbed.members[1].process.wait(SOON) == 4


def test_a_service_that_was_revoked_is_left(
    rotation: Rotation, owner: Path, tmp_path: Path
) -> None:
    path = tmp_path / "revoked"
    path.write_text(rotation.shown(rotation.old, "client"))
    with cohort(rotation, owner, tmp_path, "--revoked", path) as testbed:
        # The control: whoever is not on the list is helped.
        testbed.infer(rotation.old)
        path.write_text(certificates.fingerprint(rotation.folder / "server.pem"))
        for member in testbed.members:
            error = member.until(lambda line: "error" in line)["error"]
            assert "revoked" in error["message"]
            assert member.process.wait(SOON) == 4
        assert testbed.service.end(signal.SIGTERM) == 0
