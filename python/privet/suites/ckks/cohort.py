"""A cohort of suite `ckks` on this machine: a coordinator, members and a client, a process each.

Scenario 3 of slytHErin: data and model are encrypted under a key whose secret the members share.
The offline phase makes the collective keys and encrypts the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from privet import keys
from privet.compiler.program import Program
from privet.errors import PeerError
from privet.suites.base import Array, LocalJob, LocalResult
from privet.suites.ckks.account import parameters
from privet.suites.ckks.config import Ckks
from privet.suites.ckks.program import program_path
from privet.suites.costs import LayerCost, MemoryUse, PhaseCost
from privet.suites.relay import relayed
from privet.suites.spawned import event, party


def run_collective(suite: Ckks, job: LocalJob) -> LocalResult:
    """The outputs as integers at their values' scales, and costs.

    # Errors
    `PeerError` if a party fails.
    """
    command, folder = [program_path()], job.folder
    job.compiled.save(folder / "program")
    keys.make(folder / "keys", (), members=suite.parties)
    write_reals(folder / "inputs.f64", job.inputs)
    common = {
        "keys": str(folder / "keys"),
        "program": str(folder / "program"),
        "members": suite.parties,
        "statistical": suite.statistical,
        "timeout": job.timeout,
        "memory": job.memory or 0,
    }
    with ExitStack() as running:
        hub = running.enter_context(party(folder, {"role": "coordinator", **common}, command))
        listening = event(hub, "listening")
        port = listening["port"]
        if job.link is not None:  # each connection with the coordinator is a link of its own
            port = running.enter_context(relayed(port, job.link))
        common["port"] = port
        helpers = [
            running.enter_context(party(folder, {"role": "member", "member": k, **common}, command))
            for k in range(suite.parties)
        ]
        files = {"inputs": str(folder / "inputs.f64"), "result": str(folder / "result.f64")}
        asking = {"role": "cohort-client", **files, **common}
        client = running.enter_context(party(folder, asking, command))
        if job.progress is not None:
            job.progress("offline", 0, 1, "collective keys, model")
        offline = event(hub, "prepared")["cost"]
        if job.progress is not None:
            job.progress("offline", 1, 1, "collective keys, model")
            job.progress("online", 0, 1, "evaluation")
        evaluated = event(hub, "inferred")
        result = event(client, "result")
        ended = [event(helper, "helped") for helper in helpers]
    result["plan"]["statistical_bits"] = ended[0]["statistical_bits"]
    return _result(suite, job, result, listening, offline, evaluated, ended)


def _result(
    suite: Ckks,
    job: LocalJob,
    result: dict[str, Any],
    listening: dict[str, Any],
    offline: dict[str, Any],
    evaluated: dict[str, Any],
    ended: list[dict[str, Any]],
) -> LocalResult:
    """Members make keys offline; online they refresh and hand out results."""
    online, evaluation = result["online"], evaluated["cost"]
    whole, early = ([document[key] for document in ended] for key in ("cost", "offline"))
    late = [_since(before, cost) for before, cost in zip(early, whole, strict=True)]
    peak = round(max(it["peak_rss_mb"] for it in (offline, evaluation, online, *whole)), 1)
    offline_phase = _phase(early, offline["seconds"], [offline], peak)
    rounds = {"rounds": online["rounds"] + max(cost["rounds"] for cost in late)}
    online_phase = _phase([online, *late], online["seconds"], [evaluation], peak) | rounds
    coordinator = max(offline["peak_rss_mb"], evaluation["peak_rss_mb"])
    forecast = result["plan"]["memory_bytes_client"] / 1e6  # a key and a few ciphertexts
    memory = {
        "client": MemoryUse(forecast, online["peak_rss_mb"]),
        "coordinator": MemoryUse(listening["needs"] / 1e6, coordinator),
        "member": MemoryUse(forecast, max(cost["peak_rss_mb"] for cost in whole)),
    }
    layers = tuple(
        LayerCost(step["name"], step["operator"], "online", step["seconds"], 0, 0, 0)
        for step in evaluated["layers"]
    )
    program = job.compiled.program
    summary = parameters(result["plan"], program.program_hash)
    return LocalResult(
        suite,
        read_integers(program, job.folder / "result.f64"),
        PhaseCost(**online_phase),
        layers,
        memory,
        PhaseCost(**offline_phase),
        plan=result["plan"],
        account=(*summary, f"Model and data under the key of {suite.parties} members."),
    )


def _since(before: dict[str, Any], cost: dict[str, Any]) -> dict[str, Any]:
    """What a cost has grown by."""
    counts = ("bytes_sent", "bytes_received", "rounds", "cpu_seconds")
    return {key: cost[key] - before[key] for key in counts}


def _phase(
    ends: list[dict[str, Any]], seconds: float, others: list[dict[str, Any]], peak: float
) -> dict[str, Any]:
    """A phase in which `ends` talked to the coordinator; `others` took processors, too."""
    return {
        "seconds": seconds,
        "bytes_client": sum(cost["bytes_sent"] for cost in ends),
        "bytes_server": sum(cost["bytes_received"] for cost in ends),
        "rounds": max(cost["rounds"] for cost in ends),
        "peak_rss_mb": peak,
        "cpu_seconds": sum(cost["cpu_seconds"] for cost in (*ends, *others)),
    }


def write_reals(path: Path, inputs: Mapping[str, Array]) -> None:
    """Writes the inputs, one after the other, as the Go program reads them."""
    reals = [np.ravel(np.asarray(array, dtype="<f8")) for array in inputs.values()]
    path.write_bytes(b"".join(array.tobytes() for array in reals))


def read_integers(program: Program, path: Path) -> list[Array]:
    """The reals in a file, as the integers that other suites reveal."""
    reals = np.fromfile(path, dtype="<f8")
    if not np.isfinite(reals).all():
        raise PeerError("the result holds no numbers: a value left the range of the ciphertexts")
    outputs, first = [], 0
    for output in program.outputs:
        value = program.values[output.value]
        size = int(np.prod(value.shape))
        scaled = np.rint(np.ldexp(reals[first : first + size], value.scale))
        outputs.append(scaled.astype(np.int64).reshape(value.shape))
        first += size
    return outputs
