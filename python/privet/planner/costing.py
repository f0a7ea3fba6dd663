"""Settings of a model costed by its layers: compiled once for each precision, never run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privet.compiler.compile import Compiled, compile
from privet.errors import InputError, InvalidModel, PrivetError, Problem, UnsupportedModel
from privet.planner.record import Record, costed, file_sha256
from privet.planner.setting import Setting
from privet.planner.units import UnitCosts
from privet.suites import Phase, Precision
from privet.suites.material.planning import ExtensionForecast


def cost_settings(
    model: Path,
    settings: Iterable[Setting],
    batch: int,
    prices: Callable[[], UnitCosts],
    compiling: Mapping[str, Any] | None = None,
) -> dict[Setting, Record | str]:
    """A record by formulas and unit costs for each setting, or why there is none. `compiling` are
    arguments of `privet.compile`. Raises `InvalidModel`, and `InputError` on calibration inputs."""
    digest = file_sha256(model)
    compiled: dict[tuple[Precision, int], Compiled | PrivetError] = {}
    records: dict[Setting, Record | str] = {}
    for setting in settings:
        widths = setting.config.as_compiled()
        key = widths, setting.compiled_batch(batch)
        if key not in compiled:
            compiled[key] = _compiled(model, key[1], dict(compiling or {}) | vars(widths))
        try:
            if isinstance(outcome := compiled[key], PrivetError):
                raise outcome
            costing = setting.config.cost(outcome.program, batch)
            setting.config.check_weights(outcome)
        except UnsupportedModel as error:
            records[setting] = _first(error.problems)
            continue
        except PrivetError as error:
            records[setting] = str(error).splitlines()[0]
            continue
        units = prices()
        if not units.knows(setting):
            records[setting] = "this machine could not run it to find its unit costs"
            continue
        records[setting] = units.price(costed(costing, model.stem, digest, setting, batch))
    return records


def _first(problems: Sequence[Problem]) -> str:
    """The first of a model's problems, and how many there are besides."""
    problem, others = problems[0], len(problems) - 1
    more = f" and {others} more" if others else ""
    return f"{problem.node} ({problem.operator}){more}: {problem.why}"


def _compiled(model: Path, batch: int, options: Mapping[str, Any]) -> Compiled | PrivetError:
    """A program, or why a suite's settings have none."""
    try:
        return compile(model, batch=batch, **options)
    except (InvalidModel, InputError):  # they are of all settings
        raise
    except PrivetError as error:
        return error


def widened(one: Record, other: Record, batch: int) -> Record:
    """The record of a batch on the line through those of two smaller batches of one setting, for
    programs of more values than one may have. Rounds are those of `other`: both have to be large
    enough that a suite that sends less for more rounds does so as in the larger one."""
    share = (batch - one.batch) / (other.batch - one.batch)

    def line(first: float, second: float) -> float:
        return max(first + share * (second - first), 0.0)

    def counted(first: int, second: int) -> int:
        return round(line(first, second))

    def of_parties(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
        return {key: line(first[key], value) for key, value in second.items()}

    def phase(first: Phase, second: Phase) -> Phase:
        return Phase(
            line(first.seconds, second.seconds),
            line(first.cpu_seconds or first.seconds, second.cpu_seconds or second.seconds),
            counted(first.bytes_client, second.bytes_client),
            counted(first.bytes_server, second.bytes_server),
            second.rounds,
            counted(first.dealer_bytes_client, second.dealer_bytes_client),
            counted(first.dealer_bytes_server, second.dealer_bytes_server),
        )

    def extension(first: ExtensionForecast, second: ExtensionForecast) -> ExtensionForecast:
        return replace(
            second,
            bytes_client=counted(first.bytes_client, second.bytes_client),
            bytes_server=counted(first.bytes_server, second.bytes_server),
            core_seconds=line(first.core_seconds, second.core_seconds),
        )

    by_name = {forecast.name: forecast for forecast in one.extensions}
    return replace(
        other,
        batch=batch,
        offline=phase(one.offline, other.offline),
        online=phase(one.online, other.online),
        peak_mb=of_parties(one.peak_mb, other.peak_mb),
        material_bytes={
            key: round(value)
            for key, value in of_parties(one.material_bytes, other.material_bytes).items()
        },
        extensions=tuple(
            extension(by_name[forecast.name], forecast) for forecast in other.extensions
        ),
        layers=(),
        measured=False,
    )
