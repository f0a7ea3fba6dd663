"""A worker: a process that does one job at a time for whom it is told to.

`python -m privet.service.worker` reads orders from standard input and writes events to standard
output, a JSON object a line. The first line says where its things are; `listening` answers it.

An order says in `do` what it is:

- `offer`, with the fields of `ProgramOffer`: answered by `offered` with `program`, or by
  `not offered` with `error` and `message`.
- `withdraw`, with `program`: not answered.
- `grant`, with the fields of `Grant`: `granted`; then `started`; then `finished` or `failed`.
- `revoke`, with `job`: `failed`, unless the job has ended.
- `take back`, with `job`: `failed` as `absent`, unless the client has connected or the job has
  ended.

A brief job is never reported as `started`, see `Admission`.

It serves sessions like any server, but each request passes the gate of `Admission`. It dies with
its parent, and with standard input.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privet import _native, tracing
from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.errors import Misuse, PrivetError, Short
from privet.logs import Seldom, log_to_stderr, trace
from privet.runtime import Credentials, Server
from privet.runtime.idle import IDLE_SECONDS
from privet.runtime.machine import share_one_heap
from privet.runtime.shortage import as_reported, shortage
from privet.service import confinement
from privet.service.admission import Admission, single
from privet.service.executor.grant import Grant
from privet.suites import Guard, Policy, SingleJobSuite, Suite, from_label, make_policy
from privet.suites.single import ProgramHost

FILES = (PUBLIC_FILE, PRIVATE_FILE)

STRANGER_SECONDS = 2.0
"""How long a session may be silent whose client has no grant."""

_log = logging.getLogger("privet.service.worker")
"""Its own name: as a program, this module is called `__main__`, whose lines nobody prints."""


class DataPort(Server):
    """A server whose sessions do what `admission` admits."""

    def __init__(
        self, credentials: Credentials, admission: Admission, guard: Guard, **options: Any
    ) -> None:
        self._admission = admission
        self._guard = guard
        self._hosts: dict[tuple[str, str], tuple[ProgramHost, Suite]] = {}
        self._seldom = Seldom()
        super().__init__(credentials, **options)
        admission.idle = self._acceptor.idle

    def offer(self, folder: str, warm: bool, hosts: Sequence[str]) -> str:
        """Offers a program, to `hosts` (labels of suites) or else to suites with material; its
        hash. The service has checked it. Raises what `add_saved` does."""
        if not hosts:
            return self.add_checked(folder, warm=warm)
        public, private = ((Path(folder) / name).read_bytes() for name in FILES)
        program = hashlib.sha256(public).hexdigest()
        shared: dict[str, ProgramHost] = {}
        for label in hosts:
            suite = from_label(label)
            if not isinstance(suite, SingleJobSuite):
                raise Misuse(f"suite {label} has no server of its own")
            if suite.name not in shared:
                shared[suite.name] = suite.host(public, private, self._guard)
            self._hosts[program, label] = shared[suite.name], suite
        return program

    def withdraw(self, program: str) -> None:
        """Offers a program no more."""
        self._native.remove(program)
        self._hosts = {key: host for key, host in self._hosts.items() if key[0] != program}

    def _session(self, connection: _native.Connection, client: str) -> None:
        session = self._admission.session(client, connection.stopper())
        hosted = self._hosts.get((session.program, session.suite))

        def admit(kind: str, *request: str | None) -> str | None:
            return self._revoked.refuses(client) or session.admit(kind, *request)

        if not session.is_expected:
            connection.set_timeout(STRANGER_SECONDS)
        try:
            if hosted is None:
                self._native.serve(
                    connection, session.on_event, admit, session.threads, IDLE_SECONDS
                )
            else:
                host, suite = hosted
                gate = single(admit, session.suite)
                host.serve(connection, suite, session.served, gate, session.threads)
        except Exception as error:
            reported = as_reported(error)
            if reported is not error:
                _log.error("a session broke off", extra={"trace": trace(error)})
            if not session.failed(reported):
                self._failed(client, reported)
            if isinstance(reported, Short):
                self._on_shortage(reported)
        finally:
            session.over()

    def _on_shortage(self, error: Short) -> None:
        self._admission.on_shortage(error)

    def _failed(self, client: str, error: PrivetError) -> None:
        """Tells of one a minute: whoever has no certificate makes as many as it likes."""
        times = self._seldom.due()
        if times is not None:
            text = "a session with %s without a job failed: %s"
            _log.info(text, client[:16], error, extra={"times": times})


class Worker:
    """Obeys orders of its parent, who reads events from the file descriptor `events`."""

    def __init__(self, job: dict[str, Any], events: int) -> None:
        tracing.configure(job["trace"], "privet-worker")
        self._events = events
        self._lock = threading.Lock()
        self._admission = Admission(self.send_event, self.exit)
        policy = make_policy() if job["policy"] is None else Policy(job["policy"])
        self._port = DataPort(
            Credentials.from_directory(job["keys"], "server"),
            self._admission,
            Guard(policy, str(Path(job["state"]) / "server" / "answers")),
            state=job["state"],
            policy=None if job["policy"] is None else policy,
            dealer=job["dealer"],
            max_material=job["max_material"],
            host=job["host"],
            port=job["port"],
            timeout=job["timeout"],
            revoked=job["revoked"],
        )

    def run(self) -> None:
        """Works until standard input closes."""
        self._port.start()
        self.send_event("listening", port=self._port.address[1])
        for line in sys.stdin:
            self._on_order(json.loads(line))

    def send_event(self, event: str, **fields: Any) -> None:
        """Tells the parent."""
        line = json.dumps({"event": event, **fields}) + "\n"
        with self._lock:
            try:
                os.write(self._events, line.encode())
            except OSError:
                os._exit(1)

    def exit(self) -> None:
        """Ends the process at once: nothing that it holds may be used any more."""
        os._exit(1)

    def _on_order(self, order: dict[str, Any]) -> None:
        match order.pop("do"):
            case "offer":
                self._offer(order["folder"], order["warm"], order["hosts"])
            case "withdraw":
                self._port.withdraw(order["program"])
                self._admission.changed()
            case "grant":
                self._grant(Grant(**{**order, "cores": tuple(order["cores"])}))
            case "revoke":
                self._admission.revoke(order["job"])
            case "take back":
                self._admission.take_back(order["job"])

    def _offer(self, folder: str, warm: bool, hosts: Sequence[str]) -> None:
        try:
            program = self._port.offer(folder, warm, hosts)
        except PrivetError as error:
            self.send_event("not offered", error=type(error).__name__, message=str(error))
        except OSError as error:
            message = f"{error.filename} cannot be read: {error.strerror}"
            self.send_event("not offered", error="InvalidProgram", message=message)
        else:
            self.send_event("offered", program=program)
        finally:
            self._admission.changed()

    def _grant(self, grant: Grant) -> None:
        try:
            self._admission.open(grant)
        except (PrivetError, OSError, RuntimeError) as error:
            message = shortage(error) or str(error)
            self.send_event("failed", job=grant.job, error="failed", message=message, kept=True)


def main() -> None:
    """Works for the process that started this one."""
    confinement.die_with_parent()
    share_one_heap()
    confinement.keep_no_core()
    # Who stops the service, in a terminal or by its control group, stops its workers through it,
    # after their jobs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log_to_stderr()
    # What else prints must not look like an event.
    events = os.dup(1)
    os.dup2(2, 1)
    try:
        Worker(json.loads(sys.stdin.readline()), events).run()
    except PrivetError as error:
        line = {"event": "not listening", "error": type(error).__name__, "message": str(error)}
        os.write(events, (json.dumps(line) + "\n").encode())
    tracing.flush()
    # Jobs and sessions end with the process; nobody waits for them.
    os._exit(0)


if __name__ == "__main__":
    main()
