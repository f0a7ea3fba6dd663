"""The paper's workloads: counts, rates, notices, and the same again from the same seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from privet.errors import InputError, Misuse
from privet.research.simulation.profile_file import OWN, read
from privet.research.simulation.workload import WORKLOADS, Traffic, arrivals, requests
from privet.scheduler import Phase

MIXED = WORKLOADS["mixed"]


def test_both_workloads_have_500_requests() -> None:
    for counts in WORKLOADS.values():
        stream = arrivals(counts, ["fss"], Traffic(), seed=1)
        assert Counter(request.submission.model for request in stream) == counts
        assert len(stream) == 500


def test_arrivals_come_at_the_rate_and_repeat() -> None:
    stream = arrivals(MIXED, ["fss", "gmw"], Traffic(rate=0.5, clients=3), seed=2)
    assert stream == arrivals(MIXED, ["fss", "gmw"], Traffic(rate=0.5, clients=3), seed=2)
    assert stream[-1].at == pytest.approx(1000.0, rel=0.15)
    assert [request.at for request in stream] == sorted(request.at for request in stream)
    assert {request.submission.client for request in stream} == {"c0", "c1", "c2"}
    assert {request.submission.suite for request in stream} == {"fss", "gmw"}


def test_notices_precede_their_requests_and_change_nothing_else() -> None:
    plain = arrivals(MIXED, ["fss"], Traffic(), seed=3)
    stream = arrivals(MIXED, ["fss"], Traffic(notices=0.25, lead=20.0), seed=3)
    notices = {arrival.submission.id: arrival for arrival in stream if arrival.submission.notice}
    requests = [arrival for arrival in stream if not arrival.submission.notice]
    assert [(request.at, request.submission.id) for request in requests] == [
        (request.at, request.submission.id) for request in plain
    ]
    assert len(notices) == pytest.approx(125, abs=25)
    for request in requests:
        if request.submission.refers_to is not None:
            notice = notices[request.submission.refers_to]
            assert notice.at == max(0.0, request.at - 20.0)
            assert notice.submission.model == request.submission.model


def test_impossible_traffic_is_refused() -> None:
    for wrong in ({"rate": 0.0}, {"notices": 1.1}, {"lead": -1.0}, {"clients": 0}):
        with pytest.raises(Misuse):
            Traffic(**wrong)


def test_workloads_can_be_ones_own() -> None:
    assert requests("m1=120,hinet=80") == {"m1": 120, "hinet": 80}
    for wrong in ("heavy", "m1=", "m1=0", "=3", "m1=2,", "m1=-1"):
        with pytest.raises(InputError, match="no workload"):
            requests(wrong)


@pytest.mark.parametrize("name", OWN)
def test_own_profiles_have_every_model(name: str) -> None:
    profile = read(name)
    assert profile.source
    for suite in profile.suites():
        assert profile.models(suite) == set(MIXED)
    table = profile.profiles()
    for row in table.rows():
        assert row["seconds"] > 0
        assert row["memory"] > 0
        assert (row["material"] > 0) == (row["phase"] == Phase.PRE)


def test_the_papers_profile_gives_the_papers_sequential_makespans() -> None:
    profile = read("paper")
    table = profile.profiles()
    for workload, makespan in (("mixed", 6440.53), ("light", 3257.26)):
        total = sum(
            WORKLOADS[workload][row["model"]]
            * table.scaling.moved(row["seconds"], row["cores"], 96)
            for row in table.rows()
        )
        assert total == pytest.approx(makespan, rel=1e-3)


@pytest.mark.parametrize("text", ["", "name = 1", "[[job]]\nmodel = 'x'", "name = 'x'\njob = 1"])
def test_what_is_no_profile_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile.toml"
    with pytest.raises(InputError, match="neither a file"):
        read(str(path))
    path.write_text(text)
    with pytest.raises(InputError, match="no profile file"):
        read(str(path))
