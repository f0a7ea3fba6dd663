"""Client, server and, where one deals, dealer on this machine: processes over loopback TLS."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any

import numpy as np

from privet import keys
from privet.suites.base import LocalJob, LocalResult
from privet.suites.costs import NOTHING, DealerCost, LayerCost, MemoryUse, PhaseCost
from privet.suites.material.suite import MaterialSuite
from privet.suites.policy import make_policy
from privet.suites.spawned import event, party
from privet.suites.text import over

if TYPE_CHECKING:
    from privet.compiler.compile import Compiled


def run_local(
    suite: MaterialSuite, job: LocalJob, *, prepared: bool = True, weights: str | None = None
) -> LocalResult:
    """The client's revealed integers, and costs. Unless `prepared`, nothing is made before the
    inference; `weights` is their form at the server, as `privet.Server` says. Raises `PeerError` if
    a party fails."""
    folder = job.folder
    np.savez(folder / "inputs.npz", *job.given.values())
    with ExitStack() as running:
        parties = serve(
            running, suite, job.compiled, folder, job.timeout, memory=job.memory, weights=weights
        )
        dealer, server, listening = parties.dealer, parties.server, parties.listening
        asking = {
            "role": "client",
            "state": str(folder / "c"),
            "port": listening["port"],
            "inputs": str(folder / "inputs.npz"),
            "result": str(folder / "result.npz"),
            "suite": suite.to_json(),
            "prepared": prepared,
            "progress": job.progress is not None,
            "link": str(job.link) if job.link else None,
            **parties.common_fields,
        }
        client = running.enter_context(party(folder, asking))
        result = event(client, "result", job.progress)
        kinds = ("prepared", "inferred") if prepared else ("inferred",)
        server_costs = [event(server, kind)["cost"] for kind in kinds]
        dealer_cost = DealerCost(**event(dealer, "dealt")["cost"]) if dealer else None
    with np.load(folder / "result.npz") as revealed:
        integers = [revealed[name] for name in revealed.files]
    config = type(suite).from_json(result["suite"])
    if weights is not None:
        plan = config.native(job.compiled.program.to_public_bytes())
        result["needs"][1] = plan.server_memory(weights)
    offline, online = _phases(result, server_costs)
    return LocalResult(
        config,
        integers,
        online,
        tuple(LayerCost(**layer) for layer in result["layers"]),
        _memory(result, server_costs, listening["memory"], limited=bool(job.memory)),
        offline,
        dealer=dealer_cost,
        extension=result["extension"],
        account=(_account_line(suite, config, job, result["extension"]),),
    )


@dataclass(frozen=True)
class Parties:
    """A server of one program, and a dealer if need be: processes that say what they do.

    `common_fields` is what jobs of all parties have in common, `listening` what the server said at
    first.
    """

    server: Popen[str]
    dealer: Popen[str] | None
    common_fields: dict[str, Any]
    listening: dict[str, Any]


def serve(
    running: ExitStack,
    suite: MaterialSuite,
    compiled: Compiled,
    folder: Path,
    timeout: float,
    *,
    memory: int | None = None,
    weights: str | None = None,
) -> Parties:
    """Starts what a client of `suite` needs, until `running` ends; keys are in `folder / "keys"`.
    Raises `PeerError` if a party fails."""
    compiled.save(folder / "program")
    keys.make(folder / "keys", ())
    settings: dict[str, Any] = {
        "keys": str(folder / "keys"),
        "memory": memory,
        "timeout": timeout,
    }
    dealer = None
    if suite.dealt:
        dealer = running.enter_context(party(folder, {"role": "dealer", **settings}))
        settings["dealer"] = f"127.0.0.1:{event(dealer, 'listening')['port']}"
    serving = {
        "role": "server",
        "policy": make_policy(
            dealer=dealer is not None,
            truncation=suite.facts()["truncation"],
            encrypts=suite.facts().get("encrypts") or "masks",
        ).text(),
        "state": str(folder / "s"),
        "program": str(folder / "program"),
        "weights": weights,
        "warm": _warm(suite),
        **settings,
    }
    server = running.enter_context(party(folder, serving))
    return Parties(server, dealer, settings, event(server, "listening"))


def _warm(suite: MaterialSuite) -> bool | None:
    """False for a suite that does not take weights in the form that a server makes ready."""
    facts = suite.facts()
    return False if facts["field"] == "prime" or facts.get("encrypts") == "weights" else None


def _phases(
    result: dict[str, Any], server_costs: list[dict[str, Any]]
) -> tuple[PhaseCost, PhaseCost]:
    """Offline and online, as the client saw them, with the processors of both parties."""
    *ahead, last = server_costs
    offline = PhaseCost(**result["offline"]).beside(*ahead) if ahead else NOTHING
    return offline, PhaseCost(**result["online"]).beside(last)


def _memory(
    result: dict[str, Any], server_costs: list[dict[str, Any]], server_start: int, *, limited: bool
) -> dict[str, MemoryUse]:
    """Of each party. A server with a limit trades time for memory, so that it has no forecast."""
    client_costs = [result[phase] for phase in ("offline", "online")[-len(server_costs) :]]
    client, server = result["needs"]
    starts = {"client": result["memory"] + client, "server": server_start + server}
    peaks = {"client": client_costs, "server": server_costs}
    return {
        name: MemoryUse(
            None if limited and name == "server" else forecast_bytes / 1e6,
            max(cost["peak_rss_mb"] for cost in peaks[name]),
        )
        for name, forecast_bytes in starts.items()
    }


def _account_line(
    suite: MaterialSuite, config: MaterialSuite, job: LocalJob, extension: str | None
) -> str:
    facts = config.facts()
    account = config.comparisons(suite) + over(job.link)
    if facts["linear"] == "online":
        account += ", linear layers online"
    if facts["field"] == "prime":
        account += ", linear layers modulo a prime"
    if facts.get("encrypts") == "weights":
        account += ", encrypted weights at the client"
    return (
        f"Suite {config.name} ({facts['security']}), {account}, {facts['truncation']} truncation, "
        f"{config.making} by {extension or 'a dealer'}, program "
        f"{job.compiled.program.program_hash[:16]}; {'three' if config.dealt else 'two'} processes "
        "over TLS on this machine."
    )
