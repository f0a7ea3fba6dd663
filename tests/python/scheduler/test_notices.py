"""Requests that refer to a notice before, during and after its T_pre, and to what is none."""

from __future__ import annotations

import pytest
from tests.python.scheduler.bench import Bench

from privet.scheduler import Limits, Outcome, Refused, Start, Why


def test_after_the_t_pre_the_request_starts_at_once(bench: Bench) -> None:
    bench.submit("n")
    bench.wait(10.0)
    bench.finish("n/pre#1")
    assert bench.outcomes == {"n": Outcome.DONE}
    assert bench.queues()["transit"] == ["n"]
    (start,) = bench.submit("r", to="n")
    assert isinstance(start, Start)
    assert (start.job, start.request, start.material) == ("r/on#1", "r", "n/pre#1")
    assert bench.queues()["transit"] == []


def test_during_the_t_pre_the_request_waits_for_it(bench: Bench) -> None:
    bench.submit("n")
    assert bench.submit("r", to="n") == []
    assert bench.queues() == {"pre": [], "transit": [], "waiting": ["r"], "ready": []}
    assert bench.starts(bench.finish("n/pre#1")) == ["r/on#1"]
    bench.finish("r/on#1")
    assert bench.outcomes == {"n": Outcome.DONE, "r": Outcome.DONE}


def test_before_the_t_pre_the_request_keeps_the_notices_place(bench: Bench) -> None:
    bench.submit("a", "wide")
    bench.submit("n")
    bench.submit("b")
    bench.submit("r", to="n")
    assert bench.queues()["pre"] == ["r", "b"]
    assert bench.queues()["waiting"] == ["r"]
    bench.finish("a/pre#1")
    bench.finish("a/on#2")
    assert bench.running == ["n/pre#1", "b/pre#1"]


@pytest.mark.parametrize(
    ("refer", "reason"),
    [
        ({"to": "never sent"}, Why.UNKNOWN_NOTICE),
        ({"to": "r0"}, Why.UNKNOWN_NOTICE),
        ({"to": "n1", "client": "bob"}, Why.FOREIGN_NOTICE),
        ({"to": "n1", "model": "wide"}, Why.OTHER_NOTICE),
        ({"to": "n1", "batch": 2}, Why.OTHER_NOTICE),
        ({"to": "n2"}, Why.CANCELLED_NOTICE),
        ({"to": "n3"}, Why.USED_NOTICE),
        ({"to": "n4"}, Why.USED_NOTICE),
    ],
)
def test_other_references_are_refused_by_reason(
    bench: Bench, refer: dict[str, str], reason: Why
) -> None:
    bench.submit("r0", "wide")
    bench.submit("n1")
    bench.submit("n2")
    bench.scheduler.cancel(0.0, "n2")
    bench.submit("n3")
    bench.submit("r3", to="n3")
    bench.finish("r0/pre#1")
    bench.finish("r0/on#2")
    bench.submit("n4")
    for job in ("n4/pre#1", "n3/pre#1"):
        bench.finish(job)
    bench.submit("r4", to="n4")
    with pytest.raises(Refused) as refusal:
        bench.submit("r", **refer)  # type: ignore[arg-type]
    assert refusal.value.why is reason
    assert not refusal.value.retry


def test_a_notice_that_came_to_nothing_is_no_reason_to_refuse() -> None:
    bench = Bench(limits=Limits(material_seconds=30.0))
    bench.submit("n")
    bench.finish("n/pre#1")
    bench.wait(30.0)
    assert bench.gone() == [("n/pre#1", "expired")]
    assert bench.starts(bench.submit("r", to="n")) == ["r/pre#1"]


def test_giving_a_notice_up_leaves_its_material_to_the_client(bench: Bench) -> None:
    bench.submit("n")
    bench.finish("n/pre#1")
    assert bench.scheduler.cancel(0.0, "n")
    assert bench.starts(bench.submit("r")) == ["r/on#1"]
    assert bench.outcomes == {"n": Outcome.DONE}


def test_material_is_for_its_client_alone(bench: Bench) -> None:
    bench.submit("n")
    bench.finish("n/pre#1")
    bench.scheduler.cancel(0.0, "n")
    assert bench.starts(bench.submit("r", client="bob")) == ["r/pre#1"]


def test_a_notice_taken_over_cannot_be_cancelled(bench: Bench) -> None:
    bench.submit("n")
    bench.submit("r", to="n")
    assert not bench.scheduler.cancel(0.0, "n")
    assert bench.scheduler.cancel(0.0, "r")
    bench.decide()
    assert bench.outcomes == {"n": Outcome.CANCELLED, "r": Outcome.CANCELLED}
    assert bench.stops() == ["n/pre#1"]


def test_a_t_pre_that_fails_ends_notice_and_request(bench: Bench) -> None:
    bench.submit("n")
    bench.submit("r", to="n")
    bench.fail("n/pre#1")
    assert bench.outcomes == {"n": Outcome.FAILED, "r": Outcome.FAILED}
