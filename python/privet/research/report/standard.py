"""The standard study: what `privet study measure` runs unless it is told what.

Every suite on models that it runs, batches up to 128, and links that delay; less than an hour on
two cores. The full study adds what takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.planner.cases import Case, find_models, plan_cases
from privet.planner.network import parse_network
from privet.planner.setting import settings

SWEEP = ("gmw-blocks", "gmw-dealer-blocks", "fss")
"""Settings whose batches are swept."""

HELD_OUT = ("gmw-log", "gmw-blocks", "gmw-dealer-blocks", "fss", "fss-malicious")

LINKS = ("40ms,200mbps", "5ms,1gbps")
"""Networks that validation runs over."""


INPUT_RANGES = {"nn20": (0.0, 1.0)}
"""What inputs of a model are like, where that is not standard normal."""


@dataclass(frozen=True)
class Part:
    """Every one of `models` under every one of `suites` for every one of `batches`, on the loopback
    and over `links`; a case, all `repeats` of it, takes about `seconds` on two cores."""

    models: tuple[str, ...]
    suites: tuple[str, ...]
    seconds: float
    batches: tuple[int, ...] = (1,)
    links: tuple[str, ...] = ()
    repeats: int = 1


STANDARD = (
    Part(("mnist-1", "m1"), ("gmw", "gmw-dealer", "fss", "fss-malicious"), 5, repeats=3),
    Part(("m2", "resnet20"), ("gmw", "gmw-dealer", "fss", "fss-malicious"), 8, repeats=3),
    Part(("squeezenet",), ("gmw", "gmw-dealer", "fss"), 14),
    Part(("resnet50",), ("gmw", "gmw-dealer", "fss"), 32),
    Part(("nn5",), ("ckks",), 8, repeats=3),
    Part(("m1-silu",), ("ckks",), 20),
    Part(("mnist-1",), ("ckks",), 50),
    Part(("nn5",), ("ckks-collective-3",), 12),
    Part(("nn20",), ("ckks-collective-3",), 60),
    Part(("mnist-1", "m1"), ("stream", "stream-3072"), 8),
    Part(("resnet20",), ("stream",), 160),
    Part(("mnist-1", "m1", "m2", "resnet20"), ("stream-bfv",), 6, repeats=3),
    Part(("mnist-1", "m1"), ("stream-packed",), 12, batches=(1, 8, 32, 53)),
    Part(("m1",), SWEEP, 4, batches=(2, 4, 8, 16, 32, 64)),
    Part(("m1",), SWEEP, 10, batches=(128,)),
    Part(("resnet20",), SWEEP, 12, batches=(8, 32)),
    Part(("resnet20",), SWEEP, 90, batches=(128,)),
    Part(("nn5",), ("ckks",), 8, batches=(8, 32, 128)),
    Part(("m1",), ("stream-bfv",), 4, batches=(2, 4, 8, 16, 32, 64, 128)),
    Part(("resnet20",), ("stream-bfv",), 40, batches=(8, 32)),
    Part(("m2", "mnist-2"), HELD_OUT, 9, links=LINKS, repeats=3),
    Part(("mlp-square", "m1-silu"), ("ckks",), 30, links=LINKS),
    Part(("mnist-2",), ("stream",), 8, links=LINKS),
    Part(("mnist-2", "resnet20"), ("stream-bfv",), 9, links=LINKS, repeats=3),
)
"""The standard study."""

FURTHER = (
    Part(("squeezenet", "resnet50"), ("fss-malicious",), 120),
    Part(("m2",), SWEEP, 60, batches=(2, 4, 8, 16, 32, 64, 128)),
    Part(("resnet20",), SWEEP, 30, batches=(2, 4, 16, 64)),
    Part(("squeezenet",), SWEEP, 120, batches=(2, 4, 8)),
    Part(("resnet50",), SWEEP, 120, batches=(2, 4)),
    Part(("m1", "resnet20"), ("fss-malicious",), 60, batches=(8, 32)),
    Part(("nn20",), ("ckks",), 300),
    Part(("mlp-square",), ("ckks-collective-3",), 15),
    Part(("nn5",), ("ckks-collective-2", "ckks-collective-10"), 30),
    Part(("mnist-2", "m1"), ("stream",), 60, batches=(2, 8)),
)
"""What the full study runs besides."""


def standard_cases(folder: Path, *, full: bool = False, repeats: int | None = None) -> list[Case]:
    """Cases of the standard or the full study, each once; models are built into `folder`.
    `repeats` takes the place of each part's own."""
    found: dict[str, Case] = {}
    for part in (*STANDARD, *(FURTHER if full else ())):
        for case in _cases(part, folder, repeats or part.repeats):
            found.setdefault(case.file_name, case)
    return list(found.values())


def validation_cases(folder: Path, suites: Sequence[str] = ()) -> list[Case]:
    """Those cases of the standard study that are run over links, with the same on the loopback;
    with `suites` theirs alone."""
    wanted = settings(suites)
    return [
        case
        for part in STANDARD
        if part.links
        for case in _cases(part, folder, part.repeats)
        if not wanted or case.setting in wanted
    ]


def _cases(part: Part, folder: Path, repeats: int) -> Sequence[Case]:
    return [
        case
        for name, model in zip(part.models, find_models(part.models, folder), strict=True)
        for case in plan_cases(
            [model],
            settings(part.suites),
            part.batches,
            (None, *(parse_network(link) for link in part.links)),
            repeats,
            part.seconds * repeats / part.repeats,
            INPUT_RANGES.get(name),
        )
    ]
