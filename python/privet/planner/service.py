"""A recommendation as configuration of `privet serve`."""

from __future__ import annotations

import json

from privet.errors import Misuse
from privet.planner.choice import Choice


def config(choice: Choice | None) -> str:
    """A model's `config.toml`: suite, security, depth of comparisons, batch, cores.

    # Errors
    `Misuse` if there is no choice, or the service does not run it.
    """
    if choice is None:
        raise Misuse("nothing fits, so that there is nothing to configure")
    setting = choice.setting
    if setting.members:
        raise Misuse("`privet serve` runs no cohort: see `privet cohort`")
    if setting.reveals_order:
        raise Misuse(
            f"`privet serve` does not offer suite {setting.suite}, which runs by `privet run`"
        )
    fields: dict[str, object] = {
        "suites": [setting.suite],
        "security": [setting.security],
        "batch": choice.batch,
        "cores": choice.cores or 1,
    }
    if setting.rounds is not None:
        fields["rounds"] = [setting.rounds]
    head = f"# By `privet plan`: {setting.name}."
    if choice.pool:
        head += f" Keep {choice.pool} pieces ready (`privet prepare --keep {choice.pool}`)."
    return (
        "\n".join([head, *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]) + "\n"
    )
