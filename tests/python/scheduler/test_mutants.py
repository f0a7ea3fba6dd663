"""Tests of the tests: each broken scheduler is caught by the audit in a few worlds at most."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.python.scheduler.mutants import MUTANTS, Change
from tests.python.scheduler.world import World

from privet.errors import Misuse
from privet.research.simulation.audit import Violation
from privet.scheduler import named


class Steps:
    """Counts."""

    taken = 0


def live_through(steps: Steps, worlds: int) -> None:
    """Worlds of 400 events each."""
    for seed in range(worlds):
        world = World(named("ahead+priority"), seed)
        for _ in range(400):
            steps.taken += 1
            world.step()
        world.finish()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_scheduler_is_caught(
    mutant: Callable[[Change], None], monkeypatch: pytest.MonkeyPatch, figures: list[str]
) -> None:
    mutant(lambda owner, name, value: monkeypatch.setattr(owner, name, value))
    steps = Steps()
    with pytest.raises((Violation, Misuse, KeyError)) as excinfo:
        live_through(steps, worlds=20)
    figures.append(f"mutant {mutant.__name__}: caught at event {steps.taken}: {excinfo.value}")


def test_the_unchanged_scheduler_is_not_caught() -> None:
    live_through(Steps(), worlds=5)
