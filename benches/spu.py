"""SPU (Ma et al., USENIX ATC 2023) as a contender, in its own environment `.venv-spu`.

Two protocols: `CHEETAH` (Huang et al., 2022), two parties and no dealer, and `SEMI2K`, whose first
party deals the correlations: it knows them all, so its figures compare with a dealer, not with us.
Field FM64, 18 fractional bits and everything else as SPU sets it. Two processes over loopback
without TLS.

`python -m benches.spu MODEL.onnx` runs one model by CHEETAH and prints its figures, in all and by
SPU's own operations, as a JSON object: `privet papers run seconnds` shows them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benches import exchange
from benches.machine import ROOT
from benches.processes import free_ports
from benches.record import Sample
from benches.tasks import Floats, Task

PYTHON = ROOT / ".venv-spu" / "bin" / "python"
PROTOCOLS = {"spu-cheetah": "CHEETAH", "spu-semi2k": "SEMI2K"}
COMPILE_SECONDS = 300.0
RUN_SECONDS = 1200.0

_TRAFFIC = re.compile(r"Link details: total send bytes (\d+), recv bytes (\d+)")
_PROFILE = "HLO profiling"
_OPERATION = re.compile(
    r"- pphlo\.(\w+), executed \d+ times, duration ([\d.e-]+)s, send bytes (\d+) recv bytes (\d+)"
)
_FAILURE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*", re.MULTILINE)


class PeerFailure(Exception):
    """A peer gave no result; the message says why, on one line."""


def version() -> str | None:
    """The version of SPU in `.venv-spu`, None if there is none."""
    if not PYTHON.exists():
        return None
    code = "from importlib.metadata import version; print(version('spu'))"
    process = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    return process.stdout.strip() or None


def prepare(model: Path, sample: Floats, folder: Path) -> Path:
    """Compiles a model in `folder` for all protocols, which it returns; not part of the time.

    # Errors
    `PeerFailure` if SPU cannot compile it.
    """
    folder.mkdir()
    exchange.write(model, folder)
    np.save(folder / "input.npy", sample)
    log = folder / "compile.log"
    _finish([_start("benches.peers.spu_compile", folder, log)], [log], COMPILE_SECONDS)
    return folder


def measure(
    task: Task, contender: str, program_folder: Path, limit_seconds: float, repetition: int
) -> Sample:
    """Runs both parties as fresh processes, for `limit_seconds` at most."""
    try:
        with tempfile.TemporaryDirectory(dir=program_folder) as folder:
            client, server = _parties(
                program_folder, Path(folder), PROTOCOLS[contender], limit_seconds
            )
    except PeerFailure as failure:
        return Sample(task.name, contender, repetition, failure=str(failure))
    has_repeat = len(client["seconds"]) > 1
    traffic = [count + server["output_bytes"] for count in client["traffic"]]
    return Sample(
        task.name,
        contender,
        repetition,
        seconds=client["seconds"][0],
        again_seconds=client["seconds"][1] if has_repeat else None,
        bytes_sent=traffic[0],
        again_bytes_sent=traffic[1] if has_repeat else None,
        peak_rss_mb=max(client["peak_rss_mb"], server["peak_rss_mb"]),
        max_abs_error=client["max_abs_error"],
    )


def _parties(
    program_folder: Path, folder: Path, protocol: str, limit_seconds: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the client and the server reported."""
    ports = list(free_ports(2))
    jobs, logs = [], []
    for rank in range(2):
        job = folder / f"{rank}.json"
        document = {
            "folder": str(program_folder),
            "rank": rank,
            "ports": ports,
            "protocol": protocol,
        }
        job.write_text(json.dumps(document))
        jobs.append(job)
        logs.append(folder / f"{rank}.log")
    processes = [
        _start("benches.peers.spu_party", job, log) for job, log in zip(jobs, logs, strict=True)
    ]
    _finish(processes, logs, limit_seconds)
    client, server = (_report(log.read_text()) for log in logs)
    return client, server


def _report(text: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    traffic = _TRAFFIC.findall(text)
    if not lines or not traffic:
        raise PeerFailure("a party ended without a report")
    report: dict[str, Any] = json.loads(lines[-1])
    # Of each run: both directions, as this party saw them.
    report["traffic"] = [int(outgoing) + int(incoming) for outgoing, incoming in traffic]
    report["operations"] = {
        name: [float(seconds), int(outgoing) + int(incoming)]
        for name, seconds, outgoing, incoming in _OPERATION.findall(text.rpartition(_PROFILE)[2])
    }
    return report


def _start(module: str, argument: Path, log: Path) -> subprocess.Popen[bytes]:
    """A process in SPU's environment, at the head of its own group; its output goes to `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [PYTHON, "-m", module, argument],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )


def _finish(
    processes: Sequence[subprocess.Popen[bytes]], logs: Sequence[Path], limit_seconds: float
) -> None:
    """Waits for all; when one fails or time is up, ends the rest."""
    deadline = time.monotonic() + limit_seconds
    try:
        alive = list(processes)
        while alive:
            if time.monotonic() > deadline:
                raise PeerFailure(f"stopped after {limit_seconds:.0f} s")
            for process, log in zip(processes, logs, strict=True):
                if process.poll() not in (None, 0):
                    raise PeerFailure(_reason(process, log))
            alive = [process for process in processes if process.poll() is None]
            time.sleep(0.05)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _reason(process: subprocess.Popen[bytes], log: Path) -> str:
    failures = _FAILURE.findall(log.read_text(errors="replace"))
    return f"exit code {process.returncode}" + (f": {failures[-1][:200]}" if failures else "")


def main(arguments: Sequence[str]) -> int:
    """The command: seconds and bytes of a model's last run, of which a short one has a second with
    its keys and base OTs made, in all and by operation."""
    (model,) = map(Path, arguments)
    installed = version()
    if installed is None:
        sys.stderr.write("SPU is not installed in .venv-spu: `make bench-peers` does it\n")
        return 1
    graph = onnx.load(model).graph
    constants = {tensor.name for tensor in graph.initializer}
    (entry,) = (value_info for value_info in graph.input if value_info.name not in constants)
    shape = [dim.dim_value or 1 for dim in entry.type.tensor_type.shape.dim]
    sample = np.random.default_rng(0).random(shape, dtype=np.float32)
    with tempfile.TemporaryDirectory(prefix="privet-spu-") as name:
        folder = Path(name)
        try:
            program_folder = prepare(model, sample, folder / "model")
            client, server = _parties(program_folder, folder, PROTOCOLS["spu-cheetah"], RUN_SECONDS)
        except PeerFailure as failure:
            sys.stderr.write(f"SPU: {failure}\n")
            return 1
    figures = {
        "version": installed,
        "seconds": client["seconds"][-1],
        "bytes": client["traffic"][-1] + server["output_bytes"],
        "max_abs_error": client["max_abs_error"],
        "operations": client["operations"],
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
