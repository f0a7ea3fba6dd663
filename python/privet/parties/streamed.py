"""Both parties of suite `stream` on this machine, as two processes over loopback TLS.

The client provides data and the server the model, as in PP-Stream. The offline phase is a key of
the client's and noise for one inference at both sides, or masks over BFV.
"""

from __future__ import annotations

import sys
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
from privet.parties.costs import LayerCost, MemoryUse, PhaseCost
from privet.parties.spawned import event, party
from privet.suites import STREAM, STREAM_TRUST, check_without_dealer, plan_stream

Array = npt.NDArray[np.generic]

COMMAND = (sys.executable, "-m", "privet.parties.provider")


def run_streamed(
    folder: Path,
    compiled: Compiled,
    inputs: Mapping[str, Array],
    options: Mapping[str, Any],
    limits: Mapping[str, Any],
    progress: Progress | None,
) -> tuple[list[Array], dict[str, Any]]:
    """The client's integers, and what else the processes found out as fields of `Run`.

    # Errors
    `Misuse` on options that this suite does not have or a layer that it does not compute;
    `PeerError` if a party fails.
    """
    _check(options, limits)
    cipher = {name: options[name] for name in ("cipher", "key_bits")}
    program = options["alone"] or compiled
    samples = compiled.program.batch if options["alone"] else 1
    plan = plan_stream(program.program.to_public_bytes(), **cipher, samples=samples)
    program.save(folder / "program")
    keys.make(folder / "keys", ())
    np.savez(folder / "inputs.npz", *inputs.values())
    common = {"keys": str(folder / "keys"), "timeout": limits["timeout"], **cipher}
    with ExitStack() as running:
        job = {"role": "server", "program": str(folder / "program"), **common}
        server = running.enter_context(party(folder, job, COMMAND))
        job = {
            "role": "client",
            "port": event(server, "listening")["port"],
            "inputs": str(folder / "inputs.npz"),
            "result": str(folder / "result.npz"),
            "program_hash": program.program.program_hash,
            "samples": samples,
            "link": str(options["link"]) if options["link"] else None,
            **common,
        }
        client = running.enter_context(party(folder, job, COMMAND))
        result = event(client, "result", progress)
        theirs = [event(server, kind)["cost"] for kind in ("prepared", "inferred")]
    with np.load(folder / "result.npz") as revealed:
        integers = [revealed[name] for name in revealed.files]
    return integers, _found(result, theirs, plan)


def _check(options: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
    check_without_dealer("stream", options, "in the clear")
    if limits["memory"] is not None:
        raise Misuse("suite stream cannot limit its memory; the memory printed is measured")


def _found(
    result: dict[str, Any], theirs: list[dict[str, Any]], plan: dict[str, Any]
) -> dict[str, Any]:
    ours = [result[phase] for phase in ("offline", "online")]
    offline, online = (
        PhaseCost(
            **client
            | {"peak_rss_mb": max(client["peak_rss_mb"], server["peak_rss_mb"])}
            | {"cpu_seconds": client["cpu_seconds"] + server["cpu_seconds"]}
        )
        for client, server in zip(ours, theirs, strict=True)
    )
    memory = {
        party: MemoryUse(None, max(cost["peak_rss_mb"] for cost in costs))
        for party, costs in {"client": ours, "server": theirs}.items()
    }
    return {
        "rounds": None,
        "extension": None,
        "correlations": "none",
        "truncation": "exact",
        "trust": STREAM_TRUST,
        "mode": STREAM,
        "dealer": None,
        "memory": memory,
        "offline": offline,
        "online": online,
        "layers": tuple(LayerCost(**layer) for layer in result["layers"]),
        "plan": plan,
    }
