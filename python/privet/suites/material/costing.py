"""What suites with material take by formula: `privet.suites.forecast`, as counts of work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privet.suites.costing import Costing, LinkUse, Phase, Work, multiply_adds
from privet.suites.material.planning import Forecast

if TYPE_CHECKING:
    from privet.compiler.program.public import Program

ONLINE = LinkUse(lead=1, exposed=1.0)
AUTHENTICATED = LinkUse(lead=3, exposed=1.0)
MADE = LinkUse(lead=0, exposed=0.8)
DEALT = LinkUse(lead=1, exposed=0.3)


def link_use(phase: str, *, dealt: bool, malicious: bool) -> LinkUse:
    """How a phase uses its link."""
    if phase == "offline":
        return DEALT if dealt else MADE
    return AUTHENTICATED if malicious else ONLINE


def cost(program: Program, of: Forecast, *, dealt: bool, keys: bool, prepared: bool) -> Costing:
    """The costing of a forecast; with `keys`, material is keys that an inference reads. What is not
    `prepared` is made online."""
    made = _dealt_work(of) if dealt else _correlations(of)
    linear = {} if dealt else _linear_layers(of)
    more = of.refill
    work = {
        "run": 1.0,
        "rounds": float(of.online_rounds),
        "bytes sent": float(of.online_bytes_client + of.online_bytes_server),
        "multiply-adds": float(multiply_adds(program)),
        **({} if more is None else linear),
    }
    if keys:
        work["bytes of keys"] = float(of.material_bytes_client + of.material_bytes_server)
    client, server = of.online_bytes_client, of.online_bytes_server
    online = Phase(0.0, None, client, server, of.online_rounds, work=work)
    memory = {"client": of.memory_bytes_client / 1e6, "server": of.memory_bytes_server / 1e6}
    if more is not None and not prepared:
        online = replace(
            online,
            bytes_client=client + more.bytes_client,
            bytes_server=server + more.bytes_server,
            rounds=of.online_rounds + more.rounds,
            work={**work, **made},
        )
        nothing = {"client": 0, "server": 0}
        return Costing(Phase(0.0, 0.0, 0, 0, 0), online, nothing, memory)
    offline = Phase(
        0.0,
        None,
        of.offline_bytes_client,
        of.offline_bytes_server,
        of.offline_rounds,
        of.dealer_bytes_client,
        of.dealer_bytes_server,
        {"run": 1.0, **made, **(linear if more is None else {})},
    )
    material = {"client": of.material_bytes_client, "server": of.material_bytes_server}
    return Costing(offline, online, material, memory, of.extension, of.extensions)


def _correlations(forecast: Forecast) -> Work:
    """What the two parties alone make correlations by."""
    making = next(
        extension for extension in forecast.extensions if extension.name == forecast.extension
    )
    return {"core seconds of OTs": making.core_seconds}


def _linear_layers(forecast: Forecast) -> Work:
    """What linear layers under encryption take, whenever they run."""
    return {
        "ciphertexts": float(sum(sum(layer.ciphertexts) for layer in forecast.linear)),
        "products of ciphertexts": float(sum(layer.products for layer in forecast.linear)),
    }


def _dealt_work(forecast: Forecast) -> Work:
    dealer_bytes = forecast.dealer_bytes_client + forecast.dealer_bytes_server
    return {"bytes dealt": float(dealer_bytes)}
