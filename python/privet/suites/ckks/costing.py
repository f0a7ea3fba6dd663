"""What suite `ckks` takes by formula: its plan's figures as counts of work.

A product costs a level's residues, a rotation their square (key switching).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from privet.suites.costing import Costing, LinkUse, Phase

COHORT_ROUNDS = 6
"""Rounds of a cohort's keys and model: greeting, common randomness, the relinearisation key's first
half, two in which members compare sums, the model. Online there is one for each ciphertext that is
refreshed, one for the results, and the client's."""

EVALUATED = LinkUse(lead=1, exposed=1.0)
KEYS = LinkUse(lead=1, exposed=0.3)
COLLECTIVE = LinkUse(lead=0, exposed=1.0, half_trips=2)

Plan = Mapping[str, Any]


def between_two(plan: Plan) -> Costing:
    """The costing of a plan for a client and a server."""
    keys = plan["offline_bytes_client"]
    offline = Phase(0.0, None, keys, 0, 2, work={"run": 1.0, "bytes of keys": float(keys)})
    return Costing(
        offline, _evaluation(plan, 1), {"client": 0, "server": 0}, _memory(plan, "server")
    )


def collective(plan: Plan, members: int) -> Costing:
    """The costing of a plan for a cohort, whose members send the coordinator their shares of keys
    and, member 0, the encrypted model; members are the phase's client, the coordinator its
    server."""
    late = members * plan["member_bytes_online"]
    shares = members * plan["member_bytes"] - late
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
        work={**online.work, "bytes of refreshes": float(members * plan["refresh_bytes"])},
    )
    return Costing(offline, online, {"client": 0, "server": 0}, _memory(plan, "coordinator"))


def _evaluation(plan: Plan, rounds: int) -> Phase:
    """The online phase: inputs there, results back."""
    sent, received = plan["online_bytes_client"], plan["online_bytes_server"]
    return Phase(0.0, None, sent, received, rounds, work={"run": 1.0, **_homomorphic_work(plan)})


def _memory(plan: Plan, server: str) -> dict[str, float]:
    return {
        "client": plan["memory_bytes_client"] / 1e6,
        server: plan["memory_bytes_server"] / 1e6,
    }


def _homomorphic_work(plan: Plan) -> dict[str, float]:
    residues = float(plan["groups"] * 2 ** plan["parameters"]["log_n"])
    layers = plan["layers"]
    return {
        "products": residues * sum(layer["products"] * (layer["level"] + 2) for layer in layers),
        "rotations": residues
        * sum(layer["rotations"] * (layer["level"] + 2) ** 2 for layer in layers),
    }
