"""The audit by itself: each rule can be broken, and is then named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from privet.research.simulation.audit import Audit, Violation
from privet.scheduler import Ended, Machine, Outcome, Phase, Start, Stop, Submission

PRE = Start("r/pre#1", "r", Phase.PRE, "alice", "m", "fss", 1, "here", (0,), 60, 100.0)
ON = Start("r/on#2", "r", Phase.ON, "alice", "m", "fss", 1, "here", (0,), 60, 100.0, "r/pre#1")


def started() -> Audit:
    """A request whose T_pre runs, on a machine of two cores and 100 bytes."""
    audit = Audit()
    audit.joined(Machine("here", 2, 100))
    audit.joined(Machine("there", 2, 100))
    audit.submitted(0.0, Submission("r", "alice", "m", "fss", timeout=50.0))
    audit.actions(0.0, [PRE])
    return audit


def prepared() -> Audit:
    """The same, T_pre over."""
    audit = started()
    audit.over("r/pre#1", "r/pre#1")
    return audit


def test_a_whole_request_passes() -> None:
    audit = prepared()
    audit.actions(1.0, [ON])
    audit.over("r/on#2", "done")
    audit.actions(2.0, [Ended("r", Outcome.DONE)])
    audit.closed()
    assert audit.events == 8


@pytest.mark.parametrize(
    ("breach", "message"),
    [
        (lambda: started().actions(1.0, [ON]), "core 0 of here is taken"),
        (lambda: started().actions(1.0, [replace(ON, cores=(1,))]), "bytes"),
        (lambda: started().actions(1.0, [replace(ON, cores=(1,), memory=1)]), "before its T_pre"),
        (lambda: prepared().actions(1.0, [PRE]), "comes twice"),
        (lambda: prepared().actions(1.0, [replace(ON, cores=())]), "no core"),
        (lambda: prepared().actions(1.0, [replace(ON, cores=(2,))]), "has core 2"),
        (lambda: prepared().actions(1.0, [replace(ON, machine="gone")]), "machine that is gone"),
        (lambda: prepared().actions(1.0, [replace(ON, machine="there")]), "lies on here"),
        (lambda: prepared().actions(1.0, [replace(ON, batch=2)]), "was made for"),
        (lambda: prepared().actions(1.0, [replace(ON, client="bob")]), "not what r asked for"),
        (lambda: prepared().actions(1.0, [replace(ON, request="x")]), "nobody asked"),
        (lambda: prepared().actions(1.0, [Stop("r/pre#1", "")]), "does not run"),
        (lambda: started().actions(1.0, 2 * [Stop("r/pre#1", "")]), "stopped twice"),
        (lambda: prepared().actions(1.0, [Ended("x", Outcome.DONE)]), "was not admitted"),
        (lambda: prepared().actions(1.0, [Ended("r", Outcome.DONE)]), "after 0 samples"),
        (lambda: prepared().actions(1.0, 2 * [Ended("r", Outcome.FAILED)]), "ends twice"),
        (lambda: prepared().actions(1.0, [Ended("r", Outcome.FAILED), ON]), "after its request"),
        (lambda: prepared().actions(50.0, []), "should have timed out"),
        (lambda: prepared().closed(), "never ended"),
    ],
)
def test_every_rule_can_be_broken(breach: Callable[[], None], message: str) -> None:
    with pytest.raises(Violation, match=message):
        breach()


def test_material_is_used_once_and_dies_with_its_machine() -> None:
    audit = prepared()
    audit.actions(1.0, [ON])
    audit.over("r/on#2")
    with pytest.raises(Violation, match="again"):
        audit.actions(2.0, [replace(ON, job="r/on#3")])
    other = prepared()
    assert other.machine_lost("here") == []
    other.joined(Machine("here", 2, 100))
    with pytest.raises(Violation, match="again"):
        other.actions(1.0, [ON])
