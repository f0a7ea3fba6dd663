"""A recommendation as configuration of `privet serve`."""

from __future__ import annotations

import json

from privet.errors import Misuse
from privet.planner.choice import Choice
from privet.suites.options import fields_of


def config(choice: Choice | None) -> str:
    """A model's `config.toml`: suite, its options, batch, cores.

    # Errors
    `Misuse` if there is no choice, or the service does not run it.
    """
    if choice is None:
        raise Misuse("nothing fits, so that there is nothing to configure")
    setting, suite = choice.setting, choice.setting.config
    if setting.members:
        raise Misuse("`privet serve` runs no cohort: see `privet cohort`")
    if setting.reveals_order:
        raise Misuse(
            f"`privet serve` does not offer suite {suite.name}, which runs by `privet run`"
        )
    fields: dict[str, object] = {
        "suites": [suite.name],
        "security": [suite.facts()["security"]],
        "batch": choice.batch,
        "cores": choice.cores or 1,
    }
    for field in fields_of(type(suite)):
        value = getattr(suite, field.name)
        if value != field.default:
            fields[field.name] = [value]
    head = f"# By `privet plan`: {setting.name}."
    if choice.pool:
        head += (
            f" Keep {choice.pool} material entries ready (`privet prepare --keep {choice.pool}`)."
        )
    return (
        "\n".join([head, *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]) + "\n"
    )
