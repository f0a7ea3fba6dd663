"""The figures of "Beyond Latency", to print beside ours."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from privet.planner.setting import Setting

MODELS = {
    "bert-tiny": "BERT-Tiny",
    "bert-base": "BERT-Base",
    "resnet20": "ResNet-20",
    "resnet50": "ResNet-50",
}
"""The zoo's names of the paper's models."""


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files("privet.research.report").joinpath("data/paper.toml").read_text())


def scheme(setting: Setting) -> str | None:
    """The paper's scheme that a setting is of: `A2B` (dealt), `FSS`, `FHE`; None of others."""
    if setting.malicious or setting.members:
        return None
    if setting.suite == "gmw":
        return "A2B" if setting.dealer else None
    return {"fss": "FSS", "ckks": "FHE"}.get(setting.suite)


def figure(
    table: str, model: str, network: str, setting: Setting, *, offline: bool
) -> float | None:
    """The paper's `latency` (s, batch 1) or `throughput` (samples/s) on one of its networks, online
    or with `offline`, for a model of the zoo; None if it has none."""
    name = scheme(setting)
    row = _tables()[table].get(MODELS.get(model, ""), {}).get(network)
    if name is None or row is None:
        return None
    places = {"FSS": (2, 0), "A2B": (3, 1), "FHE": (4, 4)}
    return float(row[places[name][offline]])


def memory(model: str, setting: Setting) -> float | None:
    """The paper's peak memory of a party in GB, without its GPU's."""
    row = _tables()["memory"].get(MODELS.get(model, ""), {})
    found = row.get(scheme(setting))
    return None if found is None else float(found)


def remark(number: int) -> str:
    """What the paper's text says of one of its figures, in numbers; empty if it says none."""
    return str(_tables()["figures"].get(str(number), ""))
