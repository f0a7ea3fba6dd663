"""What a piece costs ahead of time (BFV): both sides prepare some here, over loopback TLS."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from privet import keys
from privet.parties.credentials import Credentials
from privet.stream.preparing import PreparingData, PreparingModel, Rules, Where, name_of
from privet.suites import make_policy

SECONDS = 300.0
"""Deadline of a message."""


@dataclass(frozen=True)
class PieceCost:
    """Of the first piece, with keys and what else a session makes once, and of a later one.

    Seconds on this machine and processor seconds of both sides, and bytes that each side sent.
    """

    first_seconds: float
    seconds: float
    cpu_seconds: float
    bytes_data: int
    bytes_model: int


def rehearse(public: bytes, weights: bytes, pieces: int = 3) -> PieceCost:
    """Prepares a first piece and `pieces` more, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as process:
        return process.submit(_rehearse, public, weights, pieces).result()


def _rehearse(public: bytes, weights: bytes, pieces: int) -> PieceCost:
    with tempfile.TemporaryDirectory() as folder:
        keys.make(Path(folder))
        ours, theirs = (Credentials.from_directory(folder, it) for it in ("client", "server"))
        rules = Rules(make_policy(revealed_values=True).text(), folder)
        model = PreparingModel(public, weights, theirs.files, SECONDS, rules)
        data = PreparingData(public, ours.files, SECONDS)
        where = Where("127.0.0.1", model.listen("127.0.0.1", 0), "127.0.0.1")
        # The model provider's parts pile up otherwise, and preparations wait.
        fetching = threading.Thread(
            target=lambda: [model.fetch(SECONDS) for _ in range(1 + pieces)], daemon=True
        )
        fetching.start()
        _, first = data.prepare(where, name_of(bytes(16), 1))
        began, worked = time.perf_counter(), time.process_time()
        for number in range(pieces):
            _, cost = data.prepare(where, name_of(bytes(16), 2 + number))
        seconds = (time.perf_counter() - began) / pieces
        cpu_seconds = (time.process_time() - worked) / pieces
        fetching.join()
        model.close()
    return PieceCost(first.seconds, seconds, cpu_seconds, cost.bytes_client, cost.bytes_server)
