"""Rows of a report: records, and what they predict on the paper's networks, beside its figures."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from privet.planner.network import PRESETS, Network
from privet.planner.predict import Prediction, predict
from privet.planner.prices import Prices, per_batch
from privet.planner.record import Record
from privet.planner.setting import Setting
from privet.research.papers.paper import paper
from privet.research.report.energy import energy

Row = dict[str, Any]

TWIN = "-silu"
"""Models of the zoo with this at the end have smooth activations, and stand in for the model
without it where a suite computes no others."""


def subject(record: Record) -> str:
    """The model that a record tells about: its own, or that which it stands in for."""
    return record.model.removesuffix(TWIN)


def plain(records: Iterable[Record]) -> list[Record]:
    """Records of the loopback, which predictions begin from."""
    return [record for record in records if record.link is None]


def measured(records: Iterable[Record]) -> list[Row]:
    return [
        {
            "model": record.model,
            "setting": record.setting.name,
            "batch": record.batch,
            "link": record.link or "loopback",
            "offline_seconds": record.offline.seconds,
            "online_seconds": record.online.seconds,
            "cpu_seconds": _total(record.offline.cpu_seconds, record.online.cpu_seconds),
            "offline_bytes": record.offline.bytes,
            "online_bytes": record.online.bytes,
            "rounds": record.online.rounds,
            "peak_mb": max(record.peak_mb.values(), default=None),
            "material_bytes": sum(record.material_bytes.values()),
            "joules": record.joules,
            "paper_memory_gb": memory(record.model, record.setting),
        }
        for record in sorted(records, key=_order)
    ]


def _order(record: Record) -> tuple[str, str, int, str]:
    return record.model, record.setting.name, record.batch, record.link or ""


def _total(*parts: float | None) -> float | None:
    return None if None in parts else sum(part for part in parts if part is not None)


def predicted(records: Iterable[Record], prices: Prices) -> list[Row]:
    """One row for each record of the loopback and each of the paper's networks."""
    return [
        _predicted(predict(record, network), prices)
        for record in sorted(plain(records), key=_order)
        for network in PRESETS.values()
    ]


def _predicted(cost: Prediction, prices: Prices) -> Row:
    record, network = cost.record, cost.network.name
    expense = per_batch(cost, prices)
    offline, online = energy(cost)

    def paper(table: str, *, offline: bool) -> float | None:
        single = record.batch == 1
        if table == "latency" and not single:
            return None
        return figure(table, record.model, network, record.setting, offline=offline)

    return {
        "model": record.model,
        "setting": record.setting.name,
        "batch": record.batch,
        "network": network,
        "latency": cost.latency,
        "paper_latency": paper("latency", offline=True),
        "online_latency": cost.online_latency,
        "paper_online_latency": paper("latency", offline=False),
        "throughput": cost.throughput,
        "paper_throughput": paper("throughput", offline=True),
        "online_throughput": cost.online_throughput,
        "paper_online_throughput": paper("throughput", offline=False),
        "pipelined_throughput": cost.pipelined_throughput,
        "dollars_per_sample": expense.dollars / record.batch,
        "joules_per_sample": (offline + online).joules / record.batch,
        "idle_joules_per_sample": (offline + online).idle / record.batch,
    }


def best_of_families(
    records: Sequence[Record], network: Network, *, online: bool = False, speed: float = 1.0
) -> list[Prediction]:
    """For each family, the depth of comparisons that takes least time a sample on a network."""
    best: dict[str, Prediction] = {}
    for record in records:
        cost = predict(record, network, speed)
        family = record.setting.family
        if family not in best or seconds_per_sample(cost, online=online) < seconds_per_sample(
            best[family], online=online
        ):
            best[family] = cost
    return list(best.values())


def seconds_per_sample(prediction: Prediction, *, online: bool) -> float:
    whole = prediction.online_latency if online else prediction.latency
    return whole / prediction.batch


def of_subject(records: Iterable[Record], model: str, batch: int) -> list[Record]:
    """Records of the loopback that tell about a model, for a batch."""
    return [
        record for record in plain(records) if subject(record) == model and record.batch == batch
    ]


def largest_batches(records: Iterable[Record], model: str) -> list[Record]:
    """Records of the loopback that tell about a model, for each family's largest batch."""
    model_records = [entry for entry in plain(records) if subject(entry) == model]
    largest: dict[str, int] = {}
    for record in model_records:
        largest[record.setting.family] = max(largest.get(record.setting.family, 0), record.batch)
    return [entry for entry in model_records if entry.batch == largest[entry.setting.family]]


def tight(records: Iterable[Record]) -> list[Record]:
    """Records of suites that reveal nothing but outputs."""
    return [record for record in records if not record.setting.reveals_order]


def drawn_subjects(records: Sequence[Record]) -> list[str]:
    """The models to draw: the one that most families ran, and of the paper's own the one that most
    did; of equals the one with most traffic."""
    families: dict[str, set[str]] = {}
    traffic: dict[str, int] = {}
    for record in plain(records):
        if record.batch == 1:
            families.setdefault(subject(record), set()).add(record.setting.family)
            bytes_sent = record.offline.bytes + record.online.bytes
            traffic[subject(record)] = max(traffic.get(subject(record), 0), bytes_sent)
    order = sorted(families, key=lambda name: (len(families[name]), traffic[name]), reverse=True)
    published_too = [name for name in order if name in MODELS]
    return list(dict.fromkeys([*order[:1], *published_too[:1]]))


def swept_subjects(records: Iterable[Record]) -> list[str]:
    """The models with more than one batch measured, those with most first."""
    batches: dict[str, set[int]] = {}
    for record in plain(records):
        batches.setdefault(subject(record), set()).add(record.batch)
    order = sorted(batches, key=lambda name: -len(batches[name]))
    return [name for name in order if len(batches[name]) > 1]


MODELS = {
    "bert-tiny": "BERT-Tiny",
    "bert-base": "BERT-Base",
    "resnet20": "ResNet-20",
    "resnet50": "ResNet-50",
}
"""The zoo's names of the paper's models."""


@cache
def _schemes() -> dict[str, Any]:
    return tomllib.loads(files("privet.research.report").joinpath("data/schemes.toml").read_text())


def scheme(family: str) -> str | None:
    """The paper's scheme that a family of settings is of; None of others."""
    name: str | None = _schemes()["schemes"].get(family)
    return name


def runs(kind: str) -> list[str]:
    """The settings that stand for its schemes: `every` depth of comparisons, `one`, or that of the
    scheme with keys (`keyed`)."""
    return list(_schemes()["runs"][kind])


TABLES = {"latency": "table-4", "throughput": "table-5", "memory": "table-6"}


def _printed(table: str, row: str, column: str) -> float | None:
    printed = paper("beyond-latency").item(TABLES[table]).printed
    cell = printed.cell(row, column) if column in printed.columns else None
    return None if cell is None else float(cell)


def figure(
    table: str, model: str, network: str, setting: Setting, *, offline: bool
) -> float | None:
    """The paper's `latency` (s, batch 1) or `throughput` (samples/s) on one of its networks, online
    or with `offline`, for a model of the zoo; None if it has none."""
    name = scheme(setting.family)
    if name is None:
        return None
    column = name if setting.makes_once else f"{name} {'both' if offline else 'online'}"
    return _printed(table, f"{MODELS.get(model, '')}, {network}", column)


def memory(model: str, setting: Setting) -> float | None:
    """The paper's peak memory of a party in GB, without its GPU's; None of FHE, of which it prints
    that of the GPU alone."""
    name = scheme(setting.family)
    return None if name is None else _printed("memory", MODELS.get(model, ""), name)


def remark(number: int) -> str:
    """What the paper's text says of one of its figures, in numbers; empty if it says none."""
    return str(_schemes()["figures"].get(str(number), ""))
