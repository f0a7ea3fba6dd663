"""Data of the paper's figures, from records: one flat list of rows for each."""

from __future__ import annotations

from collections.abc import Sequence

from privet.planner import key_pool
from privet.planner.network import PRESETS, Network
from privet.planner.predict import Prediction, predict
from privet.planner.prices import Prices, per_batch
from privet.planner.record import Record
from privet.research.report.energy import carried, energy
from privet.research.report.standard import STUDY
from privet.research.report.tables import (
    Row,
    best_of_families,
    plain,
    seconds_per_sample,
    subject,
)

JOBS = 200
SPEEDS = (1, 2, 5, 10, 20, 50, 100)
ROUND_TRIPS = (0.00002, 0.0002, 0.001, 0.005, 0.02, 0.07, 0.2)
BANDWIDTHS = (1e7, 1e8, 1e9, 1e10, 1e11)


def batch_sweep(records: Sequence[Record], model: str) -> list[Row]:
    """Throughput by batch on WAN_F, as a multiple of that of batch 1 (Figure 1)."""
    rows: list[Row] = []
    network = PRESETS["WAN_F"]
    predictions = [
        predict(record, network) for record in plain(records) if subject(record) == model
    ]
    single = {
        prediction.record.setting: prediction for prediction in predictions if prediction.batch == 1
    }
    for cost in predictions:
        single_cost = single.get(cost.record.setting)
        if single_cost is None:
            continue
        for phase, now, before in (
            ("online", cost.online_throughput, single_cost.online_throughput),
            ("offline + online", cost.throughput, single_cost.throughput),
        ):
            rows.append(
                {
                    "setting": cost.record.setting.name,
                    "phase": phase,
                    "batch": cost.batch,
                    "times": now / before,
                }
            )
    return [row for row in rows if any(r["batch"] > 1 for r in rows if _same(r, row))]


def _same(one: Row, other: Row) -> bool:
    return bool(one["setting"] == other["setting"])


def slowest_material(records: Sequence[Record]) -> Record | None:
    """The record whose material takes longest to make on WAN_S, beside its online phase."""

    def ratio(record: Record) -> float:
        cost = predict(record, PRESETS["WAN_S"])
        return cost.offline.seconds / cost.online.seconds

    return max(
        (record for record in plain(records) if record.setting.dealer), key=ratio, default=None
    )


def pools(record: Record) -> list[Row]:
    """Latency of each of 200 jobs on WAN_S for pools of several sizes (Figure 2): one arrives on
    average when half of the time to make a material entry has passed, so that a small pool runs
    empty."""
    cost = predict(record, PRESETS["WAN_S"])
    load = key_pool.PoolLoad(cost.online.seconds, cost.offline.seconds)
    interval = max(cost.online.seconds * 1.2, cost.offline.seconds / 2)
    arrivals = key_pool.poisson(JOBS, interval)
    return [
        {"pool": f"{share:.0%} of the jobs", "job": job, "seconds": seconds}
        for share in (0.0, 0.25, 0.5, 1.0)
        for job, seconds in enumerate(
            key_pool.simulate(arrivals, load, round(share * JOBS)).latencies, 1
        )
    ]


def _each(records: Sequence[Record]) -> list[Prediction]:
    return [cost for network in PRESETS.values() for cost in best_of_families(records, network)]


def time_parts(records: Sequence[Record]) -> list[Row]:
    """Where a batch's time goes, by network (Figure 3)."""
    rows: list[Row] = []
    for cost in _each(records):
        for phase, parts in (("offline", cost.offline), ("online", cost.online)):
            seconds_of = {
                "computing": parts.computing,
                "transfer": parts.transfer - parts.hidden,
                "waiting": parts.waiting,
            }
            rows += [
                _part(cost, f"{phase} {name}", seconds) for name, seconds in seconds_of.items()
            ]
    return rows


def cost_parts(records: Sequence[Record], prices: Prices) -> list[Row]:
    """What a sample's dollars pay for, by network (Figure 4)."""
    return [
        _part(cost, name.replace("_", " "), dollars / cost.batch)
        for cost in _each(records)
        for name, dollars in vars(per_batch(cost, prices)).items()
    ]


def energy_parts(records: Sequence[Record]) -> list[Row]:
    """A sample's joules, by network (Figure 5)."""
    return [
        _part(cost, f"{phase} {name}", joules / cost.batch)
        for cost in _each(records)
        for phase, energy_use in zip(("offline", "online"), energy(cost), strict=True)
        for name, joules in vars(energy_use).items()
    ]


def carried_energy(records: Sequence[Record]) -> list[Row]:
    """Joules of the network for a sample's bytes, which no party pays."""
    return [_part(cost, "carried", carried(cost) / cost.batch) for cost in _each(records)]


def _part(cost: Prediction, part: str, value: float) -> Row:
    family = cost.record.setting.family
    return {"network": cost.network.name, "family": family, "part": part, "value": max(value, 0.0)}


CONTEXT = 128
"""The tokens that Figure 6 compares with."""


def contexts(records: Sequence[Record], batch: int = 1) -> list[Row]:
    """Latency on WAN_M by tokens, as a multiple of that of 128 (Figure 6): of models of
    `STUDY.contexts`, in one batch, each family at its best depth."""
    seconds: dict[tuple[str, str], dict[int, float]] = {}
    for model, tokens in STUDY.contexts.items():
        single = [
            record for record in plain(records) if (record.model, record.batch) == (model, batch)
        ]
        for phase, online in (("online", True), ("offline + online", False)):
            for cost in best_of_families(single, PRESETS["WAN_M"], online=online):
                curve = seconds.setdefault((cost.record.setting.family, phase), {})
                curve[tokens] = seconds_per_sample(cost, online=online)
    return [
        {
            "family": family,
            "phase": phase,
            "tokens": tokens,
            "seconds": seconds_then,
            "times": seconds_then / by_tokens[CONTEXT],
        }
        for (family, phase), by_tokens in seconds.items()
        if CONTEXT in by_tokens and len(by_tokens) > 1
        for tokens, seconds_then in sorted(by_tokens.items())
    ]


def main_costs(records: Sequence[Record], prices: Prices) -> list[Row]:
    """The two largest parts of each family's money and energy on WAN_M (Figure 8, b)."""
    kinds = {"money": cost_parts(records, prices), "energy": energy_parts(records)}
    costs: list[Row] = []
    for kind, rows in kinds.items():
        wan_rows = [row for row in rows if row["network"] == "WAN_M"]
        for family in dict.fromkeys(row["family"] for row in wan_rows):
            parts = {row["part"]: row["value"] for row in wan_rows if row["family"] == family}
            whole = sum(parts.values()) or 1.0
            first, second = sorted(parts, key=lambda part: -parts[part])[:2]
            costs.append(
                {
                    "family": family,
                    "what": kind,
                    "first": first,
                    "first_share": 100 * parts[first] / whole,
                    "second": second,
                    "second_share": 100 * parts[second] / whole,
                }
            )
    return costs


def speed_sweep(records: Sequence[Record]) -> list[Row]:
    """Time of a sample on WAN_M if computing went faster, of the slowest family's (Figure 7)."""
    rows: list[Row] = []
    for online in (True, False):
        for speed in SPEEDS:
            costs = best_of_families(records, PRESETS["WAN_M"], online=online, speed=speed)
            seconds = {
                cost.record.setting.family: seconds_per_sample(cost, online=online)
                for cost in costs
            }
            slowest = max(seconds.values(), default=1.0)
            rows += [
                {
                    "phase": "online" if online else "offline + online",
                    "speed": speed,
                    "family": family,
                    "share": value / slowest,
                    "seconds": value,
                }
                for family, value in seconds.items()
            ]
    return rows


def regimes(records: Sequence[Record]) -> list[Row]:
    """The quickest family by round trip and bandwidth (Figure 8)."""
    return [
        {"rtt": f"{1000 * rtt:g} ms", **row}
        for rtt in ROUND_TRIPS
        for row in _quickest(records, rtt, 1.0)
    ]


def computing_regimes(records: Sequence[Record]) -> list[Row]:
    """The quickest family by bandwidth and speed of computing at a round trip of 70 ms, the axes of
    the paper's Figure 8 (a)."""
    return [
        {"speed": f"{speed} x", **row}
        for speed in SPEEDS
        for row in _quickest(records, PRESETS["WAN_M"].rtt, speed)
    ]


def _quickest(records: Sequence[Record], rtt: float, speed: float) -> list[Row]:
    """For both phases and each bandwidth, the family that takes least time for a sample."""
    rows: list[Row] = []
    for online in (True, False):
        for bits in BANDWIDTHS:
            network = Network("", rtt, bits)
            costs = best_of_families(records, network, online=online, speed=speed)
            best = min(costs, key=lambda cost: seconds_per_sample(cost, online=online))
            rows.append(
                {
                    "phase": "online" if online else "offline + online",
                    "bandwidth": _rate(bits),
                    "family": best.record.setting.family,
                    "seconds": seconds_per_sample(best, online=online),
                }
            )
    return rows


def _rate(bits: float) -> str:
    return f"{bits / 1e9:g} Gbit/s" if bits >= 1e9 else f"{bits / 1e6:g} Mbit/s"
