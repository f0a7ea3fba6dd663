"""The gateway's listeners: connections of gRPC beyond its bound are closed, and take no files."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from tests.python.gateway.test_rest import Echo

from privet.cli.failures import exit_code
from privet.gateway.endpoint import serve_grpc, serve_rest
from privet.gateway.oip import predict_pb2 as messages
from privet.gateway.oip.exchange import Exchange
from privet.runtime.listening import ListenerBounds

LIVE = "/inference.GRPCInferenceService/ServerLive"
SILENT = 40
FEW = ListenerBounds(connections=8, of_client=8, handshakes=4, of_address=4)
MANY = ListenerBounds(connections=800, of_client=800, handshakes=4, of_address=4)


async def live(port: int) -> bool:
    """Whether a call on a connection of its own is answered."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        try:
            answer = await channel.unary_unary(LIVE)(b"", timeout=2.0)
        except grpc.aio.AioRpcError:
            return False
        return bool(messages.ServerLiveResponse.FromString(answer).live)


def open_files() -> int:
    """Files that this process has open."""
    return len(os.listdir("/proc/self/fd"))


async def stable_count(count: Callable[[], int]) -> int:
    """A count when it has not changed for a second."""
    last, start = count(), time.monotonic()
    while time.monotonic() - start < 1.0:
        await asyncio.sleep(0.05)
        if (now := count()) != last:
            last, start = now, time.monotonic()
    return last


async def beside_silent(bounds: ListenerBounds) -> tuple[int, bool, bool]:
    """Beside many connections that say nothing: files that the server has open for them, whether
    a call is answered, and whether one is when they are gone."""
    async with serve_grpc(cast(Exchange, Echo()), "127.0.0.1", 0, bounds=bounds) as port:
        assert await live(port)
        gc.collect()  # What earlier tests left to it would close files meanwhile.
        before = await stable_count(open_files)
        with ExitStack() as stack:
            for _ in range(SILENT):
                link = stack.enter_context(closing(socket.socket()))
                link.connect(("127.0.0.1", port))
            sockets = await stable_count(lambda: open_files() - before - SILENT)
            is_live = await live(port)
        await stable_count(open_files)
        return sockets, is_live, await live(port)


@pytest.mark.parametrize("bounds", [FEW, MANY], ids=["as it is", "control"])
def test_connections_of_grpc_are_bounded(bounds: ListenerBounds) -> None:
    sockets, is_live, afterwards = asyncio.run(beside_silent(bounds))
    assert sockets <= bounds.sockets
    assert afterwards
    # The control: with room for all, each has a file, and others are served.
    assert (sockets >= SILENT) == is_live == (bounds is MANY)


@pytest.mark.parametrize("serve", [serve_rest, serve_grpc])
def test_an_address_that_is_taken_is_this_machines_fault(serve: Any) -> None:
    """As it is of `privet serve`: exit code 1, and not that of the other side."""

    async def listen(port: int) -> None:
        async with serve(cast(Exchange, Echo()), "127.0.0.1", port):
            pass

    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match=r"use|bind") as refusal,
    ):
        asyncio.run(listen(taken.getsockname()[1]))
    assert exit_code(refusal.value) == 1
