"""How much a phase computes: counts by the suites' formulas, no times.

Correlations, ciphertexts, bytes and rounds are those of `privet.suites.forecast`,
`privet.suites.plan_ckks` and `Stream.figures`; multiply-adds follow from the program's
shapes. `privet.planner.units` has what one of each costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from privet import suites
from privet.compiler.program import Program
from privet.planner.record import Phase, Record, Work
from privet.planner.setting import Setting
from privet.suites import ExtensionForecast, Forecast

COHORT_ROUNDS = 6
"""Rounds of a cohort's keys and model: greeting, common randomness, the relinearisation key's first
half, two in which members compare sums, the model. Online there is one for each ciphertext that is
refreshed, one for the results, and the client's."""


TRANSFER_BYTES = 16
"""What a party of suite `stream` over BFV holds at least for each transfer of a preparation."""


@dataclass(frozen=True)
class Costing:
    """What formulas say of a program under a setting: phases without times, bytes of a piece and
    memory in MB beside the process, for each party."""

    offline: Phase
    online: Phase
    material_bytes: dict[str, int]
    memory_mb: dict[str, float]
    extension: str | None = None
    extensions: tuple[ExtensionForecast, ...] = ()

    def record(self, model: str, sha256: str, setting: Setting, batch: int) -> Record:
        """A record without times."""
        return Record(
            model,
            sha256,
            setting,
            batch,
            self.offline,
            self.online,
            self.memory_mb,
            self.material_bytes,
            extension=self.extension,
            extensions=self.extensions,
            measured=False,
        )


def cost(program: Program, setting: Setting, samples: int = 1) -> Costing:
    """What formulas say of a program; where a setting packs, of `samples` in each plaintext.

    # Errors
    `UnsupportedModel` if the suite has no protocol for a layer, `Misuse` if no parameters fit.
    """
    setting.config.check_supports(program)
    if setting.reveals_order:
        return _streamed(program, setting, samples if setting.packs else 1)
    if setting.members:
        return _collective(program, setting)
    if setting.makes_once:
        return _encrypted(program, setting)
    planned = suites.material_suite(setting.config).native(program.to_public_bytes())
    return _shared(program, setting, suites.forecast(planned))


def _shared(program: Program, setting: Setting, of: Forecast) -> Costing:
    offline = Phase(
        0.0,
        None,
        of.offline_bytes_client,
        of.offline_bytes_server,
        of.offline_rounds,
        of.dealer_bytes_client,
        of.dealer_bytes_server,
        _dealt_work(of) if setting.dealer else _made_work(of),
    )
    work = {
        "run": 1.0,
        "rounds": float(of.online_rounds),
        "bytes sent": float(of.online_bytes_client + of.online_bytes_server),
        "multiply-adds": float(multiply_adds(program)),
    }
    if setting.rounds is None:
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


def _made_work(of: Forecast) -> Work:
    """Offline work of the two parties alone."""
    making = next(it for it in of.extensions if it.name == of.extension)
    return {
        "run": 1.0,
        "core seconds of OTs": making.core_seconds,
        "ciphertexts": float(sum(sum(layer.ciphertexts) for layer in of.linear)),
        "products of ciphertexts": float(sum(layer.products for layer in of.linear)),
    }


def _dealt_work(of: Forecast) -> Work:
    dealt = of.dealer_bytes_client + of.dealer_bytes_server
    return {"run": 1.0, "bytes dealt": float(dealt)}


def _encrypted(program: Program, setting: Setting) -> Costing:
    """Suite `ckks` between two. A product costs a level's residues, a rotation their square (key
    switching)."""
    plan = setting.config.figures(program)
    keys = plan["offline_bytes_client"]
    offline = Phase(0.0, None, keys, 0, 2, work={"run": 1.0, "bytes of keys": float(keys)})
    return Costing(
        offline, _evaluation(plan, 1), {"client": 0, "server": 0}, _memory(plan, "server")
    )


def _collective(program: Program, setting: Setting) -> Costing:
    """Suite `ckks` of a cohort, whose members send the coordinator their shares of keys and, member
    0, the encrypted model; members are the phase's client, the coordinator its server."""
    plan = setting.config.figures(program)
    late = setting.members * plan["member_bytes_online"]
    shares = setting.members * plan["member_bytes"] - late
    offline = Phase(
        0.0,
        None,
        shares + plan["model_bytes"],
        plan["coordinator_bytes"] - plan["coordinator_bytes_online"],
        COHORT_ROUNDS,
        work={
            "run": 1.0,
            "bytes of shares": float(shares),
            "bytes of the model": float(plan["model_bytes"]),
        },
    )
    online = _evaluation(plan, 2 + plan["refreshes"])
    online = replace(
        online,
        bytes_client=online.bytes_client + late,
        bytes_server=online.bytes_server + plan["coordinator_bytes_online"],
        work={**online.work, "bytes of refreshes": float(setting.members * plan["refresh_bytes"])},
    )
    return Costing(offline, online, {"client": 0, "server": 0}, _memory(plan, "coordinator"))


def _evaluation(plan: dict[str, Any], rounds: int) -> Phase:
    """The online phase of suite `ckks`: inputs there, results back."""
    sent, received = plan["online_bytes_client"], plan["online_bytes_server"]
    return Phase(0.0, None, sent, received, rounds, work={"run": 1.0, **_homomorphic_work(plan)})


def _memory(plan: dict[str, Any], server: str) -> dict[str, float]:
    return {
        "client": plan["memory_bytes_client"] / 1e6,
        server: plan["memory_bytes_server"] / 1e6,
    }


def _streamed(program: Program, setting: Setting, samples: int) -> Costing:
    """Suite `stream`, the first inference of a session."""
    plan = setting.config.figures(program, samples)
    offline, online = (
        Phase(
            0.0,
            None,
            plan[f"{name}_bytes_client"],
            plan[f"{name}_bytes_server"],
            plan[f"{name}_rounds"],
            work={"run": 1.0, **work},
        )
        for name, work in (("offline", _ahead(plan)), ("online", _streaming(program, plan)))
    )
    material = {party: plan[f"material_bytes_{party}"] for party in ("client", "server")}
    held = {
        party: (TRANSFER_BYTES * plan["transfers"] + size) / 1e6 for party, size in material.items()
    }
    return Costing(offline, online, material, held)


def _ahead(plan: Mapping[str, Any]) -> dict[str, float]:
    """What suite `stream` makes ahead: masks with ciphertexts and transfers, or noise for each
    value that is encrypted or sent back."""
    if plan["cipher"] == "bfv":
        return {
            "transfers": float(plan["transfers"]),
            "ciphertexts": float(plan["ciphertexts"]),
            "products of ciphertexts": float(plan["products"]),
        }
    return {"noise": float(plan["encryptions"] + plan["decryptions"])}


def _streaming(program: Program, plan: Mapping[str, Any]) -> dict[str, float]:
    """Online work of suite `stream`."""
    values = {name: float(plan[name]) for name in ("encryptions", "decryptions")}
    work = {"multiply-adds": float(multiply_adds(program))}
    if plan["cipher"] == "bfv":
        return {**work, "rounds": float(plan["online_rounds"]), "values": sum(values.values())}
    packed = {"values in slots": plan["samples"] * sum(values.values())}
    return {**work, **values, **(packed if plan["samples"] > 1 else {})}


def _homomorphic_work(plan: dict[str, Any]) -> dict[str, float]:
    residues = float(plan["groups"] * 2 ** plan["parameters"]["log_n"])
    layers = plan["layers"]
    return {
        "products": residues * sum(it["products"] * (it["level"] + 2) for it in layers),
        "rotations": residues * sum(it["rotations"] * (it["level"] + 2) ** 2 for it in layers),
    }


def multiply_adds(program: Program) -> int:
    """Multiply-adds of convolutions and dense layers of the whole batch."""
    total = 0
    for operation in program.operations:
        outputs = prod(program.values[operation.output].shape)
        shape = operation.attributes.get("weight_shape", ())
        if operation.op == "conv2d":
            total += outputs * prod(shape[1:])
        elif operation.op == "dense":
            total += outputs * shape[0]
    return total
