"""A model provider's session, to which a data provider sends whatever it likes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from tests.python.stream import models

from privet.compiler.compile import PRIVATE_FILE
from privet.errors import PeerMisbehaved
from privet.stream.cipher import PAILLIER
from privet.stream.frames import Failed, FrameKind, Opened, TensorFrame
from privet.stream.link import Patience
from privet.stream.provider import Caller, ProviderSession
from privet.stream.rounds import LinearRounds
from privet.stream.stages import Stages
from privet.suites import Guard, make_policy

WINDOW = 4


class SlowPool:
    """Workers that answer when they are told to."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self.calls = 0
        self.go = asyncio.Event()

    async def call(self, stage: int, part: int, method: str, *arguments: Any) -> Any:
        if method == "ready":
            return None
        self.calls += 1
        try:
            await self.go.wait()
        finally:
            self.calls -= 1
        _key, _index, elements, _given = arguments
        return bytes(len(elements) // 4 * self._stages.row_bytes), 0.0


@pytest.fixture
def stages(tmp_path: Path) -> Stages:
    compiled = models.perceptron()
    compiled.save(tmp_path)
    public = compiled.program.to_public_bytes()
    return Stages(public, PAILLIER, (tmp_path / PRIVATE_FILE).read_bytes())


def opened(
    stages: Stages, pool: SlowPool, folder: Path, answers: int | None = None
) -> ProviderSession:
    """A session whose data provider has sent a key; nobody looks at it here."""
    rounds = LinearRounds(stages, cast("Any", pool), [1] * len(stages.rounds))
    policy = make_policy(revealed_values=True, answers_per_hour=answers)
    guard = Guard(policy, str(folder / "answers"))
    session = ProviderSession(rounds, WINDOW, Caller("client", None), guard, Patience())
    session._on_frame(FrameKind.KEY, bytes(stages.key_bytes))
    return session


def ask(session: ProviderSession, stages: Stages, number: int) -> None:
    """Opens a request and sends its input."""
    session._on_frame(FrameKind.OPEN, Opened(number, 0).to_bytes())
    ((value, count),) = stages.inputs.items()
    rows = bytes(count * stages.row_bytes)
    session._on_frame(FrameKind.TENSOR, TensorFrame(number, value, rows).to_bytes())


def give_up(session: ProviderSession, number: int) -> None:
    session._on_frame(FrameKind.FAILED, Failed(number, "given up").to_bytes())


def test_what_is_done_for_a_request_ends_with_it(stages: Stages, tmp_path: Path) -> None:
    async def run() -> None:
        pool = SlowPool(stages)
        session = opened(stages, pool, tmp_path)
        for number in range(1, 41):
            ask(session, stages, number)
            await asyncio.sleep(0)
            if number >= WINDOW:
                give_up(session, number)
        await asyncio.sleep(0.05)
        assert pool.calls == WINDOW - 1
        await session.close()
        assert pool.calls == 0

    asyncio.run(run())


def test_work_ends_with_its_session(stages: Stages, tmp_path: Path) -> None:
    async def run() -> None:
        pool = SlowPool(stages)
        for _ in range(5):
            session = opened(stages, pool, tmp_path)
            for number in range(1, WINDOW + 1):
                ask(session, stages, number)
            await asyncio.sleep(0.01)
            assert pool.calls == WINDOW
            session._on_frame(FrameKind.BYE, b"")
            await session.over.wait()
            await asyncio.sleep(0.01)
            assert pool.calls == 0

    asyncio.run(run())


def test_a_request_given_up_in_a_round_does_not_begin_the_next(
    stages: Stages, tmp_path: Path
) -> None:
    wrong: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, message: wrong.append(message))
        pool = SlowPool(stages)
        session = opened(stages, pool, tmp_path)
        ask(session, stages, 1)
        await asyncio.sleep(0.01)
        give_up(session, 1)
        pool.go.set()
        await asyncio.sleep(0.05)
        # The control: a request that goes on is answered.
        ask(session, stages, 2)
        await asyncio.sleep(0.05)
        kinds = [kind for _, kind, _ in session.link._outbox]
        assert kinds == [FrameKind.TENSOR]
        await session.close()

    asyncio.run(run())
    assert wrong == []


async def overdraw(session: ProviderSession, reads: bool) -> int:
    """Opens requests beyond what the policy allows, 3,000 or until the session ends: how many
    frames are kept for the data provider."""
    kept = 0
    try:
        for number in range(1, 3001):
            session._on_frame(FrameKind.OPEN, Opened(number, 0).to_bytes())
            await asyncio.sleep(0)
            kept = max(kept, session.link.unacknowledged)
            if reads:
                await session.link._acknowledge(session.link._next - 1)
    except PeerMisbehaved:
        return -kept
    return kept


def test_refusals_that_nobody_reads_do_not_pile_up(stages: Stages, tmp_path: Path) -> None:
    async def run() -> None:
        session = opened(stages, SlowPool(stages), tmp_path, answers=1)
        assert -1100 < await overdraw(session, reads=False) < 0
        await session.close()
        # The control: who reads why requests are refused goes on.
        session = opened(stages, SlowPool(stages), tmp_path, answers=1)
        assert 0 < await overdraw(session, reads=True) < 10
        await session.close()

    asyncio.run(run())
