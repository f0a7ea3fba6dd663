"""Settings of a model costed by its layers: compiled once for each precision, never run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from privet.compiler.compile import Compiled, compile
from privet.errors import PrivetError
from privet.planner.record import Record, costed, file_sha256
from privet.planner.setting import Setting
from privet.planner.units import UnitCosts
from privet.suites import Precision


def cost_settings(
    model: Path,
    wanted: Iterable[Setting],
    batch: int,
    prices: Callable[[], UnitCosts],
    compiling: Mapping[str, Any] | None = None,
) -> dict[Setting, Record | str]:
    """A record by formulas and unit costs for each setting, or why there is none. `compiling` are
    arguments of `privet.compile`.

    # Errors
    Those of `privet.compile`, if the model cannot be compiled for any suite.
    """
    digest = file_sha256(model)
    compiled: dict[tuple[Precision, int], Compiled] = {}
    found: dict[Setting, Record | str] = {}
    for setting in wanted:
        widths = setting.config.precision
        key = widths, setting.compiled_batch(batch)
        try:
            if key not in compiled:
                options = dict(compiling or {}) | vars(widths)
                compiled[key] = compile(model, batch=key[1], **options)
            costing = setting.config.cost(compiled[key].program, batch)
        except PrivetError as error:
            found[setting] = str(error).splitlines()[0].rstrip(":")
            continue
        units = prices()
        if not units.knows(setting):
            found[setting] = "this machine could not run it to find its unit costs"
            continue
        found[setting] = units.price(costed(costing, model.stem, digest, setting, batch))
    return found
