"""The view of material: where each entry is, what makes room, what a restart finds."""

from __future__ import annotations

import pytest
from tests.python.scheduler.bench import Bench

from privet.errors import Misuse
from privet.scheduler import JobStream, Limits, Usage

STREAM = JobStream("alice", "small", "fss", 1)


def test_material_is_known_from_its_making_to_its_use() -> None:
    bench = Bench()
    view = bench.scheduler.material
    bench.submit("n")
    bench.scheduler.finished(1.0, "n/pre#1", Usage(1.0, material=70))
    (entry,) = view.unused("alice", "small")
    assert (entry.stream, entry.bytes, entry.job, entry.ahead) == (STREAM, 70, "n", False)
    assert view.unused("berta") == view.unused("alice", "wide") == []
    assert view.has("n")
    bench.now = 1.0
    bench.submit("r", to="n")
    assert view.unused() == []
    assert view.names("here") == {entry.material}
    bench.finish("r/on#1")
    assert view.names("here") == set()


def test_untouched_material_is_free_again() -> None:
    bench = Bench()
    bench.submit("r")
    bench.finish("r/pre#1")
    bench.scheduler.failed(bench.now, "r/on#2", "stopped", keeps_material=True)
    (entry,) = bench.scheduler.material.unused()
    assert entry.material == "r/pre#1"
    assert bench.starts(bench.submit("s")) == ["s/on#1"]
    # What was touched is not.
    bench.fail("s/on#1")
    assert bench.scheduler.material.unused() == []


def test_the_oldest_that_nobody_claimed_makes_room() -> None:
    # A model's material is expected to take 100 bytes.
    bench = Bench(limits=Limits(material_bytes=350))
    for id in ("n1", "n2", "n3"):
        bench.submit(id)
        bench.finish(f"{id}/pre#1")
        bench.wait(1.0)
    bench.submit("berta's", client="berta")
    assert bench.gone() == [("n1/pre#1", "evicted")]
    # The next oldest is a request's now, and takes no room any more once that runs.
    bench.submit("r", to="n2")
    bench.submit("carol's", client="carol")
    assert len(bench.gone()) == 1
    bench.submit("dora's", client="dora")
    assert bench.gone() == [("n1/pre#1", "evicted"), ("n3/pre#1", "evicted")]


def test_what_a_store_held_before_expires_by_its_own_age() -> None:
    bench = Bench(limits=Limits(material_seconds=100.0))
    bench.scheduler.stock_found(0.0, "old", STREAM, "here", bytes=10, age=70.0)
    bench.scheduler.stock_found(0.0, "older", STREAM, "here", bytes=10, age=500.0)
    with pytest.raises(Misuse, match="known already"):
        bench.scheduler.stock_found(0.0, "old", STREAM, "here")
    bench.decide()
    assert bench.gone() == [("older", "expired")]
    bench.wait(29.0)
    assert len(bench.gone()) == 1
    bench.wait(1.0)
    assert bench.gone() == [("older", "expired"), ("old", "expired")]
