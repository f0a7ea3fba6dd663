"""A process that answers `/` over TLS and may open few files; for `test_connections.py`.

Arguments: the folder of keys, how many files, and `ours` or `aiohttp` for who accepts.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

from aiohttp import web

from privet.logs import log_to_stderr
from privet.service.control.identity import tls
from privet.service.http import serving


def tell(port: int) -> None:
    """Prints where it listens."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


async def hello(_request: web.Request) -> web.Response:
    """An answer."""
    return web.Response(text="hello")


async def main(keys: Path, files: int, kind: str) -> None:
    """Serves until it is killed; prints the port."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    log_to_stderr()
    app = web.Application()
    app.router.add_get("/", hello)
    if kind == "aiohttp":
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls(keys)).start()
        tell(runner.addresses[0][1])
        await asyncio.Event().wait()
    async with serving(app, "127.0.0.1", 0, tls(keys), shutdown=0.1) as (_, port):
        tell(port)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
