"""Requests that insist on material that lies ready: nothing is ever made for them."""

from __future__ import annotations

import pytest
from tests.python.scheduler.bench import Bench

from privet.errors import Misuse
from privet.scheduler import Outcome, Refused, Submission, Why


def refused(bench: Bench, id: str, **how: object) -> Why:
    with pytest.raises(Refused) as excinfo:
        bench.submit(id, ready=True, **how)  # type: ignore[arg-type]
    return excinfo.value.why


def prepared(*ids: str) -> Bench:
    """A bench where material of cancelled notices lies ready for whoever asks next."""
    bench = Bench()
    for id in ids:
        bench.submit(id)
        bench.finish(f"{id}/pre#1")
        bench.scheduler.cancel(bench.now, id)
    bench.decide()
    return bench


def test_a_request_without_material_is_refused_and_the_control_makes_some() -> None:
    bench = Bench()
    assert refused(bench, "r") is Why.NOT_READY
    assert bench.starts() == []
    assert bench.starts(bench.submit("control")) == ["control/pre#1"]
    # What is being made for another is not ready either.
    assert refused(bench, "s") is Why.NOT_READY


def test_a_request_takes_what_lies_ready_once() -> None:
    bench = prepared("n1")
    assert bench.starts(bench.submit("r", ready=True)) == ["r/on#1"]
    assert refused(bench, "s") is Why.NOT_READY
    assert refused(bench, "t", client="berta") is Why.NOT_READY


def test_all_samples_need_some() -> None:
    bench = prepared("n1", "n2")
    assert refused(bench, "r", batch=3) is Why.NOT_READY
    assert len(bench.starts(bench.submit("s", batch=2, ready=True))) == 2


def test_material_of_a_notice_counts_once_it_is_there() -> None:
    bench = Bench()
    bench.submit("n")
    assert refused(bench, "r", to="n") is Why.NOT_READY
    bench.finish("n/pre#1")
    assert refused(bench, "s") is Why.NOT_READY
    assert bench.starts(bench.submit("t", to="n", ready=True)) == ["t/on#1"]


def test_a_request_that_loses_its_material_takes_other_or_fails() -> None:
    bench = prepared("n1", "n2")
    bench.submit("r", ready=True)
    bench.fail("r/on#1", rerun=True)
    assert bench.running == ["r/on#2"]
    bench.fail("r/on#2", rerun=True)
    assert bench.outcomes["r"] is Outcome.FAILED
    assert not any("/pre#" in job for job in bench.starts() if job.startswith("r/"))
    # The control: another request would have some made.
    bench = prepared("n1")
    bench.submit("r")
    bench.fail("r/on#1", rerun=True)
    assert bench.running == ["r/pre#2"]


def test_a_check_admits_nothing() -> None:
    bench = prepared("n1")
    submission = Submission("r", "alice", "small", "fss", ready=True)
    for _ in range(2):
        bench.scheduler.check(submission)
    bench.submit("r", ready=True)
    with pytest.raises(Refused):
        bench.scheduler.check(Submission("s", "alice", "small", "fss", ready=True))


def test_what_takes_no_material_cannot_insist_on_any() -> None:
    with pytest.raises(Misuse, match="lies ready"):
        Submission("n", "alice", "small", "fss", notice=True, ready=True)
