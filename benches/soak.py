"""Many clients at once, for long: no request may be lost, and nothing may grow.

    .venv/bin/python -m benches.soak                           50 clients, 10 minutes
    .venv/bin/python -m benches.soak --minutes 0.3 --json      a short one, for programs

Runs `privet serve` with M1, `privet gateway` before it, and clients of Triton's library before the
gateway, half over HTTP and half over gRPC, each asking again as soon as it has its answer. Every
answer is compared with ONNX Runtime's. Meanwhile it watches memory, threads and open files of the
gateway, the service, and its workers. Exit code 1 if anything was wrong, lost, or grew.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
import tritonclient.grpc
import tritonclient.http

from benches.machine import say
from benches.processes import Process, add_model, command
from benches.processes import service as serving
from benches.vitals import Watch, children
from privet import keys

MODEL = "m1"
TOLERANCE = 0.1
LOOK_SECONDS = 1.0
STOP_SECONDS = 60.0
CONFIG = "[limits]\nqueued = 1000\nqueued_per_client = 500\nnotices_per_client = 100\n"


@dataclasses.dataclass
class Tally:
    """What clients saw: `seconds` of each answer that was right, and how often what went wrong."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    faults: Counter[str] = dataclasses.field(default_factory=Counter)
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def add(self, seconds: float, fault: str | None) -> None:
        """Counts a request."""
        with self.lock:
            if fault is None:
                self.seconds.append(seconds)
            else:
                self.faults[fault] += 1


class Caller:
    """A client that asks again and again, by Triton's library over HTTP or gRPC."""

    def __init__(self, number: int, places: dict[str, str], model: bytes, tally: Tally) -> None:
        self._library: ModuleType = (tritonclient.http, tritonclient.grpc)[number % 2]
        self._place = places[("rest", "grpc")[number % 2]]
        self._random = np.random.default_rng(number)
        self._plain = onnxruntime.InferenceSession(model, _one_thread())
        self._tally = tally

    def run(self, deadline: float) -> None:
        """Asks until the monotonic clock shows `deadline`."""
        with self._library.InferenceServerClient(self._place) as client:
            while time.monotonic() < deadline:
                sample = self._random.uniform(-1, 1, (1, 1, 28, 28)).astype(np.float32)
                start = time.monotonic()
                fault = self._ask(client, sample)
                self._tally.add(time.monotonic() - start, fault)
        # The HTTP client must go on the thread that it was used on.
        del client
        gc.collect()

    def _ask(self, client: Any, sample: Any) -> str | None:
        """What went wrong; None if nothing did."""
        tensor = self._library.InferInput("input", list(sample.shape), "FP32")
        tensor.set_data_from_numpy(sample)
        try:
            logits = client.infer(MODEL, [tensor]).as_numpy("logits")
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        (right,) = self._plain.run(None, {"input": sample})
        worst = float(np.abs(logits - right).max())
        return None if worst < TOLERANCE else "a wrong answer"


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="privet-soak-") as name:
        record = soak(Path(name), options.minutes * 60, options.clients, options.ahead)
    if options.json:
        say(json.dumps(record))
    else:
        _print(record)
    return 0 if record["good"] else 1


def soak(folder: Path, seconds: float, clients: int, ahead: int) -> dict[str, Any]:
    """Runs everything in `folder`; what came of it."""
    keys.make(folder / "keys")
    model = add_model(folder / "repository", MODEL, CONFIG).read_bytes()
    tally = Tally()
    folders = (folder / "repository", folder / "keys", folder / "server")
    with (
        serving(*folders, log=folder / "service.log") as (service, address),
        _gateway(folder, address, ahead) as (gateway, places),
    ):
        callers = [Caller(number, places, model, tally) for number in range(clients)]
        kinds = {
            "gateway": lambda: [gateway.pid],
            "service": lambda: [service.pid],
            "workers": lambda: children(service.pid),
        }
        start = time.monotonic()
        with (
            Watch(kinds, min(LOOK_SECONDS, seconds / 20)) as watch,
            ThreadPoolExecutor(clients) as threads,
        ):
            list(threads.map(lambda caller: caller.run(start + seconds), callers))
        duration = time.monotonic() - start
        codes = {"gateway": gateway.end(STOP_SECONDS), "service": service.end(STOP_SECONDS)}
    return _record(clients, ahead, duration, tally, watch, codes, _ledger(folder))


def _record(
    clients: int,
    ahead: int,
    duration: float,
    tally: Tally,
    watch: Watch,
    codes: dict[str, int],
    ledger: dict[str, int],
) -> dict[str, Any]:
    courses = watch.courses()
    leaks = [leak for course in courses for leak in course.leaks()]
    faults = dict(tally.faults)
    times = np.array(tally.seconds or [float("nan")])
    open_jobs = ledger.pop("open", 0)
    good = not (faults or leaks or open_jobs or any(codes.values())) and bool(tally.seconds)
    return {
        "good": good,
        "clients": clients,
        "ahead": ahead,
        "seconds": round(duration, 1),
        "right_answers": len(tally.seconds),
        "faults": faults,
        "per_second": round(len(tally.seconds) / duration, 2),
        "latency_seconds": {
            f"p{percent}": round(float(np.percentile(times, percent)), 3)
            for percent in (50, 95, 100)
        },
        "leaks": leaks,
        "vitals": [dataclasses.asdict(course) for course in courses],
        "exit_codes": codes,
        "requests_by_outcome": ledger,
        "requests_left_open": open_jobs,
    }


@contextlib.contextmanager
def _gateway(folder: Path, address: str, ahead: int) -> Iterator[tuple[Process, dict[str, str]]]:
    words = ["gateway", "--server", f"https://{address}", "--keys", folder / "keys"]
    words += ["--state", folder / "client", "--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    words += ["--ahead", f"{MODEL}={ahead}"]
    with command(*words, log=folder / "gateway.log") as process:
        yield process, process.line_with("rest")


def _ledger(folder: Path) -> dict[str, int]:
    """How many requests ended how, as the service has it on record; `open` did not end."""
    counts: Counter[str] = Counter()
    with contextlib.closing(sqlite3.connect(folder / "server" / "service.sqlite")) as base:
        for kind, outcome in base.execute("SELECT kind, outcome FROM jobs"):
            if kind == "request":
                counts[outcome or "open"] += 1
    return dict(counts)


def _one_thread() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return options


def _print(record: dict[str, Any]) -> None:
    latency = ", ".join(
        f"{name} {seconds:.2f} s" for name, seconds in record["latency_seconds"].items()
    )
    say(
        f"{record['clients']} clients, {record['seconds']:.0f} s: {record['right_answers']} right "
        f"answers ({record['per_second']} a second), latency {latency}"
    )
    for course in record["vitals"]:
        for figure in ("rss_mb", "threads", "files"):
            settled, end = course["settled"][figure], course["end"][figure]
            most = course["most"][figure]
            say(f"{course['name']:8} {figure:8} {settled:8} then {end:8}, at most {most}")
    say(f"exit codes {record['exit_codes']}, requests {record['requests_by_outcome']}")
    for fault, count in record["faults"].items():
        say(f"{count} x {fault}")
    for leak in record["leaks"]:
        say(leak)
    say("good" if record["good"] else "NOT good")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.soak")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--ahead", type=int, default=10, help="notices that the gateway keeps")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
