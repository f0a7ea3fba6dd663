"""The model provider's receiver of material goes on after an error that is nobody's answer."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from privet.stream import preprocessing
from privet.stream.preprocessing import Prepared, PreprocessingReceiver
from privet.stream.rounds import Ledger
from privet.suites.costs import NOTHING


class Pool:
    """A preparing worker that has two entries."""

    def __init__(self) -> None:
        self.left = [Prepared("ab", b"", number, None, NOTHING) for number in (1, 2)]

    async def start(self, *_: object) -> None:
        """Nothing has to start."""

    async def call(self, _stage: int, _part: int, method: str, *_: object) -> Any:
        """The port, or the next entry."""
        if method == "listen":
            return 1
        await asyncio.sleep(0)
        return self.left.pop(0) if self.left else await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing has to end."""


def test_an_entry_that_cannot_be_taken_is_logged_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preprocessing, "AGAIN_SECONDS", 0.0)
    numbers: list[int] = []

    async def main() -> None:
        second = asyncio.Event()

        def accept(entry: Prepared) -> None:
            if entry.number == 1:
                raise KeyError("SECRET")
            numbers.append(entry.number)
            second.set()

        receiver = PreprocessingReceiver(cast(Any, Pool()), cast(Any, SimpleNamespace()))
        await receiver.start("localhost", 0, accept, Ledger())
        async with asyncio.timeout(10):
            await second.wait()
        await receiver.close()

    with caplog.at_level(logging.ERROR, "privet"):
        asyncio.run(main())
    assert numbers == [2]
    (line,) = caplog.records
    assert "KeyError" in vars(line)["trace"][0]
    assert "SECRET" not in str(vars(line)["trace"])
