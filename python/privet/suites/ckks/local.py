"""Both parties of suite `ckks` on this machine, each a process of the Go program `privet-ckks`.

Scenario 1 of slytHErin: the client encrypts its data, the server evaluates its plaintext model on
the ciphertexts, the client decrypts. The offline phase is the client's evaluation keys.
Scenario 2: the server sends its model encrypted, which is the offline phase, the client evaluates
it on its data and has the masked result decrypted.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from privet import keys
from privet.suites.base import LocalJob, LocalResult
from privet.suites.ckks.account import parameters
from privet.suites.ckks.cohort import read_integers, run_collective, write_reals
from privet.suites.ckks.config import ENCRYPTED_MODEL, Ckks
from privet.suites.ckks.program import program_path
from privet.suites.costs import LayerCost, MemoryUse, PhaseCost
from privet.suites.relay import relayed
from privet.suites.spawned import event, party


def run_local(suite: Ckks, job: LocalJob) -> LocalResult:
    """The outputs as integers at their values' scales, and costs.

    # Errors
    `Misuse` if a party needs more memory than its limit; `PeerError` if a party fails.
    """
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
        if job.progress is not None:
            job.progress("offline", 0, 1, material)
        event(client, "prepared")
        if job.progress is not None:
            job.progress("offline", 1, 1, material)
            job.progress("online", 0, 1, "evaluation")
        result = event(client, "result")
        theirs = [event(server, "prepared")]
        groups = result["plan"]["groups"] if suite.scenario == ENCRYPTED_MODEL else 1
        theirs.append(_together([event(server, "inferred") for _ in range(groups)]))
    return _result(suite, job, result, listening, theirs)


def _together(events: list[dict[str, Any]]) -> dict[str, Any]:
    """One event for all groups of an encrypted model's results."""
    costs = [found["cost"] for found in events]
    return events[0] | {
        "cost": {name: sum(cost[name] for cost in costs) for name in costs[0]}
        | {"peak_rss_mb": max(cost["peak_rss_mb"] for cost in costs)}
    }


def _result(
    suite: Ckks,
    job: LocalJob,
    result: dict[str, Any],
    listening: dict[str, Any],
    theirs: list[dict[str, Any]],
) -> LocalResult:
    offline, online = (
        _merge(result[phase], server["cost"])
        for phase, server in zip(("offline", "online"), theirs, strict=True)
    )
    memory = {
        "client": MemoryUse(
            result["plan"]["memory_bytes_client"] / 1e6,
            max(result[phase]["peak_rss_mb"] for phase in ("offline", "online")),
        ),
        "server": MemoryUse(
            listening["needs"] / 1e6, max(server["cost"]["peak_rss_mb"] for server in theirs)
        ),
    }
    layers = tuple(
        LayerCost(step["name"], step["operator"], "online", step["seconds"], 0, 0, 0)
        for step in result.get("layers") or theirs[1]["layers"] or []
    )
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


def _merge(client: dict[str, Any], server: dict[str, Any]) -> PhaseCost:
    """The client's view; processors and memory of both parties."""
    return PhaseCost(
        seconds=client["seconds"],
        bytes_client=client["bytes_sent"],
        bytes_server=client["bytes_received"],
        rounds=client["rounds"],
        peak_rss_mb=round(max(client["peak_rss_mb"], server["peak_rss_mb"]), 1),
        cpu_seconds=client["cpu_seconds"] + server["cpu_seconds"],
    )
