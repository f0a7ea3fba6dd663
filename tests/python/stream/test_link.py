"""What one end of a session takes from the other."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, Mock

import pytest

from privet.errors import PeerMisbehaved
from privet.stream.frames import Failed, FrameKind, Header
from privet.stream.link import Patience, greet

SAID = "no\x1b[2J\n room\u202e".encode() + b"\xff"


def test_control_characters_of_a_refusal_do_not_reach_the_terminal() -> None:
    async def refused() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(Header(FrameKind.REFUSED, len(SAID), 0, 0).to_bytes() + SAID)
        writer = Mock(drain=AsyncMock())
        await greet(reader, writer, b"", Patience())

    with pytest.raises(PeerMisbehaved) as excinfo:
        asyncio.run(refused())
    assert str(excinfo.value) == "the model provider refused: no[2J room\ufffd"


def test_control_characters_of_an_abort_do_not_reach_the_terminal() -> None:
    assert Failed.parse(bytes(7) + b"\x05" + SAID) == Failed(5, "no[2J room\ufffd")
