"""All parties of suite `ckks` on this machine, each a process of the Go program `privet-ckks`.

Scenario 1 of slytHErin: the client encrypts its data, the server evaluates its plaintext model on
the ciphertexts, the client decrypts. The offline phase is the client's evaluation keys.
Scenario 2: the server sends its model encrypted, which is the offline phase, the client evaluates
it on its data and has the masked result decrypted.
Scenario 3: data and model are encrypted under a key whose secret the members of a cohort share. The
offline phase makes the collective keys and encrypts the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import keys
from privet.compiler.program import Program
from privet.errors import PeerError
from privet.suites.base import LocalJob, LocalResult, Progress
from privet.suites.ckks.account import parameters
from privet.suites.ckks.config import ENCRYPTED_MODEL, Ckks
from privet.suites.ckks.program import program_path
from privet.suites.costs import LayerCost, MemoryUse, PhaseCost
from privet.suites.relay import relayed
from privet.suites.spawned import event, party

Array = npt.NDArray[np.generic]


def run_local(suite: Ckks, job: LocalJob) -> LocalResult:
    """The outputs as integers at their values' scales, and costs. Raises `Misuse` if a party needs
    more memory than its limit; `PeerError` if a party fails."""
    if suite.collective:
        return run_collective(suite, job)
    command, folder = [program_path()], job.folder
    material = "model" if suite.scenario == ENCRYPTED_MODEL else "keys"
    job.compiled.save(folder / "program")
    keys.make(folder / "keys", ())
    write_reals(folder / "inputs.f64", job.inputs)
    common = {
        "keys": str(folder / "keys"),
        "timeout": job.timeout,
        "memory": job.memory or 0,
        "scenario": suite.scenario,
    }
    with ExitStack() as running:
        serving = {
            "role": "server",
            "program": str(folder / "program"),
            "statistical": suite.statistical,
            **common,
        }
        server = running.enter_context(party(folder, serving, command))
        listening = event(server, "listening")
        port = listening["port"]
        if job.link is not None:
            port = running.enter_context(relayed(port, job.link))
        asking = {
            "role": "client",
            "port": port,
            "inputs": str(folder / "inputs.f64"),
            "result": str(folder / "result.f64"),
            "program_hash": job.compiled.program.program_hash,
            **common,
        }
        client = running.enter_context(party(folder, asking, command))
        report_progress(job.progress, "offline", 0, material)
        event(client, "prepared")
        report_progress(job.progress, "offline", 1, material)
        report_progress(job.progress, "online", 0, "evaluation")
        result = event(client, "result")
        server_events = [event(server, "prepared")]
        groups = result["plan"]["groups"] if suite.scenario == ENCRYPTED_MODEL else 1
        server_events.append(_together([event(server, "inferred") for _ in range(groups)]))
    return _result(suite, job, result, listening, server_events)


def _together(events: list[dict[str, Any]]) -> dict[str, Any]:
    """One event for all groups of an encrypted model's results."""
    costs = [group["cost"] for group in events]
    return events[0] | {
        "cost": {name: sum(cost[name] for cost in costs) for name in costs[0]}
        | {"peak_rss_mb": max(cost["peak_rss_mb"] for cost in costs)}
    }


def _result(
    suite: Ckks,
    job: LocalJob,
    result: dict[str, Any],
    listening: dict[str, Any],
    server_events: list[dict[str, Any]],
) -> LocalResult:
    offline, online = (
        read_cost(result[phase]).beside(server["cost"])
        for phase, server in zip(("offline", "online"), server_events, strict=True)
    )
    memory = {
        "client": MemoryUse(
            result["plan"]["memory_bytes_client"] / 1e6,
            max(result[phase]["peak_rss_mb"] for phase in ("offline", "online")),
        ),
        "server": MemoryUse(
            listening["needs"] / 1e6, max(server["cost"]["peak_rss_mb"] for server in server_events)
        ),
    }
    layers = read_layers(result.get("layers") or server_events[1]["layers"])
    program = job.compiled.program
    plan = result["plan"] | {
        "loading_cpu_seconds": listening["cpu_seconds"],
        "statistical_bits": listening["statistical_bits"],
    }
    summary: tuple[str, ...] = parameters(plan, program.program_hash)
    if suite.scenario == ENCRYPTED_MODEL:
        summary = (*summary, "The model under its owner's key; the client evaluated it.")
    return LocalResult(
        suite,
        read_integers(program, job.folder / "result.f64"),
        online,
        layers,
        memory,
        offline,
        plan=plan,
        account=summary,
    )


def read_cost(measured: Mapping[str, Any]) -> PhaseCost:
    """A phase as the program measured it at one party."""
    return PhaseCost(
        seconds=measured["seconds"],
        bytes_client=measured["bytes_sent"],
        bytes_server=measured["bytes_received"],
        rounds=measured["rounds"],
        peak_rss_mb=round(measured["peak_rss_mb"], 1),
        cpu_seconds=measured["cpu_seconds"],
    )


def report_progress(progress: Progress | None, phase: str, done: int, step: str) -> None:
    """Tells of a phase that is one step."""
    if progress is not None:
        progress(phase, done, 1, step)


def run_collective(suite: Ckks, job: LocalJob) -> LocalResult:
    """The outputs as integers at their values' scales, and costs. Raises `PeerError` if a party
    fails."""
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
        report_progress(job.progress, "offline", 0, "collective keys, model")
        offline = event(hub, "prepared")["cost"]
        report_progress(job.progress, "offline", 1, "collective keys, model")
        report_progress(job.progress, "online", 0, "evaluation")
        evaluated = event(hub, "inferred")
        result = event(client, "result")
        helper_reports = [event(helper, "helped") for helper in helpers]
    result["plan"]["statistical_bits"] = helper_reports[0]["statistical_bits"]
    return _collective_result(suite, job, result, listening, offline, evaluated, helper_reports)


def _collective_result(
    suite: Ckks,
    job: LocalJob,
    result: dict[str, Any],
    listening: dict[str, Any],
    offline: dict[str, Any],
    evaluated: dict[str, Any],
    helper_reports: list[dict[str, Any]],
) -> LocalResult:
    """Members make keys offline; online they refresh and hand out results."""
    online, evaluation = result["online"], evaluated["cost"]
    whole, early = ([document[key] for document in helper_reports] for key in ("cost", "offline"))
    late = [_since(before, cost) for before, cost in zip(early, whole, strict=True)]
    peak = round(max(phase["peak_rss_mb"] for phase in (offline, evaluation, online, *whole)), 1)
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
    program = job.compiled.program
    summary = parameters(result["plan"], program.program_hash)
    return LocalResult(
        suite,
        read_integers(program, job.folder / "result.f64"),
        PhaseCost(**online_phase),
        read_layers(evaluated["layers"]),
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
    ends: list[dict[str, Any]], seconds: float, further_costs: list[dict[str, Any]], peak: float
) -> dict[str, Any]:
    """A phase in which `ends` talked to the coordinator; `further_costs` took processors, too."""
    return {
        "seconds": seconds,
        "bytes_client": sum(cost["bytes_sent"] for cost in ends),
        "bytes_server": sum(cost["bytes_received"] for cost in ends),
        "rounds": max(cost["rounds"] for cost in ends),
        "peak_rss_mb": peak,
        "cpu_seconds": sum(cost["cpu_seconds"] for cost in (*ends, *further_costs)),
    }


def read_layers(steps: Sequence[Mapping[str, Any]] | None) -> tuple[LayerCost, ...]:
    """What each layer took online, as the program tells it; nothing crosses the link for one."""
    return tuple(
        LayerCost(step["name"], step["operator"], "online", step["seconds"], 0, 0, 0)
        for step in steps or ()
    )


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
