"""Flows through stages: closed forms, and what a profile says of a small model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.python.stream import models

from privet.compiler.compile import PRIVATE_FILE
from privet.research.stream.simulate import flow, simulate, time_of
from privet.research.stream.survey import measure_material
from privet.stream.allocation import Allocation
from privet.stream.cipher import BFV, PAILLIER, Cipher
from privet.stream.profile import StageTimes, profile
from privet.suites import Stream


def test_the_slowest_stage_sets_the_pace() -> None:
    run = flow([1, 3, 2], requests=10, window=10)
    assert run.makespan == 1 + 3 * 10 + 2
    assert run.latencies[0] == 6
    assert flow([1, 3, 2], requests=10, window=1).makespan == 60
    assert flow([2.0], requests=4, window=4, transfers=[1.0]).makespan == 9


def test_a_window_bounds_what_waits_between_stages() -> None:
    wide, narrow = (flow([1, 5], requests=20, window=size) for size in (20, 2))
    assert wide.makespan == narrow.makespan
    assert max(narrow.latencies) < max(wide.latencies)


def test_times_between_profiled_counts_are_shares() -> None:
    stage = StageTimes("s", "model", {1: 8.0, 4: 2.5}, {1: 10, 4: 16}, 10, 5)
    assert [time_of(stage, threads) for threads in (1, 2, 4, 5)] == [8.0, 4.0, 2.5, 2.0]
    assert time_of(StageTimes("s", "model", {1: 8.0, 4: 6.0}, {1: 1}, 1, 1), 2) == 6.0


def test_whole_inputs_take_longer_on_the_way() -> None:
    stage = StageTimes("s", "model", {1: 1.0, 4: 0.25}, {1: 1000, 4: 1200}, 1000, 5)
    times = [
        simulate([stage], Allocation((0,), (4,), 0, 0), whole_inputs=whole, bytes_per_second=1e6)
        for whole in (False, True)
    ]
    assert times[1].makespan - times[0].makespan == pytest.approx(2800 * 512 / 1e6 * 32, rel=0.1)


@pytest.mark.parametrize("cipher", [PAILLIER, BFV], ids=str)
def test_a_model_is_profiled_by_stage_and_threads(cipher: Cipher, tmp_path: Path) -> None:
    compiled = models.windows()
    compiled.save(tmp_path)
    public = compiled.program.to_public_bytes()
    stages = profile(public, cipher, (tmp_path / PRIVATE_FILE).read_bytes(), threads=(1, 3))
    assert [stage.side for stage in stages] == ["data"] + ["model", "data"] * 3
    assert all(set(stage.seconds) == {1, 3} and min(stage.seconds.values()) > 0 for stage in stages)
    convolution = stages[1]
    # Over BFV a worker also reads a share for each of its own elements.
    shares = 3 * 36 if cipher.masked else 0
    assert convolution.whole == 72 + shares
    assert convolution.read[1] == 72 + shares < convolution.read[3] < 3 * 72 + shares
    alone = profile(public, cipher)
    assert [stage.name for stage in alone] == [
        stage.name for stage in stages if stage.side == "data"
    ]


def test_of_large_models_slices_are_measured_alone() -> None:
    public = models.windows().program.to_public_bytes()
    stages = profile(public, PAILLIER, threads=(1, 2, 6), least=3)
    for stage in stages:
        assert set(stage.seconds) == {1, 2, 3, 6}
        assert stage.seconds[1] == 2 * stage.seconds[2] == 3 * stage.seconds[3]


def test_what_an_entry_costs_is_measured_apart() -> None:
    compiled = models.perceptron()
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    cost = measure_material(public, private, 2)
    plan = Stream().figures(compiled.program)
    # The first entry of a session also has keys; a later one sends less.
    assert 0 < cost.bytes_data < plan["offline_bytes_client"]
    assert 0 < cost.bytes_model < plan["offline_bytes_server"]
    assert cost.cpu_seconds > 0
    assert cost.seconds < cost.first_seconds
