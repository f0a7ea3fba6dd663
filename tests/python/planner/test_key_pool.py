"""The simulation of a pool, by hand and beside the paper's Figure 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.python.planner.records import MakeRecord
from typer.testing import CliRunner

from privet.cli import app
from privet.errors import Misuse
from privet.planner.key_pool import PoolLoad, poisson, simulate, smallest_pool


def test_the_delays_of_a_pool_that_runs_dry_are_those_by_hand() -> None:
    outcome = simulate([0.0, 0.0, 0.0], PoolLoad(online=1.0, offline=10.0), 2)
    # Two material entries lie ready; the third is ordered as the first is taken, at time 0.
    assert outcome.latencies == (1.0, 2.0, 11.0)
    assert outcome.waits == (0.0, 1.0, 10.0)
    assert outcome.empty == 1


def test_without_a_pool_every_job_waits_for_its_entry() -> None:
    outcome = simulate([0.0, 100.0], PoolLoad(online=1.0, offline=10.0), 0)
    assert outcome.latencies == (11.0, 11.0)
    assert outcome.empty == 2


def test_makers_and_servers_work_side_by_side() -> None:
    outcome = simulate([0.0, 0.0], PoolLoad(online=1.0, offline=10.0, servers=2, makers=2), 0)
    assert outcome.latencies == (11.0, 11.0)


def test_poisson_arrivals_have_their_rate() -> None:
    times = poisson(4000, 10.0)
    assert times == sorted(times)
    assert times[-1] / 4000 == pytest.approx(10.0, rel=0.05)


def test_the_papers_keys_run_out() -> None:
    """200 jobs of 128 samples, ten seconds apart; 0.4 samples/s with both phases, 6 online."""
    online, total = 128 / 6.0, 128 / 0.4
    load = PoolLoad(online, total - online)
    jobs = poisson(200, 10.0)
    enough = simulate(jobs, load, 200)
    assert enough.empty == 0
    short = simulate(jobs, load, 100)
    assert short.empty > 50
    assert max(short.waits) > max(enough.waits) + 300


def test_the_smallest_pool_is_found() -> None:
    load, jobs = PoolLoad(online=0.1, offline=5.0), poisson(500, 10.0)
    pool = smallest_pool(jobs, load, 0.5)
    assert pool is not None
    assert pool.size > 0
    assert simulate(jobs, load, pool.size - 1).percentile(0.99) > 0.5
    assert smallest_pool(jobs, load, 0.05) is None


def test_a_trace_runs_forward() -> None:
    with pytest.raises(Misuse):
        simulate([1.0, 0.0], PoolLoad(1.0, 1.0), 1)


def test_a_trace_takes_the_place_of_poisson(record: MakeRecord, tmp_path: Path) -> None:
    path = record("fss", offline={"seconds": 5.0}).write(tmp_path)
    trace = tmp_path / "trace.txt"
    trace.write_text("0\n0.5\n100\n")
    command = ["study", "pool", str(path), "--trace", str(trace), "--sizes", "0,3", "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [len(latencies) for latencies in report["latencies"]] == [3, 3]
    assert [row["dry"] for row in report["pools"]] == [3, 0]
    assert "found it empty" in CliRunner().invoke(app, command[:-1]).output
    trace.write_text("soon\n")
    assert isinstance(CliRunner().invoke(app, command).exception, Misuse)
