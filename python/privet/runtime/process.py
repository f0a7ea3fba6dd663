"""One party as a process of its own, for `privet.run`: `python -m privet.runtime.process JOB.json`.

The job names the party and the files it may read; the process prints one JSON object on each line
of standard output. It loads neither the model nor the reference, so that its memory is a party's.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from privet._native import resident_memory
from privet.errors import PrivetError
from privet.runtime.client import Client
from privet.runtime.credentials import Credentials
from privet.runtime.dealer import Dealer, Dealt
from privet.runtime.machine import share_one_heap
from privet.runtime.server import Finished, Server
from privet.suites import Policy, from_json


def _say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Processor:
    """Seconds that this process's threads computed, from one call to the next."""

    def __init__(self) -> None:
        self._before = time.process_time()

    def lap(self) -> float:
        """Seconds since the last call."""
        now = time.process_time()
        self._before, before = now, self._before
        return now - before


def serve(job: dict[str, Any]) -> None:
    """Serves one program until standard input closes."""
    processor = Processor()

    def on_finished(finished: Finished) -> None:
        if finished.error is not None:
            _say("failed", type=type(finished.error).__name__, message=str(finished.error))
        elif finished.cost is not None:
            cost = replace(finished.cost, cpu_seconds=processor.lap())
            _say(finished.kind, cost=asdict(cost))

    before = resident_memory()
    credentials = Credentials.from_directory(job["keys"], "server")
    with Server(
        credentials,
        state=job["state"],
        policy=Policy(job["policy"]),
        dealer=job.get("dealer"),
        memory=job["memory"],
        weights=job.get("weights"),
        timeout=job["timeout"],
        on_finished=on_finished,
    ) as server:
        server.add_saved(job["program"])
        server.start()
        processor.lap()
        _say("listening", port=server.address[1], memory=before)
        sys.stdin.read()


def query(job: dict[str, Any]) -> None:
    """Prepares, unless it is not to, and runs one inference; the result goes to `job["result"]`."""

    def progress(phase: str, done: int, total: int, step: str) -> None:
        _say("progress", phase=phase, done=done, total=total, next=step)

    before = resident_memory()
    with (
        np.load(job["inputs"]) as inputs,
        Client(
            "127.0.0.1",
            job["port"],
            Credentials.from_directory(job["keys"], "client"),
            state=job["state"],
            suite=from_json(job["suite"]),
            dealer=job.get("dealer"),
            memory=job["memory"],
            link=job["link"],
            timeout=job["timeout"],
            # The directory is gone afterwards.
            keep_base_ots=False,
        ) as client,
    ):
        processor = Processor()
        material = client.prepare(progress=progress)[0] if job["prepared"] else None
        offline_seconds = processor.lap()
        result = client.infer(list(inputs.values()), material=material, progress=progress)
        online = replace(result.online, cpu_seconds=processor.lap())
    offline = replace(result.offline, cpu_seconds=offline_seconds) if result.offline else None
    np.savez(job["result"], *result.integers)
    _say(
        "result",
        suite=client.suite.to_json(),
        extension=client.extension,
        memory=before,
        needs=[client.forecast.memory_bytes_client, client.forecast.memory_bytes_server],
        offline=asdict(offline) if offline else None,
        online=asdict(online),
        layers=[asdict(layer) for layer in result.layers],
    )


def deal(job: dict[str, Any]) -> None:
    """Deals until standard input closes."""

    def on_dealt(dealt: Dealt) -> None:
        if dealt.error is not None:
            _say("failed", type=type(dealt.error).__name__, message=str(dealt.error))
        elif dealt.cost is not None:
            _say("dealt", cost=asdict(dealt.cost))

    credentials = Credentials.from_directory(job["keys"], "dealer")
    with Dealer(credentials, timeout=job["timeout"], on_dealt=on_dealt) as dealer:
        dealer.start()
        _say("listening", port=dealer.address[1])
        sys.stdin.read()


def main() -> int:
    """Runs the job named on the command line."""
    share_one_heap()
    job = json.loads(Path(sys.argv[1]).read_text())
    try:
        {"server": serve, "client": query, "dealer": deal}[job["role"]](job)
    except PrivetError as error:
        _say("failed", type=type(error).__name__, message=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
