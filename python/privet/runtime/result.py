"""A private prediction, and how it is read from what the protocol revealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.compiler.executor import decode_output
from privet.compiler.executor.samples import trim
from privet.compiler.program import Program, caveat
from privet.runtime.route import Dry
from privet.suites import Mode, Suite, Weakness
from privet.suites.costs import LayerCost, PhaseCost, read_report
from privet.suites.text import size

Array = npt.NDArray[np.generic]

Inference = tuple[str, list[bytes], str]
"""An entry that was spent, what the server helped to reveal with it, and the report."""

EntryCost = tuple[PhaseCost | None, tuple[LayerCost, ...]]
"""What an entry cost to make, in all and by layer; None and nothing if somebody else made it."""


class Promised:
    """What comes of a suite, with every choice of it made, and so what it promises.

    It prints as a few lines; shapes stand for arrays.
    """

    config: Suite
    outputs: dict[str, Array]
    samples: int
    calibration: str
    offline: PhaseCost | None
    online: PhaseCost

    def _summary(self, title: str, *lines: str) -> str:
        """A title, what came out, `lines`, costs, and what the user must know of it."""
        choices = [
            f"{field.name} {value}"
            for field in fields(self.config)
            if (value := getattr(self.config, field.name)) is not None and value != field.default
        ]
        count = "" if self.samples == 1 else f", {self.samples} samples"
        outputs = (f"{name} {list(array.shape)}" for name, array in self.outputs.items())
        cautions = [f"trust: {self.trust}"] if self.trust else []
        cautions += [f"weaker than the default: {weakness.meaning}" for weakness in self.weaknesses]
        if caution := caveat(self.calibration):
            cautions.append(f"not calibrated: {caution}")
        body = [
            f"outputs: {', '.join(outputs)}",
            *lines,
            _cost("offline", self.offline),
            _cost("online", self.online),
            *cautions,
        ]
        suite = ", ".join([self.config.name, *choices])
        return "\n  ".join([f"<{title} in suite {suite}{count}", *body]) + ">"

    @property
    def trust(self) -> str | None:
        """What it rests on beyond the parties' following the protocol; None if on nothing."""
        return self.config.trust.caution

    @property
    def mode(self) -> Mode:
        """Every choice that a server may forbid."""
        return self.config.mode

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """In which ways it was made with less than what the default mode promises."""
        return self.config.weaknesses


@dataclass(frozen=True)
class Result(Promised):
    """A private prediction.

    `outputs` are reals by name, or the labels and maps that the model's head makes of them;
    `integers` are the fixed-point numbers they come from, in the program's order; of a batch, both
    hold an entry along the first axis for each of the `samples` given. `material` is empty if
    nothing was prepared. `offline` is the cost of the material that was spent, wherever it was
    made; zero if there was none, None if another client object made it.

    `config` is the suite with every choice made, as that material was made for it. `dry` tells what
    was done if no material was ready; None if some was.

    `calibration` is what the program's ranges rest on: `samples` that its owner gave, a proof
    (`sound`), or `random` inputs, which leave an answer that may be wrong without a sign. `plan` is
    that of suite `ckks`, as `privet.suites.plan_ckks` tells it.
    """

    outputs: dict[str, Array]
    integers: tuple[Array, ...]
    material: str
    config: Suite
    calibration: str
    dry: Dry | None
    offline: PhaseCost | None
    online: PhaseCost
    layers: tuple[LayerCost, ...]
    samples: int = 1
    plan: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        notes = [f"no material was ready: {self.dry.action}"] if self.dry else []
        return self._summary("Result", *notes)


def _cost(phase: str, cost: PhaseCost | None) -> str:
    if cost is None:
        return f"{phase}: prepared earlier"
    traffic = f"client sends {size(cost.bytes_client)}, server {size(cost.bytes_server)}"
    if cost.bytes_dealer:
        traffic += f", dealer {size(cost.bytes_dealer)}"
    text = f"{phase}: {cost.seconds:.3f} s, {traffic}, rounds {cost.rounds}"
    if cost.bytes_setup:
        setup = f"{size(cost.bytes_setup)} of encrypted weights in {cost.seconds_setup:.3f} s"
        text += f"; before that, once: {setup}"
    return text


def read_result(
    program: Program,
    suite: Suite,
    inference: Inference,
    samples: int,
    *,
    cost: EntryCost = (None, ()),
    dry: Dry | None = None,
) -> Result:
    """The prediction for `samples` samples in what was revealed of the program's batch."""
    material, revealed, report = inference
    integers = tuple(
        np.frombuffer(data, dtype="<i8").reshape(program.values[output.value].shape)
        for data, output in zip(revealed, program.outputs, strict=True)
    )
    outputs = decode_output(program, integers)
    arrays = trim(program, list(outputs.values()), samples)
    offline, offline_layers = cost
    online, online_layers = read_report(report)
    return Result(
        outputs=dict(zip(outputs, arrays, strict=True)),
        integers=tuple(trim(program, integers, samples)),
        material=material,
        config=suite,
        calibration=program.calibration,
        dry=dry,
        offline=offline,
        online=online,
        layers=offline_layers + online_layers,
        samples=samples,
    )


def join_results(results: Sequence[Result]) -> Result:
    """One result of several, of one program, whose samples follow one another.

    `material` names all entries, with commas between; costs are added up, layer by layer in the
    order of the results.
    """
    first = results[0]
    if len(results) == 1:
        return first
    offline = [result.offline for result in results if result.offline is not None]
    return Result(
        outputs={
            name: np.concatenate([result.outputs[name] for result in results])
            for name in first.outputs
        },
        integers=tuple(
            np.concatenate(arrays)
            for arrays in zip(*(result.integers for result in results), strict=True)
        ),
        material=",".join(result.material for result in results),
        config=first.config,
        calibration=first.calibration,
        dry=first.dry,
        offline=reduce(add, offline) if len(offline) == len(results) else None,
        online=reduce(add, (result.online for result in results)),
        layers=tuple(layer for result in results for layer in result.layers),
        samples=sum(result.samples for result in results),
    )


def take_samples(result: Result, samples: slice) -> Result:
    """Some of the samples of a batch, with what the whole of it cost."""
    return replace(
        result,
        outputs={name: array[samples] for name, array in result.outputs.items()},
        integers=tuple(array[samples] for array in result.integers),
        samples=len(range(result.samples)[samples]),
    )
