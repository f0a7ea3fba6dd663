"""Both parties of suite `ckks` on this machine, each a process of the Go program `privet-ckks`.

Scenario 1 of slytHErin: the client encrypts its data, the server evaluates its plaintext model on
the ciphertexts, the client decrypts. The offline phase is the client's evaluation keys.
Scenario 2: the server sends its model encrypted, which is the offline phase, the client evaluates
it on its data and has the masked result decrypted.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import keys
from privet.compile import Compiled
from privet.errors import Misuse
from privet.parties.client import Progress
from privet.parties.cohort import read_integers, run_collective, write_reals
from privet.parties.costs import LayerCost, MemoryUse, PhaseCost
from privet.parties.relay import relayed
from privet.parties.spawned import event, party
from privet.suites import COLLECTIVE, ENCRYPTED_MODEL, STATISTICAL, Mode, check_without_dealer
from privet.suites.ckks import program_path

Array = npt.NDArray[np.generic]

TRUST = None
"""Nobody beside the two parties is trusted."""


def run_encrypted(
    folder: Path,
    compiled: Compiled,
    inputs: Mapping[str, Array],
    options: Mapping[str, Any],
    limits: Mapping[str, Any],
    progress: Progress | None,
) -> tuple[list[Array], dict[str, Any]]:
    """The outputs as integers at their values' scales, and what else the processes found out as
    fields of `Run`.

    # Errors
    `Misuse` on options that this suite does not have; `PeerError` if a party fails.
    """
    _check(options)
    if options["scenario"] == COLLECTIVE:
        return run_collective(folder, compiled, inputs, options, limits, progress)
    command = [program_path()]
    material = "model" if options["scenario"] == ENCRYPTED_MODEL else "keys"
    compiled.save(folder / "program")
    keys.make(folder / "keys", ())
    write_reals(folder / "inputs.f64", inputs)
    common = {
        "keys": str(folder / "keys"),
        "timeout": limits["timeout"],
        "memory": limits["memory"] or 0,
        "scenario": options["scenario"],
    }
    with ExitStack() as running:
        job = {
            "role": "server",
            "program": str(folder / "program"),
            "statistical": options["flooding"] == STATISTICAL,
            **common,
        }
        server = running.enter_context(party(folder, job, command))
        listening = event(server, "listening")
        port = listening["port"]
        if options["link"] is not None:
            port = running.enter_context(relayed(port, options["link"]))
        job = {
            "role": "client",
            "port": port,
            "inputs": str(folder / "inputs.f64"),
            "result": str(folder / "result.f64"),
            "program_hash": compiled.program.program_hash,
            **common,
        }
        client = running.enter_context(party(folder, job, command))
        if progress is not None:
            progress("offline", 0, 1, material)
        event(client, "prepared")
        if progress is not None:
            progress("offline", 1, 1, material)
            progress("online", 0, 1, "evaluation")
        result = event(client, "result")
        theirs = [event(server, "prepared")]
        groups = result["plan"]["groups"] if options["scenario"] == ENCRYPTED_MODEL else 1
        theirs.append(_together([event(server, "inferred") for _ in range(groups)]))
    found = _found(options, result, listening, theirs)
    return read_integers(compiled.program, folder / "result.f64"), found


def _together(events: list[dict[str, Any]]) -> dict[str, Any]:
    """One event for all groups of an encrypted model's results."""
    costs = [found["cost"] for found in events]
    return events[0] | {
        "cost": {name: sum(cost[name] for cost in costs) for name in costs[0]}
        | {"peak_rss_mb": max(cost["peak_rss_mb"] for cost in costs)}
    }


def _check(options: Mapping[str, Any]) -> None:
    check_without_dealer("ckks", options, "nothing")
    if options["link"] is not None and options["scenario"] == COLLECTIVE:
        raise Misuse("the links of a cohort are not shaped; its bytes and rounds are those printed")


def _found(
    options: Mapping[str, Any],
    result: dict[str, Any],
    listening: dict[str, Any],
    theirs: list[dict[str, Any]],
) -> dict[str, Any]:
    phases = [
        _merge(result[phase], server["cost"])
        for phase, server in zip(("offline", "online"), theirs, strict=True)
    ]
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
    return {
        "rounds": None,
        "extension": None,
        "correlations": "none",
        "truncation": "none",
        "trust": TRUST,
        "mode": Mode("ckks", scenario=options["scenario"], flooding=options["flooding"]),
        "dealer": None,
        "memory": memory,
        "offline": phases[0],
        "online": phases[1],
        "layers": layers,
        "plan": result["plan"]
        | {
            "loading_cpu_seconds": listening["cpu_seconds"],
            "statistical_bits": listening["statistical_bits"],
        },
    }


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
