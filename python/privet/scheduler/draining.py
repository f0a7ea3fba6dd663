"""A machine is taken out while others serve: what it has begun ends, and nothing new comes."""

from __future__ import annotations

from privet.errors import Misuse
from privet.scheduler.actions import Drained
from privet.scheduler.pairs import PairStage
from privet.scheduler.state import State

REASON = "machine drained"
"""Why material goes that lies on a machine which is taken out. Its store keeps it: it is offered
again if the machine comes back."""


def drain(state: State, name: str) -> None:
    """From now on only jobs run on a machine whose material lies there and has its request."""
    free = state.resources.get(name)
    if free is None or free.machine.reserved:
        raise Misuse(f"there is no machine {name} that could be drained")
    other_machines = [
        resource
        for resource in state.resources.values()
        if resource is not free and resource.is_for(None)
    ]
    if not other_machines:
        raise Misuse(f"{name} is the only machine that takes jobs: add another one first")
    for lane in state.queues.lanes():
        memory = state.profiles.estimate(lane.job).memory
        if lane.machine is None and all(memory > other.usable_memory for other in other_machines):
            raise Misuse(
                f"jobs of {lane.job.model} wait that need {memory} bytes, which {name} alone has: "
                "add another such machine first, or wait until they are done"
            )
    free.draining = True
    state.count_capacity()
    for stream, pairs in list(state.making.items()):
        for pair in [entry for entry in pairs if entry.machine == name]:
            pairs.remove(pair)
            pair.stage = PairStage.OVER
            state.stop(pair, "its machine is taken out")
        if not pairs:
            del state.making[stream]


def keep(state: State, name: str) -> bool:
    """Has a machine take jobs again that is being drained; False if there is no such one."""
    free = state.resources.get(name)
    if free is None or not free.draining:
        return False
    free.draining = False
    state.count_capacity()
    return True


def release_drained(state: State) -> bool:
    """Gives up what nobody has claimed on machines that are taken out, and lets those go that have
    nothing more to do; whether there was anything."""
    before = len(state.outbox)
    for name in [name for name, free in state.resources.items() if free.draining]:
        for entry in state.material.unclaimed(name):
            state.give_up(entry.material, REASON)
        runs = any(run.status.machine == name for run in state.running.values())
        waits = any(lane.machine == name for lane in state.queues.lanes())
        if not runs and not waits:
            state.remove_machine(name)
            state.outbox.append(Drained(name))
    return len(state.outbox) > before
