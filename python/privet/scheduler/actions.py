"""What must happen outside the scheduler; `Scheduler.decide` returns each action once."""

from __future__ import annotations

from dataclasses import dataclass, field

from privet.scheduler.submission import Outcome, PlacedJob


@dataclass(frozen=True)
class Start(PlacedJob):
    """Run `job` now, bound to its cores.

    `request` is the submission that the job serves (of a T_pre that a notice asked for: the
    notice); made `ahead` of any submission, it is an id that the scheduler chose and `client` has
    not asked for it. `material` is the entry that a T_on uses up, none for a T_pre. After
    `limit_seconds` the job is to be killed, and `failed` called.
    """

    limit_seconds: float
    material: str | None = None
    ahead: bool = False


@dataclass(frozen=True)
class Stop:
    """Kill `job`. Its cores stay taken until `finished` or `failed` is called for it."""

    job: str
    reason: str


@dataclass(frozen=True)
class Probe:
    """Have `client`, which seems to listen, call again (`client_polled`): end the calls of it that
    wait."""

    client: str


@dataclass(frozen=True)
class TakeBack:
    """End `job` unless its client has come to it; report it as failed then."""

    job: str


@dataclass(frozen=True)
class Ended:
    """A submission ended. A request is done when all its samples are inferred, a notice when all
    its material is made (it can be referred to from then on, too)."""

    id: str
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True)
class MaterialReady:
    """The entry `material`, made under the submission `id`, lies on `machine`."""

    id: str
    material: str
    machine: str


@dataclass(frozen=True)
class MaterialGone:
    """The entry `material`, for `model`, will never be used: `expired`, to be deleted; `evicted`,
    to make room; `deleted` outside; or, to be left where it is, `machine lost` or `machine drained`
    with what lay there."""

    material: str
    machine: str
    reason: str
    model: str = field(default="", compare=False)


@dataclass(frozen=True)
class Drained:
    """`machine`, which was to be taken out, has nothing more to do and is gone from the view."""

    machine: str


Action = Start | Stop | Probe | TakeBack | Ended | MaterialReady | MaterialGone | Drained
