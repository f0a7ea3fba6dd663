"""What a session may do that has ended a job: its client's next one, and nothing else."""

from __future__ import annotations

import os

import pytest
from tests.python.service.test_admission import Bound, Link

from privet.errors import Short
from privet.runtime import PhaseCost
from privet.runtime.idle import IdleLinks
from privet.service import admission as module
from privet.service.admission import Admission, ClientSession
from privet.service.executor.grant import Grant

REPORT = "what it took"


@pytest.fixture
def admission(monkeypatch: pytest.MonkeyPatch) -> Admission:
    monkeypatch.setattr(module, "MemoryBound", Bound)
    monkeypatch.setattr(module.confinement, "pin", lambda _: None)
    monkeypatch.setattr(module.confinement, "give_back_memory", lambda: None)
    monkeypatch.setattr(module, "read_report", lambda *_, **__: (PhaseCost(0.1, 1, 1, 1, 1.0), ()))
    admission = Admission(lambda *_, **__: None, lambda: os._exit(1))
    admission.idle = IdleLinks(4)
    return admission


def grant(job: str, client: str = "client", cores: tuple[int, ...] = (0,)) -> Grant:
    return Grant(job, "prepare", client, "program", "gmw", "here", cores, 1 << 30, 60.0)


def ask(session: ClientSession) -> str | None:
    """Asks for a preparation; why it is refused."""
    return session.admit("prepare", "program", "gmw")


def idle(admission: Admission, client: str = "client", link: Link | None = None) -> ClientSession:
    """A session whose job is done."""
    admission.open(grant("first", client))
    session = admission.session(client, link or Link())
    assert ask(session) is None
    session.on_event("prepared", "model", "material", REPORT)
    return session


def test_an_idle_session_serves_the_next_grant_of_its_client_once(admission: Admission) -> None:
    session = idle(admission)
    for job in ("second", "third"):
        admission.open(grant(job))
        assert ask(session) is None
        assert "serves one request" in str(ask(session))
        session.on_event("prepared", "model", "material", REPORT)


def test_without_a_grant_of_its_client_an_idle_session_is_refused(admission: Admission) -> None:
    session = idle(admission)
    assert "there is no grant" in str(ask(session))
    admission.open(grant("another", "another"))
    assert "there is no grant" in str(ask(session))
    # The control: the client that the grant is for.
    assert ask(admission.session("another", Link())) is None


def test_a_job_on_an_idle_session_is_revoked_with_its_connection(admission: Admission) -> None:
    link = Link()
    session = idle(admission, link=link)
    admission.open(grant("second"))
    assert ask(session) is None
    admission.revoke("second")
    assert link.is_broken


def test_a_grant_is_taken_back_from_a_client_that_is_idle(admission: Admission) -> None:
    link = Link()
    session = idle(admission, link=link)
    admission.open(grant("second"))
    admission.take_back("second")
    assert "there is no grant" in str(ask(session))
    assert not link.is_broken
    admission.open(grant("third"))
    assert ask(session) is None


@pytest.mark.parametrize("change", ["offer", "cores", "shortage"])
def test_idle_sessions_end_that_would_not_do_for_the_next_job(
    admission: Admission, change: str
) -> None:
    link = Link()
    session = idle(admission, link=link)
    match change:
        case "offer":
            admission.changed()
        case "cores":
            admission.open(grant("second", cores=(0, 1)))
        case "shortage":
            admission.on_shortage(Short("out of open files"))
    assert link.is_broken
    # Another client's stays: it is as good as it was.
    if change == "cores":
        admission.revoke("second")
        other = Link()
        idle(admission, "another", other)
        admission.open(grant("third", cores=(0, 1)))
        assert not other.is_broken
    assert session.threads == 1


def break_off(admission: Admission, session: ClientSession, link: Link) -> None:
    """Asks for another job on a session that is not kept: the client hears no refusal, but finds
    the connection broken, so that it asks on another."""
    session.on_event("prepared", "model", "material", REPORT)
    admission.open(grant("second"))
    assert not link.is_broken
    ask(session)
    assert link.is_broken
    assert ask(admission.session("client", Link())) is None
    session.over()


def test_a_session_from_before_an_offer_is_not_kept(admission: Admission) -> None:
    link = Link()
    admission.open(grant("first"))
    session = admission.session("client", link)
    assert ask(session) is None
    admission.changed()
    break_off(admission, session, link)


def test_a_session_of_many_threads_is_not_kept(admission: Admission) -> None:
    link, cores = Link(), tuple(range(module.MOST_IDLE_THREADS + 1))
    admission.open(grant("first", cores=cores))
    session = admission.session("client", link)
    assert ask(session) is None
    break_off(admission, session, link)


def test_a_session_is_not_kept_for_ever(
    admission: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Link()
    session = idle(admission, link=link)
    admission.open(grant("first"))
    assert ask(session) is None
    monkeypatch.setattr("privet.runtime.idle.LIFE_SECONDS", 0.0)
    break_off(admission, session, link)


def test_a_session_that_has_fetched_weights_is_not_kept(admission: Admission) -> None:
    admission.open(Grant("job", "fetch", "client", "program", "gmw", "here", (0,), 1 << 30, 60.0))
    session = admission.session("client", Link())
    assert session.admit("kept_weights", "program", "gmw") is None
    session.on_event("kept", "model", None, REPORT)
    admission.open(grant("second"))
    assert "there is no grant" in str(ask(session))
    session.over()
