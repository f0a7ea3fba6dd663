"""`python -m benches.serving`: a Poisson workload for real, beside the sequential baseline.

Clients ask M1, M2 and HiNet in suites `gmw` and `fss` of `privet serve` on this machine, by several
policies, with and without notices; the same requests are answered one by one before. That is done
for each load: at 1, requests come as fast as one by one can answer them, at 2 twice as fast. All
parties and the dealer share this machine's cores. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from benches.machine import say
from benches.processes import dealer
from benches.serving.load import read_jobs, sequential, serve, violations
from benches.serving.stage import Stage, build, service
from privet.research.simulation.record import Figures, SimulationRecord, figures
from privet.research.simulation.workload import Arrival, Traffic, arrivals
from privet.runtime.quantities import parse_size

COLUMNS = (
    *("Load", "Policy", "Notices", "D", "95 % within", "W"),
    *("Done/s", "Makespan", "Speed-up", "Cores"),
)
POLICIES = ("fcfs", "priority", "ahead+priority")
MIX = {"m1": 0.5, "m2": 0.25, "hinet": 0.25}


def row(load: float, record: SimulationRecord, notices: float, base: Figures) -> str:
    """A line of the table."""
    outcome = figures(record)
    cells = (
        f"{load:g}",
        record.policy,
        f"{notices:.0%}",
        f"{outcome.delay:.2f} s",
        f"{outcome.delay_95:.2f} s",
        f"{outcome.wait:.2f} s",
        f"{outcome.throughput:.2f}",
        f"{outcome.makespan:.1f} s",
        f"{base.makespan / outcome.makespan:.2f}",
        f"{outcome.utilisation:.0%}",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Runs the baseline, then each policy without and with notices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument(
        "--loads",
        type=float,
        nargs="+",
        default=(1.0, 2.0),
        help="offered, of what one by one takes",
    )
    parser.add_argument("--notices", type=float, default=0.25)
    parser.add_argument("--lead", type=float, default=5.0, help="seconds from notice to request")
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--jobs-per-core", type=int, default=2, help="as of privet serve")
    parser.add_argument("--memory", default="8GiB", help="of the service's jobs")
    parser.add_argument("--link", help="between client and server, such as lan; default: loopback")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    counts = {model: round(share * arguments.requests) for model, share in MIX.items()}
    with tempfile.TemporaryDirectory(prefix="privet-bench-") as folder:
        stage = build(Path(folder), list(counts))
        with dealer(stage.keys) as dealing:
            # How fast one by one is: requests that come all at once.
            tenth = {model: count // 10 for model, count in counts.items()}
            probe = arrivals(tenth, ("gmw", "fss"), Traffic(rate=1e6), arguments.seed)
            pace = figures(sequential(stage, dealing, probe, cores, arguments.link)).throughput
            say(f"One by one: {pace:.2f} requests a second.")
            say("")
            say("| " + " | ".join(COLUMNS) + " |")
            say("|---:|---|" + "---:|" * (len(COLUMNS) - 2))
            for load in arguments.loads:
                compare(arguments, stage, dealing, counts, load, load * pace)


def compare(
    arguments: argparse.Namespace,
    stage: Stage,
    dealing: str,
    counts: dict[str, int],
    load: float,
    rate: float,
) -> None:
    """Requests one by one, then by each policy, at `rate` a second."""
    cores = len(os.sched_getaffinity(0))

    def schedule(notices: float) -> list[Arrival]:
        traffic = Traffic(rate=rate, notices=notices, lead=arguments.lead)
        return arrivals(counts, ("gmw", "fss"), traffic, arguments.seed)

    baseline = sequential(stage, dealing, schedule(0.0), cores, arguments.link)
    base = figures(baseline)
    say(row(load, baseline, 0.0, base))
    for policy in arguments.policies:
        for notices in (0.0, arguments.notices):
            state = stage.folder / f"state-{load}-{policy}-{notices}"
            options = ["--policy", policy, "--memory", arguments.memory]
            options += ["--jobs-per-core", str(arguments.jobs_per_core)]
            lent = cores * arguments.jobs_per_core
            with service(stage, state, dealing, *options) as url:
                work = serve(url, stage, schedule(notices), policy, lent, arguments.link)
                record, start = asyncio.run(work)
            read_jobs(record, state, start)
            say(row(load, record, notices, base))
            for fault in violations(record, parse_size(arguments.memory) or 0):
                say(f"VIOLATION: {fault}")


if __name__ == "__main__":
    main()
