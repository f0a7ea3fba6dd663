"""One attempt at a job: a connection to a worker, on which material is made or used.

This is the protocol of `privet.Client`, and blocks: a attempt runs on a thread of its own.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Literal

from privet import _native
from privet.errors import LinkError, PeerMisbehaved
from privet.gateway.model import Offer, Terms
from privet.runtime import Credentials
from privet.runtime.client import network_of
from privet.runtime.result import Spent
from privet.runtime.session import Session
from privet.suites import material_suite

RETRY_SECONDS = 0.2

Payload = list[bytes]
"""Inputs of one inference as the program takes them: little-endian int64, in its order."""


@dataclass(frozen=True)
class Lease:
    """The service's lease of a worker for a job; the fields are those of its answer."""

    job: str
    phase: Literal["prepare", "infer"]
    host: str
    port: int
    program: str
    suite: str
    material: str | None
    grace: float
    seconds: float
    dealer: str | None


def read_lease(document: Any) -> Lease:
    """A lease from the service's answer.

    # Errors
    `PeerMisbehaved` if it does not have the form of one.
    """
    try:
        phase = document["phase"]
        if phase not in ("prepare", "infer") or (phase == "infer") != bool(document["material"]):
            raise ValueError(f"phase {phase!r} with material {document['material']!r}")
        return Lease(
            job=str(document["job"]),
            phase=phase,
            host=str(document["host"]),
            port=int(document["port"]),
            program=str(document["program"]),
            suite=str(document["suite"]),
            material=document["material"] and str(document["material"]),
            grace=float(document["grace"]),
            seconds=float(document["seconds"]),
            dealer=document["dealer"] and str(document["dealer"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PeerMisbehaved(f"the service gave no proper lease: {error!r}") from error


@dataclass(frozen=True)
class WorkerClient:
    """What a attempt takes along: who the client is, where its material is, whom it expects.

    `server_name` must be in the worker's certificate: it is the name by which the service itself is
    known, and nothing that the service says changes it. `dealer` goes before the service's.
    """

    credentials: Credentials
    state: str | os.PathLike[str]
    server_name: str
    dealer: str | None = None
    link: _native.Link | None = None
    max_disk: int | None = None


class Attempt:
    """One job at a worker. `prepare` and `infer` block; `stop` may be called from any thread."""

    def __init__(
        self, lease: Lease, worker_client: WorkerClient, offer: Offer, terms: Terms
    ) -> None:
        self.lease = lease
        self._worker_client = worker_client
        self._offer = offer
        self._terms = terms
        self._lock = threading.Lock()
        self._stopped = False
        self._session: Session | None = None

    def prepare(self) -> tuple[str, str]:
        """Makes a material entry: its id, and the report.

        # Errors
        As `privet.Client.prepare`.
        """
        session, plan = self._arrive()
        try:
            return session.native.prepare(plan)
        finally:
            session.leave()

    def infer(self, payload: Payload) -> Spent:
        """Uses the material that the service named; this side claims it before anything is sent.

        # Errors
        `MaterialError` if this side has not got it, or used it; else as `privet.Client.infer`.
        """
        material = self.lease.material or ""
        session, plan = self._arrive()
        try:
            return material, *session.native.infer(plan, material, payload)
        finally:
            session.leave()

    def stop(self) -> None:
        """Breaks the connection: what runs then fails with `LinkError`."""
        with self._lock:
            self._stopped = True
            if self._session is not None:
                self._session.abandon()

    def _arrive(self) -> tuple[Session, _native.Plan]:
        if self.lease.program != self._offer.program.program_hash:
            raise PeerMisbehaved("the service wants to run another program than was asked for")
        session = self._connect()
        with self._lock:
            self._session = session
            if self._stopped:
                session.abandon()
        network = self._worker_client.link or network_of(session.rtt)
        plan = self._offer.plan(self._terms, network)
        if self.lease.suite != plan.suite:
            session.leave()
            raise PeerMisbehaved(
                f"the service wants to run suite {self.lease.suite!r}; {plan.suite!r} was asked for"
            )
        return session, plan

    def _connect(self) -> Session:
        """Connects within the time that the service gives."""
        limit = time.monotonic() + self.lease.grace
        who = self._worker_client
        dealt = material_suite(self._terms.suite).dealt
        while True:
            try:
                return Session(
                    self.lease.host,
                    self.lease.port,
                    who.credentials,
                    state=who.state,
                    dealer=(who.dealer or self.lease.dealer) if dealt else None,
                    max_disk=who.max_disk,
                    link=who.link,
                    server_name=who.server_name,
                    timeout=self.lease.seconds,
                    patience=self.lease.grace,
                )
            except LinkError:
                if self._stopped or time.monotonic() + RETRY_SECONDS > limit:
                    raise
                time.sleep(RETRY_SECONDS)
