"""`privet prepare --count`: entries that wait for one another."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from privet.cli.prepare import _make
from privet.errors import JobFailed
from privet.gateway import Terms
from privet.suites import Gmw

SUITE = Gmw(rounds="log")


class Service:
    """A service's client, at which entries end as the test says, one after the other."""

    def __init__(self, *outcomes: str) -> None:
        self.outcomes = list(outcomes)
        self.notified = 0

    async def __aenter__(self) -> Service:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def reach(self, *_: object) -> None:
        pass

    async def notify(self, _model: str, **_: Any) -> Any:
        self.notified += 1

        async def ready() -> None:
            outcome = self.outcomes.pop(0)
            if outcome != "done":
                raise JobFailed("it failed", job="j", outcome=outcome, reason="r")

        return SimpleNamespace(id=str(self.notified), ready=ready)

    async def resolve(self, *_: object) -> Any:
        program = SimpleNamespace(program_hash="p")
        return SimpleNamespace(program=program), SimpleNamespace(suite=SUITE)

    async def stock(self, *_: object) -> int:
        return self.notified


def make(service: Service, count: int) -> list[str]:
    """The ids of what was made."""
    counts = {"m": count}
    (level,) = asyncio.run(_make(cast(Any, service), counts, Terms(SUITE), 1, 300.0, 0.0, None))
    return level.ids


def test_entries_that_waited_for_others_beyond_their_timeout_are_asked_for_again() -> None:
    """Material for ten inferences of a large model takes longer than the timeout of each."""
    service = Service("done", "timed out", "done", "timed out", "done")
    assert make(service, 3) == ["1", "4", "5"]
    assert service.notified == 5


@pytest.mark.parametrize(
    "outcomes", [("timed out",), ("done", "timed out", "timed out"), ("done", "failed")]
)
def test_an_entry_that_takes_too_long_by_itself_is_an_error(outcomes: tuple[str, ...]) -> None:
    with pytest.raises(JobFailed):
        make(Service(*outcomes), min(len(outcomes), 2))
