"""Two services side by side, of which one takes over: nobody who asks meanwhile is turned away.

Both have certificates of one name and state of their own, as two versions of the program would; a
switch before them sends connections to the one or the other, as a load balancer does.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tests.e2e.gateways import HTTP, IMAGES, Gateway, gateway
from tests.e2e.processes import SOON
from tests.e2e.services import put_digits, serving
from tests.e2e.test_commands import key_folder

__all__ = ["key_folder"]


class Switch:
    """Passes connections on to `target`, which may change; those that are open stay."""

    def __init__(self) -> None:
        self.target = 0
        self.port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connection = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._copy(reader, connection[1]), self._copy(connection[0], writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    @contextmanager
    def running(self) -> Iterator[Switch]:
        """Passes on meanwhile."""

        def run() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(task)
            self._loop.close()

        task = self._loop.create_task(self._serve())
        thread = threading.Thread(target=run)
        thread.start()
        assert self._ready.wait(SOON)
        try:
            yield self
        finally:
            for open_task in asyncio.all_tasks(self._loop):
                self._loop.call_soon_threadsafe(open_task.cancel)
            thread.join()


class Asking(threading.Thread):
    """An application that asks one question after the other until it is told to stop."""

    def __init__(self, front: Gateway) -> None:
        super().__init__()
        self._front = front
        self._over = threading.Event()
        self.right: list[bool] = []
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._over.is_set():
            index = len(self.right) % len(IMAGES)
            try:
                logits = self._front.infer(HTTP, "digits", IMAGES[index : index + 1])
                label = int(np.load(Path("zoo/models/digits-cnn.npz"))["labels"][index])
                self.right.append(int(logits.argmax()) == label)
            except Exception as error:
                self.failures.append(repr(error))

    def until(self, count: int) -> None:
        """Waits until so many questions more were answered."""
        goal, limit = len(self.right) + count, time.monotonic() + SOON
        while len(self.right) < goal:
            assert time.monotonic() < limit, self.failures
            time.sleep(0.02)

    def stop(self) -> None:
        self._over.set()
        self.join()


def port(address: str) -> int:
    """The port in an address."""
    return int(address.rpartition(":")[2])


def test_a_new_service_takes_over_from_an_old_one(tmp_path: Path, key_folder: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        put_digits(folder / "repository")
    with Switch().running() as switch, serving(old, key_folder) as first:
        switch.target = port(first.address)
        with gateway(f"localhost:{switch.port}", key_folder, tmp_path / "own") as front:
            caller = Asking(front)
            caller.start()
            try:
                caller.until(3)
                with serving(new, key_folder) as second:
                    switch.target = port(second.address)
                    assert first.process.end(signal.SIGTERM) == 0
                    caller.until(3)
                    caller.stop()
            finally:
                caller.stop()
    assert caller.failures == []
    assert all(caller.right)
