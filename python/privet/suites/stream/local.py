"""Both parties of suite `stream` on this machine, as two processes over loopback TLS.

The client provides data and the server the model, as in PP-Stream. The offline phase is a key of
the client's and noise for one inference at both sides, or masks over BFV.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from privet import keys
from privet.errors import Misuse
from privet.suites.base import LocalJob, LocalResult
from privet.suites.costs import LayerCost, MemoryUse, PhaseCost
from privet.suites.spawned import event, party
from privet.suites.stream.config import Stream, exchanges


def run_local(suite: Stream, job: LocalJob) -> LocalResult:
    """The client's integers, and costs. Raises `Misuse` on a limit of memory, or a layer that this
    suite does not compute; `PeerError` if a party fails."""
    if job.memory is not None:
        raise Misuse("suite stream cannot limit its memory; the memory printed is measured")
    program, samples = job.compiled, 1
    if suite.packed:
        if job.alone is None:
            raise Misuse("packed samples run on the model compiled for one of them")
        program, samples = job.alone, job.compiled.program.batch
    plan, folder = suite.figures(program.program, samples), job.folder
    program.save(folder / "program")
    keys.make(folder / "keys", ())
    np.savez(folder / "inputs.npz", *job.inputs.values())
    common = {
        "keys": str(folder / "keys"),
        "timeout": job.timeout,
        "config": suite.text,
    }
    with ExitStack() as running:
        serving = {"role": "model-provider", "program": str(folder / "program"), **common}
        server = running.enter_context(party(folder, serving))
        asking = {
            "role": "data-provider",
            "port": event(server, "listening")["port"],
            "inputs": str(folder / "inputs.npz"),
            "result": str(folder / "result.npz"),
            "program_hash": program.program.program_hash,
            "progress": job.progress is not None,
            "samples": samples,
            "link": str(job.link) if job.link else None,
            **common,
        }
        client = running.enter_context(party(folder, asking))
        result = event(client, "result", job.progress)
        server_costs = [event(server, kind)["cost"] for kind in ("prepared", "inferred")]
    with np.load(folder / "result.npz") as revealed:
        integers = [revealed[name] for name in revealed.files]
    return _result(suite, job, integers, result, server_costs, plan)


def _result(
    suite: Stream,
    job: LocalJob,
    integers: list[Any],
    result: dict[str, Any],
    server_costs: list[dict[str, Any]],
    plan: dict[str, Any],
) -> LocalResult:
    client_costs = [result[phase] for phase in ("offline", "online")]
    offline, online = (
        PhaseCost(**client).beside(server)
        for client, server in zip(client_costs, server_costs, strict=True)
    )
    memory = {
        party: MemoryUse(None, max(cost["peak_rss_mb"] for cost in costs))
        for party, costs in {"client": client_costs, "server": server_costs}.items()
    }
    return LocalResult(
        suite,
        integers,
        online,
        tuple(LayerCost(**layer) for layer in result["layers"]),
        memory,
        offline,
        plan=plan,
        account=exchanges(plan, job.compiled.program.program_hash),
    )
