"""What the sessions of one client may do under one grant."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from privet.errors import LinkError
from privet.runtime import PhaseCost
from privet.service import admission as module
from privet.service.admission import Admission
from privet.service.confinement import MemoryBound
from privet.service.executor.grant import Grant

FETCH_FIRST = "the weights have to be fetched first, by a job for that"


class Link:
    """A connection, broken or not."""

    def __init__(self) -> None:
        self.is_broken = False

    def stop(self) -> None:
        self.is_broken = True


class Bound(MemoryBound):
    """A bound on memory beyond all that a process that tests other things as well may take."""

    def __init__(self, _: int, *arguments: Any) -> None:
        super().__init__(1 << 45, *arguments)


@pytest.fixture
def events() -> list[str]:
    """What the worker told its executor."""
    return []


@pytest.fixture
def admission(monkeypatch: pytest.MonkeyPatch, events: list[str]) -> Iterator[Admission]:
    """Under a grant to prepare."""
    monkeypatch.setattr(module, "MemoryBound", Bound)
    monkeypatch.setattr(module.confinement, "pin", lambda _: None)
    monkeypatch.setattr(module.confinement, "give_back_memory", lambda: None)
    admissions = Admission(lambda event, **_: events.append(event), lambda: os._exit(1))
    admissions.open(
        Grant("job", "prepare", "client", "program", "gmw", "here", (0,), 1 << 30, 60.0)
    )
    yield admissions
    admissions.revoke("job")


def test_no_other_session_ends_a_running_preparation(
    admission: Admission, events: list[str]
) -> None:
    link = Link()
    first, second = admission.session("client", link), admission.session("client", Link())
    assert second.admit("kept_weights", "program", "gmw") is None
    assert first.admit("prepare", "program", "gmw") is None
    assert second.admit("send_weights", "program", "gmw") == FETCH_FIRST
    assert events == ["granted"]
    assert not link.is_broken


def test_a_job_that_takes_a_while_is_told_to_have_started(
    admission: Admission, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BRIEF_SECONDS", 0.01)
    assert admission.session("client", Link()).admit("prepare", "program", "gmw") is None
    deadline = time.monotonic() + 10.0
    while "started" not in events and time.monotonic() < deadline:
        time.sleep(0.01)
    assert events == ["granted", "started"]


def test_no_job_goes_on_unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MemoryBound", Bound)
    monkeypatch.setattr(module, "BRIEF_SECONDS", 0.01)
    monkeypatch.setattr(module.confinement, "pin", lambda _: None)
    died = threading.Event()

    def say(event: str, **_: Any) -> None:
        if event == "started":
            raise MemoryError

    admissions = Admission(say, died.set)
    admissions.open(
        Grant("job", "prepare", "client", "program", "gmw", "here", (0,), 1 << 30, 60.0)
    )
    assert admissions.session("client", Link()).admit("prepare", "program", "gmw") is None
    assert died.wait(10.0)
    admissions.revoke("job")


def test_of_a_brief_job_the_end_alone_is_told(
    admission: Admission, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BRIEF_SECONDS", 0.2)
    session = admission.session("client", Link())
    assert session.admit("prepare", "program", "gmw") is None
    assert session.failed(LinkError("the client left"))
    time.sleep(0.4)
    assert events == ["granted", "failed"]


def test_a_preparation_without_weights_ends_at_once(
    admission: Admission, events: list[str]
) -> None:
    first = admission.session("client", Link())
    assert first.admit("kept_weights", "program", "gmw") is None
    assert first.admit("send_weights", "program", "gmw") == FETCH_FIRST
    assert events == ["granted", "failed"]


def test_weights_of_other_programs_and_suites_are_none_of_the_grant(
    admission: Admission, events: list[str]
) -> None:
    first, second = (admission.session("client", Link()) for _ in range(2))
    assert first.admit("kept_weights", "another", "gmw") is not None
    assert second.admit("kept_weights", "program", "another") is not None
    assert events == ["granted"]


def test_memory_is_given_back_after_a_job_and_not_while_the_next_client_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(module, "MemoryBound", Bound)
    monkeypatch.setattr(module.confinement, "pin", lambda cores: calls.append(f"pin {cores}"))
    monkeypatch.setattr(module.confinement, "give_back_memory", lambda: calls.append("trim"))
    admissions = Admission(lambda event, **_: calls.append(event), lambda: os._exit(1))

    def job(name: str, *cores: int) -> None:
        admissions.open(
            Grant(name, "infer", "client", "program", "gmw", "here", cores, 1 << 30, 60.0)
        )
        session = admissions.session("client", Link())
        assert session.admit("infer", "program", "gmw") is None
        session.served(PhaseCost(0.5, 1000, 2000, 3, 10.0))
        session.over()

    job("a", 0)
    assert calls == ["pin (0,)", "trim", "granted", "finished", "trim"]
    job("b", 0)
    assert calls[5:] == ["granted", "finished", "trim"]
    job("c", 1)
    assert calls[8:] == ["pin (1,)", "granted", "finished", "trim"]
    # What others leave meanwhile goes before the job, whose peak it would hide.
    admissions.session("stranger", Link()).over()
    job("d", 1)
    admissions.changed()
    job("e", 1)
    assert calls[12:] == ["trim", "granted", "finished", "trim"] * 2


def test_a_grant_is_taken_back_unless_its_client_has_connected(
    admission: Admission, events: list[str]
) -> None:
    for another in (admission.session("stranger", Link()), None):
        admission.take_back("another" if another else "job")
        if another:
            assert events == ["granted"]
            another.over()
    assert events == ["granted", "failed"]
    # Its client is refused in the words of its suite when it comes, and nobody else is.
    late, other = admission.session("client", Link()), admission.session("stranger", Link())
    assert (late.program, late.suite, other.program, other.suite) == ("program", "gmw", "", "")
    assert not late.is_expected
    assert "there is no grant" in str(late.admit("prepare", "program", "gmw"))
    for name, asks in (("connected", False), ("asked", True)):
        admission.open(Grant(name, "prepare", "client", "program", "gmw", "here", (0,), 1, 60.0))
        session = admission.session("client", Link())
        if asks:
            assert session.admit("prepare", "program", "gmw") is None
        admission.take_back(name)
        assert events[-1] == "granted"
        admission.revoke(name)
        session.failed(LinkError("broken"))
        session.over()
