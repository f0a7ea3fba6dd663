"""A small client of a service, as docs/reference/service-api.md describes it.

It makes HTTP calls, then sessions.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp

from privet.errors import PeerError
from privet.runtime import Client, Credentials, Result
from privet.suites import from_label

SOON = 60.0


def tls(keys: Path, role: str) -> ssl.SSLContext:
    """TLS with the certificate of a role."""
    context = ssl.create_default_context(cafile=str(keys / "ca.pem"))
    context.load_cert_chain(keys / f"{role}.pem", keys / f"{role}.key")
    return context


class ServiceCaller:
    """Asks a service at `address`, under the certificate of `role`; an async context manager."""

    def __init__(self, address: str, keys: Path, state: Path, role: str = "client") -> None:
        self._base = f"https://localhost:{address.rpartition(':')[2]}"
        self._keys, self._state, self._role = keys, state, role
        self._session: aiohttp.ClientSession | None = None
        self._ran: set[str] = set()
        self.headers: dict[str, str] = {}
        self.failures: list[PeerError] = []

    async def __aenter__(self) -> ServiceCaller:
        connector = aiohttp.TCPConnector(ssl=tls(self._keys, self._role), limit=0)
        self._session = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and answer of a call; JSON is read."""
        status, answer, _ = await self.ask(method, path, body)
        return status, answer

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any, Any]:
        """As `call`, with the answer's headers."""
        assert self._session is not None
        data = None if body is None else {"json": body}
        async with self._session.request(
            method, self._base + path, headers=self.headers, **(data or {})
        ) as response:
            kind = response.content_type
            answer = await (response.json() if kind == "application/json" else response.text())
            return response.status, answer, response.headers

    async def good(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of a call that must succeed."""
        status, answer = await self.call(method, path, body)
        assert status < 300, (status, answer)
        return answer

    async def notify(self, model: str, **wish: Any) -> str:
        """Announces a request; the notice's id."""
        answer = await self.good("POST", f"/v2/models/{model}/notices", wish)
        return str(answer["id"])

    async def request(self, model: str, **wish: Any) -> str:
        """Asks for an inference; the request's id."""
        answer = await self.good("POST", f"/v2/models/{model}/requests", wish)
        return str(answer["id"])

    async def follow(self, id: str, *inputs: Any) -> tuple[dict[str, Any], list[Result]]:
        """Goes along with a job, and whatever is to be prepared meanwhile, until it has ended or a
        notice is prepared: what it then is, and results for `inputs`."""
        results: list[Result] = []
        left, sequence = list(inputs), 0
        work: list[asyncio.Task[Result | None]] = []
        async with asyncio.timeout(SOON):
            while True:
                updates = await self.good("GET", f"/v2/jobs?wait=10&seen={sequence}")
                sequence = updates["sequence"]
                for job in updates["jobs"]:
                    for go in job["go"]:
                        if go["job"] in self._ran:
                            continue
                        self._ran.add(go["job"])
                        if go["phase"] == "infer":
                            # The service may be sooner than this side's own end of a preparation.
                            await asyncio.gather(*work)
                        sample = left.pop(0) if go["phase"] == "infer" else None
                        call = self._attempt(job, go, sample, left)
                        work.append(asyncio.create_task(call))
                jobs = [job for job in updates["jobs"] if job["id"] == id]
                if jobs and jobs[0]["state"] in ("ended", "prepared") and jobs[0]["outcome"]:
                    for result in await asyncio.gather(*work):
                        results += [result] if result is not None else []
                    return jobs[0], results

    async def _attempt(
        self, job: dict[str, Any], go: dict[str, Any], sample: Any, left: list[Any]
    ) -> Result | None:
        """Goes; if that fails, the input waits for the next time: the service may run it again."""
        try:
            return await asyncio.to_thread(self.go, job, go, sample)
        except PeerError as error:
            self.failures.append(error)
            if sample is not None:
                left.insert(0, sample)
            return None

    def go(self, job: dict[str, Any], go: dict[str, Any], sample: Any) -> Result | None:
        """Prepares, or infers on `sample`."""
        with Client(
            go["host"],
            go["port"],
            Credentials.from_directory(self._keys, self._role),
            state=self._state,
            model=go["program"],
            program_hash=go["program"],
            suite=from_label(go["suite"]),
            dealer=go["dealer"],
            server_name=go["server_name"],
            timeout=30,
        ) as client:
            assert client.label == go["suite"]
            if go["phase"] == "prepare":
                client.prepare()
                return None
            return client.infer(sample, material=go["material"])
