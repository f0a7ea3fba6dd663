"""Which server runs a stage, and with how many threads (PP-Stream, Section IV-C).

One server is shared out exactly. For several there is the paper's integer program, solved by HiGHS
(of the extra `privet[research]`). Its objective is the sum over all pairs of stages of the
difference of their times; that says nothing of how long they take, so that among equals the fastest
is taken here. What a stream's throughput and latency really want is `slowest`: the time of the
slowest stage. The time of stage `i` with `y` threads is `T_i / y`, which has one value for each
`y`, so that a binary variable for each pair makes the program linear.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privet.errors import Misuse

Side = Literal["model", "data"]
Objective = Literal["paper", "slowest"]
OBJECTIVES: tuple[Objective, ...] = ("paper", "slowest")

THREADS_PER_CORE = 2
"""The paper counts on hyper-threading."""

SECONDS = 20.0
"""How long HiGHS may search; what it found by then is reported with its gap."""


TOLERANCE = 1e-4
"""A gap so small is HiGHS's arithmetic."""


@dataclass(frozen=True)
class Stage:
    """A stage by name: whose it is, and `seconds` on one thread."""

    name: str
    side: Side
    seconds: float


@dataclass(frozen=True)
class StageServer:
    """A server with its cores. `side` says whose it is; None leaves that to the program."""

    name: str
    cores: int
    side: Side | None = None


@dataclass(frozen=True)
class Allocation:
    """For each stage its server (an index) and threads.

    `gap` is how far the objective may be from the best, as a fraction: 0 if it is proved to be.
    `solved` are the seconds that it took to find.
    """

    servers: tuple[int, ...]
    threads: tuple[int, ...]
    gap: float
    solved: float

    def times(self, stages: Sequence[Stage]) -> list[float]:
        """Seconds of each stage with its threads."""
        return [
            stage.seconds / threads for stage, threads in zip(stages, self.threads, strict=True)
        ]


def spread(times: Sequence[float]) -> float:
    """The paper's objective (4): differences over all ordered pairs."""
    return sum(abs(one - other) for one in times for other in times)


def allocate(
    stages: Sequence[Stage],
    servers: Sequence[StageServer],
    objective: Objective = "slowest",
    *,
    per_core: int = THREADS_PER_CORE,
    seconds: float = SECONDS,
) -> Allocation:
    """The best allocation, or the best found in `seconds`. Raises `Misuse` if there is none: each
    stage needs a thread, and no server serves both sides."""
    _check(stages, servers, objective, per_core)
    began = time.monotonic()
    if objective == "slowest" and len(servers) == 1:
        threads = shared(stages, servers[0], per_core)
        return Allocation((0,) * len(stages), tuple(threads), 0.0, time.monotonic() - began)
    start = good(stages, servers, objective, per_core)
    program = _Program(stages, servers, per_core)
    if objective == "paper":
        program.minimise_spread()
    else:
        program.minimise_slowest()
    servers_of, threads, gap = program.solve(seconds, start)
    return Allocation(tuple(servers_of), tuple(threads), gap, time.monotonic() - began)


def shared(stages: Sequence[Stage], server: StageServer, per_core: int) -> list[int]:
    """Threads of each stage on one server so that the slowest is quickest; what is left over goes
    where it saves most. This is the best allocation, and needs no solver. Raises `Misuse` if there
    is none."""
    capacity = server.cores * per_core
    if len({stage.side for stage in stages} | ({server.side} - {None})) > 1:
        raise Misuse("no server serves both sides: name one for each")
    if len(stages) > capacity:
        raise Misuse("the server has too few cores for these stages")

    def after(index: int, extra_threads: int) -> float:
        return stages[index].seconds / (threads[index] + extra_threads)

    threads = [1] * len(stages)
    for _ in range(capacity - len(stages)):
        threads[max(range(len(stages)), key=lambda index: after(index, 0))] += 1
    slowest = max(after(index, 0) for index in range(len(stages)))
    threads = [math.ceil(stage.seconds / slowest * (1 - 1e-12)) for stage in stages]
    for _ in range(capacity - sum(threads)):
        savings = [after(index, 0) - after(index, 1) for index in range(len(stages))]
        threads[savings.index(max(savings))] += 1
    return threads


def even(
    stages: Sequence[Stage], servers: Sequence[StageServer], *, per_core: int = THREADS_PER_CORE
) -> Allocation:
    """What the paper compares with: threads spread evenly over the stages of each server.

    Stages go to the servers of their side in turn; where servers have no side, they are divided in
    proportion to the stages.
    """
    _check(stages, servers, "slowest", per_core)
    by_side: dict[str, list[int]] = {"model": [], "data": []}
    for index, server in enumerate(servers):
        if server.side is not None:
            by_side[server.side].append(index)
    for index in (at for at, server in enumerate(servers) if server.side is None):
        counts = {side: sum(step.side == side for step in stages) for side in by_side}
        needy = max(by_side, key=lambda side: counts[side] / (len(by_side[side]) or 1e-9))
        by_side[needy].append(index)
    turns = dict.fromkeys(by_side, 0)
    places = []
    for one in stages:
        if not by_side[one.side]:
            raise Misuse(f"there is no server for the {one.side} provider's stages")
        places.append(by_side[one.side][turns[one.side] % len(by_side[one.side])])
        turns[one.side] += 1
    threads = []
    for stage, place in enumerate(places):
        sharing = [at for at, other in enumerate(places) if other == place]
        total, rank = servers[place].cores * per_core, sharing.index(stage)
        threads.append(total // len(sharing) + (rank < total % len(sharing)))
    if min(threads) < 1:
        raise Misuse("some server has more stages than threads")
    return Allocation(tuple(places), tuple(threads), 0.0, 0.0)


def good(
    stages: Sequence[Stage], servers: Sequence[StageServer], objective: Objective, per_core: int
) -> tuple[list[int], list[int]] | None:
    """A good allocation for HiGHS to begin with: for every time that a stage can take, enough
    threads for all to be as quick, if they fit; the best of those."""
    most_threads = max(server.cores for server in servers) * per_core
    goals = sorted(
        {stage.seconds / count for stage in stages for count in range(1, most_threads + 1)}
    )
    best: tuple[float, list[int], list[int]] | None = None
    for goal in goals:
        threads = [
            min(most_threads, math.ceil(stage.seconds / goal * (1 - 1e-12))) for stage in stages
        ]
        places = _fit(stages, servers, threads, per_core)
        if places is None:
            continue
        times = [stage.seconds / count for stage, count in zip(stages, threads, strict=True)]
        value = spread(times) if objective == "paper" else max(times)
        if best is None or value < best[0]:
            best = value, places, threads
    return None if best is None else best[1:]


def _fit(
    stages: Sequence[Stage], servers: Sequence[StageServer], threads: Sequence[int], per_core: int
) -> list[int] | None:
    """Servers for stages, the largest first, each where the least is left; None if one fits
    nowhere."""
    free_threads = [server.cores * per_core for server in servers]
    sides = [server.side for server in servers]
    places = [0] * len(stages)
    for index in sorted(range(len(stages)), key=lambda at: -threads[at]):
        side, need = stages[index].side, threads[index]
        fits = [
            j
            for j in range(len(free_threads))
            if free_threads[j] >= need and sides[j] in (None, side)
        ]
        if not fits:
            return None
        place = min(fits, key=lambda j: (sides[j] is None, free_threads[j]))
        free_threads[place] -= need
        sides[place], places[index] = side, place
    return places


class _Program:
    """The integer program: binary `x[i][j]` (stage on server), `z[i][t]` (stage with threads),
    and `load[i][j]`, the threads of a stage on a server."""

    def __init__(
        self, stages: Sequence[Stage], servers: Sequence[StageServer], per_core: int
    ) -> None:
        try:
            import highspy
        except ModuleNotFoundError as error:
            raise Misuse(
                "stages on several servers, and the paper's objective, are allocated by the "
                "package highspy, which is not installed: pip install 'privet[research]'"
            ) from error

        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs.silent()
        self._stages, self._servers = stages, servers
        self._capacity = [server.cores * per_core for server in servers]
        most_threads = max(self._capacity)
        # In units of the longest, so that HiGHS's tolerances mean the same for any model.
        longest = max(step.seconds for step in stages)
        add, rows = self._highs.addBinary, self._highs.addConstr
        self._x = [[add() for _ in servers] for _ in stages]
        self._z = [[add() for _ in range(most_threads)] for _ in stages]
        total = self._highs.qsum
        self._times: list[Any] = []
        self._models: list[Any] = []
        self._loads: list[list[Any]] = []
        for stage, x, z in zip(stages, self._x, self._z, strict=True):
            rows(total(x) == 1)
            rows(total(z) == 1)
            load = [self._highs.addVariable(lb=0, ub=size) for size in self._capacity]
            for amount, placement, size in zip(load, x, self._capacity, strict=True):
                rows(amount <= size * placement)
            rows(total(load) == total((t + 1) * z[t] for t in range(most_threads)))
            self._loads.append(load)
            seconds = self._highs.addVariable(lb=0)
            share = stage.seconds / longest
            rows(seconds == total(share / (t + 1) * z[t] for t in range(most_threads)))
            self._times.append(seconds)
        for j, size in enumerate(self._capacity):
            rows(total(load[j] for load in self._loads) <= size)
            self._one_side(j)

    def _one_side(self, j: int) -> None:
        """Constraint (6): a server is one organisation's."""
        fixed = self._servers[j].side
        model = self._highs.addBinary()
        self._models.append(model)
        for stage, x in zip(self._stages, self._x, strict=True):
            if fixed is not None:
                if stage.side != fixed:
                    self._highs.addConstr(x[j] == 0)
            elif stage.side == "model":
                self._highs.addConstr(x[j] <= model)
            else:
                self._highs.addConstr(x[j] + model <= 1)

    def minimise_spread(self) -> None:
        """Objective (4), and among equals the least sum of times."""
        apart = []
        for index, duration in enumerate(self._times):
            for other in self._times[:index]:
                difference = self._highs.addVariable(lb=0)
                self._highs.addConstr(difference >= duration - other)
                self._highs.addConstr(difference >= other - duration)
                apart.append(difference)
        self._objective: Any = self._highs.qsum(2 * gap for gap in apart) + self._tie()

    def minimise_slowest(self) -> None:
        """The slowest stage, and among equals the least sum of times."""
        slowest = self._highs.addVariable(lb=0)
        for duration in self._times:
            self._highs.addConstr(slowest >= duration)
        self._objective = slowest + self._tie()

    def _tie(self) -> Any:
        # Small enough not to outweigh what counts, beyond HiGHS's own tolerance.
        return self._highs.qsum(1e-5 * duration for duration in self._times)

    def solve(
        self, seconds: float, start: tuple[list[int], list[int]] | None
    ) -> tuple[list[int], list[int], float]:
        """Servers, threads and the gap; HiGHS begins with `start`, if there is one. Raises `Misuse`
        if there is no allocation."""
        highs = self._highs
        highs.setOptionValue("time_limit", seconds)
        highs.setOptionValue("mip_rel_gap", 1e-6)
        highs.setOptionValue("threads", 1)
        highs.setObjective(self._objective)
        if start is not None:
            highs.setSolution(*self._solution_of(*start))
        highs.solve()
        if not highs.getSolution().value_valid:
            if start is None:
                raise Misuse("the servers have too few cores for these stages")
            return *start, 1.0
        pick = [[highs.val(variable) for variable in row] for row in self._x]
        count = [[highs.val(variable) for variable in row] for row in self._z]
        gap = highs.getInfo().mip_gap
        best = [max(range(len(row)), key=row.__getitem__) for row in pick]
        threads = [1 + max(range(len(row)), key=row.__getitem__) for row in count]
        return best, threads, min(1.0, gap) if gap > TOLERANCE else 0.0

    def _solution_of(self, places: list[int], threads: list[int]) -> tuple[int, Any, Any]:
        """The binary variables of an allocation, as HiGHS takes them."""
        values: dict[int, float] = {}
        for x, z, place, count in zip(self._x, self._z, places, threads, strict=True):
            values |= {variable.index: float(j == place) for j, variable in enumerate(x)}
            values |= {variable.index: float(t + 1 == count) for t, variable in enumerate(z)}
        sides = {place: stage.side for stage, place in zip(self._stages, places, strict=True)}
        for j, model in enumerate(self._models):
            values[model.index] = float(sides.get(j) == "model")
        return (
            len(values),
            np.array(list(values), dtype=np.int32),
            np.array(list(values.values()), dtype=np.float64),
        )


def _check(
    stages: Sequence[Stage], servers: Sequence[StageServer], objective: str, per_core: int
) -> None:
    if objective not in OBJECTIVES:
        raise Misuse(f"the objective is {objective!r}; possible are {', '.join(OBJECTIVES)}")
    if not stages or not servers:
        raise Misuse("an allocation needs stages and servers")
    if per_core < 1 or min(server.cores for server in servers) < 1:
        raise Misuse("a server needs a core, and a core a thread")
    if min(stage.seconds for stage in stages) <= 0:
        raise Misuse("a stage takes some time: profile it first")
