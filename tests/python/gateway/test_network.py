"""A proxy near by does not hide a service far away."""

from __future__ import annotations

import asyncio
import socket

import pytest

from privet.gateway import reach

FAR_SECONDS = 0.04


@pytest.mark.parametrize("far", [False, True])
def test_a_slow_answer_counts_and_a_quick_one_does_not(
    far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0

    async def ask() -> None:
        nonlocal count
        count += 1
        await asyncio.sleep(FAR_SECONDS if far else 0)

    # A machine under load must not make the near one far.
    monkeypatch.setattr(reach, "BUSY_SECONDS", 0.03 if far else 60.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        network = asyncio.run(reach.network_to("127.0.0.1", port, ask))
    assert network is not None
    if far:
        assert (network.rtt >= FAR_SECONDS, count) == (True, 1 + reach.ANSWERS)
    else:
        assert count == 2


def test_nobody_there_is_no_network() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def ask() -> None:
        raise AssertionError("nobody can be asked")

    assert asyncio.run(reach.network_to("127.0.0.1", port, ask)) is None
