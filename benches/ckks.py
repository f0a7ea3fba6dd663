"""Suite `ckks` in its three scenarios, beside what slytHErin and Orion took: a Markdown table.

    .venv/bin/python -m benches.ckks                     every task, in a few minutes
    .venv/bin/python -m benches.ckks --only nn5 --json   tasks whose name begins so, for programs
    .venv/bin/python -m benches.ckks --only nn50-data    deep models run where they are named

Each task runs once, all its parties as processes of this machine. CPU seconds are those of all
parties together, memory is the peak of the party that needs most, and of all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import privet
from benches.machine import ROOT
from privet import zoo
from privet.suites.costs import MemoryUse

DIGITS = ROOT / "zoo" / "models" / "digits-smooth"
DATA, MODEL, BOTH = "encrypted-data", "encrypted-model", "collective"


@dataclass(frozen=True)
class Peer:
    """What others' code took for the same batch on a machine of two cores, where it was run there
    (`wall_seconds`, `memory_gb`, `cpu_seconds`), and its name."""

    name: str
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Task:
    """A model of the zoo or of `zoo/models/digits-smooth`, a scenario and a batch.

    `wall` (seconds online), `whole` (seconds offline and online), `cpu` (CPU seconds online),
    `memory` (GB, of any party) and `altogether` (GB, of all) are what Privet wants to stay below.
    """

    name: str
    model: str
    scenario: str = DATA
    batch: int = 1
    parties: int = 3
    flooding: str | None = None
    peer: Peer | None = None
    wall: float | None = None
    whole: float | None = None
    cpu: float | None = None
    memory: float | None = None
    altogether: float | None = None
    limit: str | None = None
    """Memory that each party is given, where it takes less if it must."""
    deep: bool = False
    """Takes minutes or more than 10 GB, or belongs beside models that do."""


SLYTHERIN_ONE = Peer("slytHErin", wall_seconds=27.7, memory_gb=4.3)
SLYTHERIN_83 = Peer("slytHErin", wall_seconds=124.0, memory_gb=9.3)
ORION = Peer("Orion", cpu_seconds=0.51)

TASKS = (
    Task("nn5-data", "nn5", peer=SLYTHERIN_ONE, wall=1.5, memory=2.0),
    Task("nn5-data-light", "nn5", flooding="light", peer=SLYTHERIN_ONE, wall=1.5),
    Task("nn5-data-83", "nn5", batch=83, peer=SLYTHERIN_83, wall=8.0, memory=2.0),
    Task("nn5-model", "nn5", MODEL, wall=1.5),
    Task("nn5-model-83", "nn5", MODEL, 83, wall=8.0, memory=2.0),
    Task("nn5-both", "nn5", BOTH, wall=1.5),
    Task("nn5-both-83", "nn5", BOTH, 83, wall=8.0, memory=2.0),
    Task("mlp-data", "mlp-square", peer=ORION, cpu=0.6),
    Task("mlp-model", "mlp-square", MODEL),
    Task("mlp-both", "mlp-square", BOTH),
    Task("digits-square-450", "digits:square", batch=450),
    Task("digits-silu-450", "digits:silu", batch=450),
    Task("nn20-both", "nn20", BOTH, whole=60.0, altogether=8.0),
    Task("nn20-both-5", "nn20", BOTH, parties=5),
    Task("nn20-both-10", "nn20", BOTH, parties=10),
    Task("nn20-both-128", "nn20", BOTH, 128),
    Task("nn20-data", "nn20", flooding="light", deep=True),
    Task("nn50-data", "nn50", flooding="light", deep=True),
    Task("nn20-model", "nn20", MODEL, deep=True),
    Task("nn50-model", "nn50", MODEL, deep=True),
    Task("nn50-both", "nn50", BOTH, deep=True),
    Task("resnet20-both", "resnet20", BOTH, altogether=20.0, limit="8GB", deep=True),
)


def run(task: Task, folder: Path) -> dict[str, Any]:
    """A task's figures."""
    kind, _, activation = task.model.partition(":")
    path = DIGITS / f"{activation}.onnx" if activation else zoo.build(kind, folder)
    result = privet.run(
        path,
        suite=privet.Ckks(
            scenario=task.scenario, parties=task.parties, flooding=task.flooding or "statistical"
        ),
        batch=task.batch,
        memory=task.limit,
        input_range=(0, 1),
        timeout=3600.0,
    )
    plan = result.plan or {}
    return {
        "task": task.name,
        "ring": plan["parameters"]["log_n"],
        "levels": plan["parameters"]["depth"],
        "statistical_bits": plan.get("statistical_bits"),
        "offline_seconds": result.offline.seconds,
        "offline_cpu_seconds": result.offline.cpu_seconds,
        "offline_bytes": result.offline.bytes_client + result.offline.bytes_server,
        "online_seconds": result.online.seconds,
        "online_cpu_seconds": result.online.cpu_seconds,
        "online_bytes": result.online.bytes_client + result.online.bytes_server,
        "memory_gb": max(use.peak_mb for use in result.memory.values()) / 1e3,
        "memory_all_gb": _altogether(task, result.memory),
        "error": result.max_abs_error,
        "argmax_agrees": result.argmax_agrees,
    }


def _altogether(task: Task, memory: Mapping[str, MemoryUse]) -> float:
    """GB of all parties; of members, of which one reports, as if each took as much."""
    return (
        sum(
            use.peak_mb * (task.parties if party == "member" else 1)
            for party, use in memory.items()
        )
        / 1e3
    )


def row(task: Task, figures: dict[str, Any]) -> str:
    """A line of the table."""
    bits = figures["statistical_bits"]
    cells = [
        task.model.replace(":", ", "),
        _scenario(task),
        str(task.batch),
        f"2^{figures['ring']}, {figures['levels']}",
        f"{bits:.0f}" if bits else "",
        f"{figures['offline_cpu_seconds']:.2f}",
        f"{figures['offline_seconds']:.2f}",
        f"{figures['offline_bytes'] / 1e6:.0f} MB",
        f"{figures['online_seconds']:.2f}",
        f"{1000 * figures['online_seconds'] / task.batch:.0f} ms",
        f"{figures['online_cpu_seconds']:.2f}",
        f"{figures['memory_gb']:.2f} GB",
        f"{figures['memory_all_gb']:.2f} GB",
        f"{figures['error']:.0e}",
        _peer(task.peer, figures),
        _verdict(task, figures),
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| Model | Scenario | Batch | Ring, levels | Bits | Offline, CPU s | s | sent | Online, s "
    "| each | CPU s | Memory | of all | Error | Others | Target |\n"
    "|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---|"
)


def _scenario(task: Task) -> str:
    if task.scenario == BOTH:
        return f"{task.scenario}, {task.parties}"
    return task.scenario + (", light" if task.flooding == "light" else "")


def _peer(peer: Peer | None, figures: dict[str, Any]) -> str:
    if peer is None:
        return ""
    parts = []
    if peer.wall_seconds is not None:
        times = peer.wall_seconds / figures["online_seconds"]
        parts.append(f"{peer.wall_seconds:g} s ({times:.0f} times)")
    if peer.cpu_seconds is not None:
        times = peer.cpu_seconds / figures["online_cpu_seconds"]
        parts.append(f"{peer.cpu_seconds:g} CPU s ({times:.1f} times)")
    if peer.memory_gb is not None:
        parts.append(f"{peer.memory_gb:g} GB")
    return f"{peer.name} {', '.join(parts)}"


def _verdict(task: Task, figures: dict[str, Any]) -> str:
    targets = (
        (task.wall, "s", figures["online_seconds"]),
        (task.whole, "s in all", figures["offline_seconds"] + figures["online_seconds"]),
        (task.cpu, "CPU s", figures["online_cpu_seconds"]),
        (task.memory, "GB", figures["memory_gb"]),
        (task.altogether, "GB in all", figures["memory_all_gb"]),
    )
    return ", ".join(
        f"{limit:g} {unit}{'' if value <= limit else ' missed'}"
        for limit, unit, value in targets
        if limit is not None
    )


def main(words: Sequence[str] | None = None) -> int:
    """Runs the tasks; exit code 1 if a prediction was not the plaintext model's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="tasks whose name begins so")
    parser.add_argument("--json", action="store_true", help="one object on each line")
    options = parser.parse_args(words)
    agrees = True
    if not options.json:
        sys.stdout.write(HEAD + "\n")
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        for task in TASKS:
            if not task.name.startswith(options.only) or (task.deep and not options.only):
                continue
            figures = run(task, Path(folder))
            agrees &= figures["argmax_agrees"]
            sys.stdout.write((json.dumps(figures) if options.json else row(task, figures)) + "\n")
            sys.stdout.flush()
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
