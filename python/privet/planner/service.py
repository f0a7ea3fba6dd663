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
    fields: dict[str, object] = {
        "suites": [suite.name],
        "security": [suite.facts()["security"]],
        "batch": choice.batch,
        "cores": choice.cores or 1,
    }
    asked = []
    for field in fields_of(type(suite)):
        value = getattr(suite, field.name)
        if value == field.default:
            continue
        if len({getattr(it, field.name) for it in suite.served()}) > 1:
            fields[field.name] = value if suite.in_sessions else [value]
        else:
            asked.append(field.flag if value is True else f"{field.flag} {value}")
    head = f"# By `privet plan`: {setting.name}."
    if choice.pool:
        head += (
            f" Keep {choice.pool} material entries ready (`privet prepare --keep {choice.pool}`)."
        )
    if not suite.serves_weights:
        head += " Put the public half of the program, program.json, into the repository."
    if asked:
        head += f" Clients ask for it by `{' '.join(asked)}`."
    if setting.reveals_order:
        head += " The server must be started with `--reveal-values`."
    return (
        "\n".join([head, *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]) + "\n"
    )
