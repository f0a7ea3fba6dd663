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
import numpy.typing as npt

from privet import keys
from privet.compile import Compiled
from privet.errors import PeerError
from privet.parties.client import Progress
from privet.parties.costs import LayerCost, MemoryUse, PhaseCost
from privet.parties.spawned import event, party
from privet.program import Program
from privet.suites import COLLECTIVE, STATISTICAL, Mode, collective_trust
from privet.suites.ckks import program_path

Array = npt.NDArray[np.generic]


def run_collective(
    folder: Path,
    compiled: Compiled,
    inputs: Mapping[str, Array],
    options: Mapping[str, Any],
    limits: Mapping[str, Any],
    progress: Progress | None,
) -> tuple[list[Array], dict[str, Any]]:
    """As `run_encrypted`, with a cohort of `options["parties"]` members."""
    members, command = options["parties"], [program_path()]
    compiled.save(folder / "program")
    keys.make(folder / "keys", (), members=members)
    write_reals(folder / "inputs.f64", inputs)
    common = {
        "keys": str(folder / "keys"),
        "program": str(folder / "program"),
        "members": members,
        "statistical": options["flooding"] == STATISTICAL,
        "timeout": limits["timeout"],
        "memory": limits["memory"] or 0,
    }
    with ExitStack() as running:
        hub = running.enter_context(party(folder, {"role": "coordinator", **common}, command))
        listening = event(hub, "listening")
        common["port"] = listening["port"]
        helpers = [
            running.enter_context(party(folder, {"role": "member", "member": k, **common}, command))
            for k in range(members)
        ]
        files = {"inputs": str(folder / "inputs.f64"), "result": str(folder / "result.f64")}
        job = {"role": "cohort-client", **files, **common}
        client = running.enter_context(party(folder, job, command))
        if progress is not None:
            progress("offline", 0, 1, "collective keys, model")
        offline = event(hub, "prepared")["cost"]
        if progress is not None:
            progress("offline", 1, 1, "collective keys, model")
            progress("online", 0, 1, "evaluation")
        evaluated = event(hub, "inferred")
        result = event(client, "result")
        ended = [event(helper, "helped") for helper in helpers]
    result["plan"]["statistical_bits"] = ended[0]["statistical_bits"]
    found = _found(options, result, listening, offline, evaluated, ended)
    return read_integers(compiled.program, folder / "result.f64"), found


def _found(
    options: Mapping[str, Any],
    result: dict[str, Any],
    listening: dict[str, Any],
    offline: dict[str, Any],
    evaluated: dict[str, Any],
    ended: list[dict[str, Any]],
) -> dict[str, Any]:
    """Fields of `Run`. Members make keys offline; online they refresh and hand out results."""
    online, evaluation = result["online"], evaluated["cost"]
    whole, early = ([told[key] for told in ended] for key in ("cost", "offline"))
    late = [_since(before, cost) for before, cost in zip(early, whole, strict=True)]
    peak = round(max(it["peak_rss_mb"] for it in (offline, evaluation, online, *whole)), 1)
    phases = {
        "offline": _phase(early, offline["seconds"], [offline], peak),
        "online": _phase([online, *late], online["seconds"], [evaluation], peak)
        | {"rounds": online["rounds"] + max(cost["rounds"] for cost in late)},
    }
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
    return {
        "rounds": None,
        "extension": None,
        "correlations": "none",
        "truncation": "none",
        "trust": collective_trust(options["parties"]),
        "mode": Mode("ckks", scenario=COLLECTIVE, flooding=options["flooding"]),
        "dealer": None,
        "memory": memory,
        "layers": layers,
        "plan": result["plan"],
        **{name: PhaseCost(**cost) for name, cost in phases.items()},
    }


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
