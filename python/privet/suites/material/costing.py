"""What suites with material take by formula: `privet.suites.forecast`, as counts of work."""

from __future__ import annotations

from privet.compiler.program.public import Program
from privet.suites.costing import Costing, LinkUse, Phase, Work, multiply_adds
from privet.suites.material.planning import Forecast

ONLINE = LinkUse(lead=1, exposed=1.0)
AUTHENTICATED = LinkUse(lead=3, exposed=1.0)
MADE = LinkUse(lead=0, exposed=0.8)
DEALT = LinkUse(lead=1, exposed=0.3)


def link_use(phase: str, *, dealt: bool, malicious: bool) -> LinkUse:
    """How a phase uses its link."""
    if phase == "offline":
        return DEALT if dealt else MADE
    return AUTHENTICATED if malicious else ONLINE


def cost(program: Program, of: Forecast, *, dealt: bool, keys: bool) -> Costing:
    """The costing of a forecast; with `keys`, material is keys that an inference reads."""
    offline = Phase(
        0.0,
        None,
        of.offline_bytes_client,
        of.offline_bytes_server,
        of.offline_rounds,
        of.dealer_bytes_client,
        of.dealer_bytes_server,
        _dealt_work(of) if dealt else _made_work(of),
    )
    work = {
        "run": 1.0,
        "rounds": float(of.online_rounds),
        "bytes sent": float(of.online_bytes_client + of.online_bytes_server),
        "multiply-adds": float(multiply_adds(program)),
    }
    if keys:
        work["bytes of keys"] = float(of.material_bytes_client + of.material_bytes_server)
    client, server = of.online_bytes_client, of.online_bytes_server
    return Costing(
        offline,
        Phase(0.0, None, client, server, of.online_rounds, work=work),
        {"client": of.material_bytes_client, "server": of.material_bytes_server},
        {"client": of.memory_bytes_client / 1e6, "server": of.memory_bytes_server / 1e6},
        of.extension,
        of.extensions,
    )


def _made_work(forecast: Forecast) -> Work:
    """Offline work of the two parties alone."""
    making = next(
        extension for extension in forecast.extensions if extension.name == forecast.extension
    )
    return {
        "run": 1.0,
        "core seconds of OTs": making.core_seconds,
        "ciphertexts": float(sum(sum(layer.ciphertexts) for layer in forecast.linear)),
        "products of ciphertexts": float(sum(layer.products for layer in forecast.linear)),
    }


def _dealt_work(forecast: Forecast) -> Work:
    dealer_bytes = forecast.dealer_bytes_client + forecast.dealer_bytes_server
    return {"run": 1.0, "bytes dealt": float(dealer_bytes)}
