"""`config.toml` of a model in the repository: how it is compiled, and how it may be asked."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from privet.compiler.compile import REVEALS
from privet.errors import Misuse
from privet.service.repository.offering import SERVED, in_sessions, limits, offered
from privet.service.schema import (
    Flag,
    Integer,
    Number,
    SchemaPart,
    Several,
    Text,
    described,
    entries,
    option,
    read,
)
from privet.suites import PREPARED, Precision, Suite
from privet.suites.options import fields_of

CONFIG_FILE = "config.toml"
MODEL_FILE = "model.onnx"

NEWEST = "newest"
ALL = "all"


ALONE = tuple(name for name, suite_type in SERVED.items() if in_sessions(suite_type))
"""Suites that are offered alone."""


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _widths(width: Callable[[Precision], str]) -> str:
    """What is taken for a width that is left out, by suite."""
    suites_of: dict[str, list[str]] = {}
    for name, suite_type in SERVED.items():
        suites_of.setdefault(width(suite_type.precision), []).append(name)
    return ", ".join(f"{value} in suite {_listed(names)}" for value, names in suites_of.items())


@dataclass(frozen=True)
class _Versions:
    """`newest`, `all`, or a list of numbers."""

    def read(self, value: Any) -> str | tuple[int, ...]:
        if value in (NEWEST, ALL):
            return str(value)
        try:
            return tuple(Several(Integer(1, 10**9), most=100).read(value))
        except ValueError as error:
            raise ValueError(f'"{NEWEST}", "{ALL}", or a list of numbers such as [1, 3]') from error

    def schema(self) -> dict[str, Any]:
        return {"oneOf": [Text((NEWEST, ALL)).schema(), Several(Integer(1, 10**9)).schema()]}


@dataclass(frozen=True)
class _Range:
    """The lowest and the highest number."""

    def read(self, value: Any) -> tuple[float, float]:
        number = Number(-1e9, 1e9)
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError("the lowest and the highest number, such as [0, 1]")
        low, high = (number.read(item) for item in value)
        if low > high:
            raise ValueError("the lowest number first, then the highest")
        return low, high

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}


_SIZES = Several(Integer(1, 2**28), most=8, repeat=True)
"""Lengths of the axes of an input."""


@dataclass(frozen=True)
class _Shapes:
    """A table from names of inputs to the lengths of their axes."""

    def read(self, value: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
        if not isinstance(value, dict):
            raise ValueError("a table such as { image = [1, 3, 64, 64] }")
        return tuple((str(name), _SIZES.read(entry)) for name, entry in value.items())

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": _SIZES.schema()}


@dataclass(frozen=True)
class ModelLimits:
    """Table `[limits]`: what clients may ask of this model."""

    requests_per_minute: int | None = option(
        Integer(1, 10**6),
        "inferences that one client may ask for in a minute, on the average; none but the "
        "service's own if left out. Answers leak a model bit by bit: this is the price of "
        "extracting it",
    )
    queued: int = option(Integer(1, 10**6), "jobs of all clients that may wait or run at once", 200)
    queued_per_client: int = option(
        Integer(1, 10**6), "jobs of one client that may wait or run at once", 50
    )
    notices_per_client: int = option(
        Integer(0, 10**6), "notices of one client, and entries made for them, at once", 20
    )
    timeout: float = option(
        Number(0.1, 86400), "seconds that any request for this model may take, queues included", 600
    )
    memory: str | None = option(
        Text(pattern=r"\d+(\.\d+)? ?([kMGT]i?)?B?", longest=20),
        f"in suite {_listed(ALONE)}: most memory of the model's process, such as `2GB`; half of "
        "what the machine has free when it starts if left out",
    )


@dataclass(frozen=True)
class ModelConfig:
    """What `config.toml` says; every option may be left out, and the file too."""

    description: str = option(Text(longest=500), "a line for people who list the models", "")
    labels: tuple[str, ...] = option(
        Several(Text(), most=10_000), "names of the classes, in order, for the page `/predict`", ()
    )
    features: tuple[str, ...] = option(
        Several(Text(), most=10_000), "names of an input's numbers, in order, for that page", ()
    )
    versions: str | tuple[int, ...] = option(
        _Versions(), 'folders to serve: `"newest"`, `"all"`, or numbers such as `[1, 3]`', NEWEST
    )
    bits: int | None = option(
        Integer(16, 50),
        "width of the ring in bits; if left out "
        f"{_widths(lambda widths: str(widths.bits or 'chosen'))}",
    )
    scale: int | None = option(
        Integer(4, 20),
        "fractional bits of inputs and weights; if left out "
        + _widths(
            lambda widths: " and ".join(
                str(bits or "chosen") for bits in dict.fromkeys((widths.scale, widths.weight_scale))
            )
        ),
    )
    weight_scale: int | None = option(
        Integer(4, 20), "fractional bits of weights; if left out as many as `scale` says"
    )
    batch: int = option(Integer(1, 4096), "samples that one inference computes at once", 1)
    cores: int = option(Integer(1, 4096), "cores that each job of this model gets", 1)
    calibration: str | None = option(
        Text(pattern=r"[\w.-]+\.np[yz]"),
        "`.npy` or `.npz` beside `model.onnx`, or else beside `config.toml`: real samples, one "
        "along the first axis, on which value ranges are measured; random ones if left out, "
        "and results say so",
    )
    input_range: tuple[float, float] | None = option(
        _Range(), "lowest and highest number of an input, for random samples"
    )
    sound: bool = option(
        Flag(),
        "whether the model is refused unless no input within its bound can leave the ring; results "
        "then need no samples",
        False,
    )
    reveal: str = option(
        Text(REVEALS),
        "what clients learn: what the outputs tell anyway; `scores`: also the numbers that the "
        "last steps of the model read, which clients then compute; `label`: labels alone",
        REVEALS[0],
    )
    client_side: bool = option(
        Flag(),
        "whether clients compute what comes before the first private operation, such as scaling "
        "and encoding of categories; these constants are then public",
        False,
    )
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = option(
        _Shapes(),
        "shapes of inputs whose axes the model leaves open, such as `{ image = [1, 3, 64, 64] }`",
        (),
    )
    suites: tuple[str, ...] = option(
        Several(Text(tuple(SERVED))),
        f"suites to offer; those of {_listed(PREPARED)} that the service can run if left out. "
        f"{_listed(ALONE)} stands alone: such a model is asked in sessions, also "
        "[in a browser](../how-to/browser.md)",
    )
    options: Mapping[str, Any] = entries(*limits())
    limits: ModelLimits = field(
        default_factory=ModelLimits,
        metadata=described(SchemaPart(ModelLimits), "what clients may ask"),
    )

    @property
    def types(self) -> tuple[type[Suite], ...]:
        """The suites to offer, as far as the service can run them."""
        return tuple(SERVED[name] for name in self.suites or PREPARED)

    @cached_property
    def session(self) -> Suite | None:
        """The suite of sessions with a process of the model's own, with the owner's options; None
        if clients choose how each job is computed."""
        suite_type = self.types[0]
        if not in_sessions(suite_type):
            return None
        names = [field.name for field in fields_of(suite_type)]
        return suite_type.from_options({k: v for k, v in self.options.items() if k in names})

    def offered(self, of: type[Suite]) -> list[Suite]:
        """How a suite is offered, the way first that is preferred."""
        return offered(of, self.options)


def read_config(folder: Path) -> ModelConfig:
    """The configuration of the model in `folder`; the defaults if it has none. Raises `Misuse` that
    names the file, the option, and what is possible."""
    path = folder / CONFIG_FILE
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ModelConfig()
    except (OSError, ValueError) as error:
        raise Misuse(f"{path} cannot be read as TOML: {error}") from error
    return parse_config(document, str(path))


def parse_config(document: Any, source: str) -> ModelConfig:
    """The configuration in a table; `source` is its name in errors. Raises `Misuse` that names the
    option, and what is possible."""
    config = read(ModelConfig, document, source)
    for suite_type in config.types if config.suites else ():
        is_other = in_sessions(suite_type) or suite_type.precision != config.types[0].precision
        if is_other and len(config.types) > 1:
            raise Misuse(
                f"{source}: a program of suite {suite_type.name} is not one of other suites: offer "
                "it alone, and the model once more for others"
            )
    try:
        if config.session is None:
            _check_offers(config)
    except Misuse as error:
        raise Misuse(f"{source}: {error}") from error
    return config


def _check_offers(config: ModelConfig) -> None:
    for suite_type in config.types if config.suites else ():
        if not config.offered(suite_type):
            listing = ", ".join(
                f"{key} {' '.join(map(str, values))}" for key, values in config.options.items()
            )
            having = [name for name in PREPARED if config.offered(SERVED[name])]
            hint = f": suite {' and '.join(having)} can" if having else ""
            raise Misuse(f"suite {suite_type.name} cannot be offered with {listing}{hint}")
