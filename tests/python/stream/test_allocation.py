"""Allocations: as good as trying everything, in small cases; in seconds, in the paper's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from privet.errors import Misuse
from privet.stream.allocation import (
    OBJECTIVES,
    Allocation,
    Objective,
    Stage,
    StageServer,
    allocate,
    even,
    spread,
)


def case(seed: int) -> tuple[list[Stage], list[StageServer]]:
    """Up to four stages of both sides on three small servers, one of which belongs to nobody."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    stages = [
        Stage(f"s{i}", "model" if i % 2 else "data", float(rng.uniform(0.1, 4)))
        for i in range(count)
    ]
    sizes = rng.integers(1, 3, 3)
    sides = ("model", "data", None)
    servers = [StageServer(f"h{j}", int(sizes[j]), sides[j]) for j in range(3)]  # type: ignore[arg-type]
    return stages, servers


def feasible(
    stages: Sequence[Stage], servers: Sequence[StageServer]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All allocations that the constraints allow, by trying."""
    most = 2 * max(server.cores for server in servers)
    for places in itertools.product(range(len(servers)), repeat=len(stages)):
        sides = {j: {stages[i].side for i in range(len(stages)) if places[i] == j} for j in places}
        if any(len(kinds) > 1 for kinds in sides.values()):
            continue
        if any(servers[j].side not in (None, *kinds) for j, kinds in sides.items()):
            continue
        for threads in itertools.product(range(1, most + 1), repeat=len(stages)):
            loads = [0] * len(servers)
            for place, count in zip(places, threads, strict=True):
                loads[place] += count
            if all(load <= 2 * server.cores for load, server in zip(loads, servers, strict=True)):
                yield places, threads


def value(objective: str, times: list[float]) -> float:
    return spread(times) if objective == "paper" else max(times)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_nothing_is_better_than_what_is_found(objective: Objective, seed: int) -> None:
    stages, servers = case(seed)
    allocation = allocate(stages, servers, objective)
    allowed = set(feasible(stages, servers))
    assert (allocation.servers, allocation.threads) in allowed
    best = min(
        value(objective, Allocation(places, threads, 0, 0).times(stages))
        for places, threads in allowed
    )
    assert allocation.gap == 0
    assert value(objective, allocation.times(stages)) == pytest.approx(best, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_one_server_is_shared_out_as_well_as_can_be(seed: int) -> None:
    stages = [Stage(stage.name, "model", stage.seconds) for stage in case(seed)[0]]
    server = StageServer("one", 1 + seed % 3, "model")
    if len(stages) > 2 * server.cores:
        with pytest.raises(Misuse, match="too few cores"):
            allocate(stages, [server])
        return
    threads = allocate(stages, [server]).threads
    allowed = {threads for _, threads in feasible(stages, [server])}

    def rank(threads: tuple[int, ...]) -> tuple[float, float]:
        times = Allocation((0,) * len(threads), threads, 0, 0).times(stages)
        return max(times), sum(times)

    assert threads in allowed
    assert rank(threads) == pytest.approx(min(map(rank, allowed)))


def test_the_papers_objective_is_content_with_slow_stages() -> None:
    stages = [Stage("a", "model", 1.0), Stage("b", "model", 1.0), Stage("c", "model", 1.9)]
    servers = [StageServer("one", 3)]
    paper = allocate(stages, servers, "paper", per_core=1)
    slowest = allocate(stages, servers, "slowest", per_core=1)
    assert paper.threads == slowest.threads == (1, 1, 1)
    wide = [StageServer("one", 5)]
    assert max(allocate(stages, wide, "slowest", per_core=1).times(stages)) == 0.95 + 0.05
    assert allocate(stages, wide, "paper", per_core=1).threads == (1, 1, 2)


def test_a_model_of_the_papers_largest_size_is_allocated_in_seconds(figures: list[str]) -> None:
    """VGG19 on nine servers of 24 cores: 37 stages, for which the paper's solver took hours."""
    rng = np.random.default_rng(1)
    stages = [
        Stage(f"s{i}", "model" if i % 2 else "data", float(rng.uniform(1, 60))) for i in range(37)
    ]
    servers = [StageServer(f"m{j}", 24, "model") for j in range(6)]
    servers += [StageServer(f"d{j}", 24, "data") for j in range(3)]
    for objective in OBJECTIVES:
        allocation = allocate(stages, servers, objective, seconds=4)
        assert allocation.solved < 20
        figures.append(
            f"37 stages on 9 servers, objective {objective}: {allocation.solved:.1f} s, gap "
            f"{allocation.gap:.0%}, slowest stage {max(allocation.times(stages)):.2f} s"
        )
        better = value(objective, even(stages, servers).times(stages))
        assert value(objective, allocation.times(stages)) < 0.7 * better


def test_stages_without_room_are_refused() -> None:
    stages = [Stage(str(i), "model", 1.0) for i in range(5)]
    with pytest.raises(Misuse, match="too few cores"):
        allocate(stages, [StageServer("small", 2)])
    with pytest.raises(Misuse, match="too few cores"):
        allocate(stages, [StageServer("small", 2), StageServer("theirs", 8, "data")])
    with pytest.raises(Misuse, match="no server serves both sides"):
        allocate(stages[:1], [StageServer("theirs", 8, "data")])
    with pytest.raises(Misuse, match="profile it first"):
        allocate([Stage("idle", "model", 0.0)], [StageServer("one", 1)])
    with pytest.raises(Misuse, match="no server"):
        even(stages, [StageServer("theirs", 8, "data")])


def test_even_shares_take_turns() -> None:
    stages = [Stage("a", "data", 1.0), Stage("b", "model", 1.0), Stage("c", "data", 1.0)]
    allocation = even(
        stages, [StageServer("one", 3, "data"), StageServer("two", 1, "model")], per_core=1
    )
    assert allocation.servers == (0, 1, 0)
    assert allocation.threads == (2, 1, 1)
