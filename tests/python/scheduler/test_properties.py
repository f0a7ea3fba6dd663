"""Whatever happens, in whatever order: no rule of the audit is ever broken.

T_on never before its T_pre, cores and memory never exceeded, no material used twice or elsewhere or
by another client, timeouts kept, every submission ends once, drains end, decisions repeat.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.python.scheduler.world import World

from privet.scheduler import Policy, named

NAMES = (
    "fcfs",
    "priority",
    "deadline",
    "fair",
    "ahead+urgent",
    "ahead+priority",
    "shared+fcfs",
    "shared+ahead+fair",
)


class Weather(RuleBasedStateMachine):
    """Hypothesis picks the events and shrinks what fails."""

    world: World | None = None

    @initialize(name=st.sampled_from(NAMES), seed=st.integers(0, 19))
    def begin(self, name: str, seed: int) -> None:
        """A fresh world."""
        self.world = World(named(name), seed)

    @rule(chance=st.randoms(use_true_random=False), event=st.sampled_from(World.EVENTS))
    @precondition(lambda self: self.world is not None)
    def happen(self, chance: object, event: Callable[[World], None]) -> None:
        """One event, its details from `chance`."""
        assert self.world is not None
        self.world.random = chance  # type: ignore[assignment]
        event(self.world)

    def teardown(self) -> None:
        """Whatever happened, a drain ends."""
        if self.world is not None:
            self.world.finish()


TestWeather = Weather.TestCase
TestWeather.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)


@pytest.mark.parametrize("name", NAMES)
def test_random_events_break_no_rule(name: str) -> None:
    for seed in range(3):
        world = World(named(name), seed)
        for _ in range(250):
            world.step()
        world.finish()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_events_give_the_same_decisions(name: str) -> None:
    logs = []
    for _ in range(2):
        world = World(named(name), 7)
        for _ in range(300):
            world.step()
        world.finish()
        logs.append(world.log)
    assert logs[0] == logs[1]


def test_nothing_is_left_behind() -> None:
    """After a drain the scheduler holds no trace of what has ended, so a service cannot leak."""
    world = World(named("ahead+priority"), 3)
    for _ in range(800):
        world.step()
    world.finish()
    state = world.scheduler._state
    assert not state.running
    assert not state.queues
    assert not state.making
    assert not state.pairs_of
    assert all(entry.submission.notice and entry.ended for entry in state.entries.values())
    assert len(state.timers) == len(state.material.unused())
    assert len(state.material) == len(state.material.unused())
    assert sum(state.material.bytes.values()) == sum(
        entry.bytes for entry in state.material.unused()
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_million_events(figures: list[str]) -> None:
    events, seed = 0, 1000
    while events < 1_000_000:
        policy: Policy = named(NAMES[seed % len(NAMES)])
        world = World(policy, seed)
        for _ in range(3000):
            world.step()
        world.finish()
        events += world.audit.events
        seed += 1
    figures.append(f"scheduler: {events} random events and actions audited, no rule broken")
