"""The paper's baseline, MS-SHARK (Section 5): one request after the other, in order of arrival,
T_pre and then T_on, each on all cores."""

from __future__ import annotations

import random
from collections.abc import Sequence

from privet.research.simulation.record import InputRecord, JobRecord, Record
from privet.research.simulation.workload import Arrival
from privet.scheduler import Key, Machine, Outcome, Phase, Profiles


def sequential(
    machine: Machine, truth: Profiles, arrivals: Sequence[Arrival], jitter: float, seed: int
) -> Record:
    """Runs the requests of `arrivals` (notices mean nothing here) one by one.

    `truth` says what jobs take, `jitter` by which share of it at most each differs.
    """
    chance = random.Random(f"jitter {seed}")
    record = Record("sequential", machine.cores)
    cores = tuple(range(machine.cores))
    now = 0.0
    for arrival in arrivals:
        it = arrival.submission
        if it.notice:
            continue
        now = max(now, arrival.at)
        for number, batch in enumerate(truth.split(it.model, it.suite, it.batch)):
            for phase in Phase:
                demand = truth.expected(Key(it.model, it.suite, batch, phase))
                taken = demand.on(machine.cores).seconds
                end = now + taken * (1 + jitter * chance.uniform(-1, 1))
                job = f"{it.id}/{phase}#{number}"
                where = (machine.name, cores, demand.memory)
                record.jobs.append(
                    JobRecord(job, it.id, it.model, it.client, phase, *where, now, end)
                )
                if phase is Phase.ON:
                    whose = (it.id, it.model, it.client, batch)
                    record.inputs.append(InputRecord(*whose, arrival.at, now, end))
                now = end
        record.outcomes[it.id] = Outcome.DONE
    return record
