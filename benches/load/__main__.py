"""`python -m benches.load`: what `privet serve` answers under load, and what that costs.

    .venv/bin/python -m benches.load                                100 clients, 30 minutes
    .venv/bin/python -m benches.load --minutes 10 --json            a shorter one, for programs

One service with two cores for jobs, a dealer, and a model of the zoo. In turn: one client that asks
one by one; all clients with connections that are kept; all with a connection for each prediction;
a few clients, without, with and without peers that stall, of each kind in `benches.load.stalled`;
1,000 clients that only wait. Every answer is compared with ONNX Runtime's. Clients, dealer and
service share this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benches.load.clients import Figures, Load, idle
from benches.load.place import Place, Running, build, dealing, serving
from benches.load.stalled import KINDS, stalled
from benches.machine import say
from privet.gateway import Terms
from privet.suites import Fss, Gmw

HEAD = "| Phase | Answers | A second | p50 | p90 | p95 | p99 | Most | Beyond, p50 | Control |"
RULE = "|---|" + "---:|" * 9


@dataclass(frozen=True)
class Amounts:
    """How much of everything. `seconds` is for all clients with kept connections, `short` for each
    of the other phases; `few` clients ask beside `stalls` peers that stall."""

    model: str = "m1"
    suite: str = "fss"
    clients: int = 100
    seconds: float = 1800.0
    short: float = 60.0
    few: int = 4
    stalls: int = 50
    idle: int = 1000
    cores: int = 2
    jobs_per_core: int = 1
    policy: str = "fair+priority"

    @property
    def terms(self) -> Terms:
        """How predictions are asked for."""
        return Terms(Fss() if self.suite == "fss" else Gmw(rounds="linear"))

    @property
    def certificates(self) -> int:
        """How many clients there are at most."""
        return max(self.clients, self.few + self.stalls, self.idle)


def main(arguments: Sequence[str]) -> int:
    """Measures, and prints; 1 if an answer was wrong or missing."""
    options = _options(arguments)
    seconds = {"seconds": 60 * options.minutes, "short": 60 * options.short_minutes}
    counts = {
        field.name: getattr(options, field.name)
        for field in fields(Amounts)
        if field.name not in seconds
    }
    amounts = Amounts(**counts, **seconds)
    with tempfile.TemporaryDirectory(prefix="privet-load-") as folder:
        record = measure(Path(folder), amounts)
    print_record(record) if not options.json else say(json.dumps(record))
    return 1 if any(phase["faults"] for phase in record["phases"].values()) else 0


def measure(folder: Path, amounts: Amounts) -> dict[str, Any]:
    """Runs all phases in `folder`; what came of them."""
    place = build(folder, amounts.model, amounts.certificates)
    options = ("--jobs-per-core", str(amounts.jobs_per_core), "--policy", amounts.policy)
    with dealing(place) as dealer, serving(place, dealer, amounts.cores, options) as service:
        return asyncio.run(_phases(place, service, amounts))


async def _phases(place: Place, service: Running, amounts: Amounts) -> dict[str, Any]:
    load = Load(place, service.address, amounts.terms)
    process, short, few = service.process, amounts.short, amounts.few
    phases: dict[str, dict[str, Any]] = {}

    def keep(name: str, figures: Figures) -> None:
        phases[name] = figures.document()
        sys.stderr.write(f"{name}: {json.dumps(phases[name])}\n")

    await load.ask(process, 1, min(short, 5.0))  # The first of everything is no figure.
    keep("one by one", await load.ask(process, 1, short))
    keep("kept connections", await load.ask(process, amounts.clients, amounts.seconds))
    keep("a connection each", await load.ask(process, amounts.clients, short, anew=True))
    keep(f"{few} clients", await load.ask(process, few, short))
    for kind in KINDS:
        async with stalled(kind, amounts.stalls, place, service, few):
            name = f"{few} clients, {amounts.stalls} stalled {kind}"
            keep(name, await load.ask(process, few, short))
    # Whether the machine itself went slower meanwhile.
    keep(f"{few} clients, again", await load.ask(process, few, short))
    cost = await idle(place, service.address, process, amounts.idle)
    sys.stderr.write(f"idle: {json.dumps(cost)}\n")
    return {"amounts": vars(amounts).copy(), "phases": phases, "idle": cost}


def print_record(record: dict[str, Any]) -> None:
    """A table in Markdown, and a line of idle clients."""
    say(HEAD)
    say(RULE)
    for name, phase in record["phases"].items():
        latency, overhead = phase["latency_ms"], phase["beyond_protocol_ms"]
        cells = [name, str(phase["answers"]), f"{phase['per_second']:g}"]
        cells += [f"{latency.get(p, float('nan')):.0f} ms" for p in latency]
        cells += [f"{overhead.get('p50', float('nan')):.0f} ms"]
        cells += [f"{phase['control_cpu_ms_each']:g} CPU ms"]
        say("| " + " | ".join(cells) + " |")
        for fault, count in phase["faults"].items():
            say(f"FAULT: {count} x {fault}")
    cost = record["idle"]
    say("")
    say(
        f"{cost['clients']} idle clients: the control plane grows from {cost['before_mb']} "
        f"to {cost['after_mb']} MB, {cost['kb_each']} KB for each."
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.load")
    parser.add_argument("--model", default="m1", help="of the zoo")
    parser.add_argument("--suite", choices=("fss", "gmw"), default="fss")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=30.0, help="of kept connections")
    parser.add_argument("--short-minutes", type=float, default=1.0, help="of each other phase")
    parser.add_argument("--few", type=int, default=4, help="clients beside peers that stall")
    parser.add_argument("--stalls", type=int, default=50)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--cores", type=int, default=2, help="that jobs may have")
    parser.add_argument("--jobs-per-core", type=int, default=1, help="as of privet serve")
    parser.add_argument("--policy", default=Amounts.policy, help="as of privet serve")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
