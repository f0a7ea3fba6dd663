"""What clients may say: bodies of calls and parameters in addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privet.service.repository.offering import wishes
from privet.service.schema import Flag, Integer, Number, Text, entries, option

MOST_SAMPLES = 65_536

_NUMBER = re.compile(r"-?[0-9]{1,15}")
_REAL = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}")
_ID = Text(pattern=r"[0-9a-z-]+", longest=64)


@dataclass(frozen=True)
class Ask:
    """What a notice and a request have in common: the version, and how it is to be computed."""

    version: int | None = option(Integer(1, 10**9), "the model's version; the newest if left out")
    program: str | None = option(
        Text(pattern=r"[0-9a-f]{64}", longest=64),
        "the program's hash that the client expects; another is refused",
    )
    wish: Mapping[str, str | int] = entries(*wishes())
    samples: int = option(
        Integer(1, MOST_SAMPLES), "samples; more than the program's batch make several jobs", 1
    )
    timeout: float | None = option(
        Number(0.1, 86400), "seconds after which the job is to end, whatever became of it"
    )
    key: str | None = option(
        Text(pattern=r"[0-9a-zA-Z-]+", longest=64),
        "the client's own name for this call: sent again, because no answer came, it finds the job "
        "that it made before",
    )


@dataclass(frozen=True)
class NoticeBody(Ask):
    """An advance notice: material is made, so that a request that names it need not wait."""


@dataclass(frozen=True)
class RequestBody(Ask):
    """A request for an inference."""

    notice: str | None = option(_ID, "id of the notice that announced this request")
    unprepared: bool = option(
        Flag(),
        "whether to do without material, where the suite can: it is made as the network runs",
        False,
    )
    ready: bool = option(
        Flag(),
        "whether to use material that lies ready and nothing else: without any the call is refused",
        False,
    )
    fetch: bool = option(
        Flag(),
        "whether to fetch the encrypted weights that the client keeps for preparations, and infer "
        "nothing",
        False,
    )
    deadline: float | None = option(
        Number(0.0, 86400), "seconds within which an answer would be welcome; policies may use it"
    )
    wait: float = option(
        Number(0, 60),
        "seconds to hold the answer until the client can act on the job; then it has `news`, as "
        "`GET /v2/jobs`; at once and without them if left out",
        0.0,
    )
    seen: int | None = option(
        Integer(0, 2**53), "the sequence number of the last update; these are the changes after it"
    )


@dataclass(frozen=True)
class Wait:
    """Parameters of a long poll."""

    wait: float = option(
        Number(0, 60),
        "seconds to wait for updates beyond `seen` that the client can act on; at once if left out",
        0.0,
    )
    seen: int = option(Integer(0, 2**53), "the sequence number of the last answer", 0)


@dataclass(frozen=True)
class WaitForJobs(Wait):
    """Parameters of a long poll for all jobs."""

    ahead: int = option(
        Integer(0, 1),
        "1 if the client would also make material that it has not asked for: then jobs of kind "
        "`ahead` may come, which count as its stock",
        0,
    )


@dataclass(frozen=True)
class NoParameters:
    """No parameters at all."""


def parameters(query: Mapping[str, str]) -> dict[str, Any]:
    """The parameters in an address, numbers read as such."""
    return {name: _value(text) for name, text in query.items()}


def _value(text: str) -> Any:
    if _NUMBER.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else text
