"""What is recorded: models of the zoo under a suite and its options.

`start` and `plan_of` alone know how a run and a plan are asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import privet
from privet import suites, zoo
from privet._native import Plan
from privet.compiler.compile import Compiled, compile

MODELS = Path(__file__).parents[2] / "zoo" / "models"


@dataclass(frozen=True)
class Case:
    """A model under a suite and its options, for `batch` samples.

    `file` is where it is recorded. `units` is how far outputs may lie from those recorded, in units
    of the last place: none where a suite promises the fixed-point executor's integers.
    `bytes_within` is by which part the bytes of two runs may differ, where messages hold numbers of
    random length. A case that is `slow` takes more than a few seconds.
    """

    file: str
    name: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1
    units: int = 0
    bytes_within: float = 0.0
    slow: bool = False

    @property
    def suite(self) -> str:
        """The suite that runs it."""
        return str(self.options.get("suite", "gmw"))

    @property
    def config(self) -> suites.Suite:
        """The suite with its options."""
        options = {name: value for name, value in self.options.items() if name != "suite"}
        return suites.from_options(self.suite, options)

    @property
    def key(self) -> str:
        """What it is called in its file."""
        return f"{self.model}: {self.name}"


def start(case: Case) -> privet.Run:
    """Runs both parties, and a dealer if need be, as processes of this machine."""
    program = compiled(case.model, case.suite, case.batch)
    (entry,) = program.program.inputs
    shape = program.program.values[entry.value].shape
    samples = np.random.default_rng(7).uniform(0, 1, shape).astype(np.float32)
    if "packed" not in case.options:
        return privet.run(program, [samples], suite=case.config)
    path = MODELS / f"{case.model}.onnx"
    return privet.run(path, [samples], suite=case.config, input_range=(0, 1), batch=case.batch)


def plan_of(case: Case) -> Plan | None:
    """The plan of a suite that makes material ahead of time; None in another."""
    if not isinstance(case.config, suites.MaterialSuite):
        return None
    program = compiled(case.model, case.suite, case.batch).program
    return case.config.native(program.to_public_bytes())


@cache
def compiled(model: str, suite: str, batch: int) -> Compiled:
    """A model of the zoo as a suite takes it, with ranges measured between 0 and 1."""
    widths = vars(suites.suite_type(suite).precision)
    committed = MODELS / f"{model}.onnx"
    if committed.exists():
        return compile(committed, input_range=(0, 1), batch=batch, **widths)
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        return compile(zoo.build(model, folder), input_range=(0, 1), batch=batch, **widths)


ONE_BIT: dict[str, Any] = {"truncation": "one-bit"}
DEALT: dict[str, Any] = {"correlations": "dealer", "rounds": "log"}
FSS: dict[str, Any] = {"suite": "fss"}
MALICIOUS: dict[str, Any] = {"suite": "fss", "security": "malicious"}
BFV: dict[str, Any] = {"suite": "stream", "cipher": "bfv"}
PAILLIER: dict[str, Any] = {"suite": "stream", "cipher": "paillier"}

GMW: dict[str, dict[str, Any]] = {
    "linear": {"rounds": "linear"},
    "log": {"rounds": "log"},
    "blocks": {"rounds": "blocks"},
    "prime": {"rounds": "log", "field": "prime"},
    "one-shot": {"rounds": "log", "linear": "online"},
    "one-shot, unprepared": {"rounds": "log", "linear": "online", "unprepared": True},
    "dealt": DEALT,
}
LARGER = ("m1", "m2", "hinet", "breast", "heart", "cardio", "mnist-1", "mnist-2", "mnist-3")

TRUNCATION_UNITS = 48
"""Units of the last place that two runs with one-bit truncations may differ by: 10 were seen."""

REAL_UNITS = 512
"""Units of 2^-16 that two runs of suite `ckks` may differ by: 100 were seen."""

REAL_BYTES = 1e-4
"""The part by which bytes of suite `ckks` may differ: a cohort's members tell each other numbers in
decimal digits, some 20 bytes more or less of 100 MB."""


def _cases() -> Iterator[Case]:
    for model in ("digits-cnn", "breast-mlp"):
        for name, options in GMW.items():
            yield Case("gmw", name, model, options, slow=model != "digits-cnn")
    for name in ("log", "one-shot, unprepared", "dealt"):
        options = {**GMW[name], **ONE_BIT}
        yield Case("gmw", f"{name}, one-bit", "digits-cnn", options, units=TRUNCATION_UNITS)
    yield Case("gmw", "log, batch of 3", "digits-cnn", GMW["log"], batch=3)
    for name in ("log", "dealt"):
        yield Case("gmw", name, "digits-vit", GMW[name])
    for model in LARGER:
        yield Case("gmw", "log", model, GMW["log"], slow=True)
        yield Case("gmw", "prime", model, GMW["prime"], slow=True)
    for family, options in (("semi-honest", FSS), ("malicious", MALICIOUS)):
        yield Case("fss", family, "digits-cnn", options)
        one_bit = {**options, **ONE_BIT}
        yield Case("fss", f"{family}, one-bit", "digits-cnn", one_bit, units=TRUNCATION_UNITS)
        if family == "semi-honest":
            yield Case("fss", family, "digits-vit", options)
        for model in ("breast-mlp", *LARGER):
            yield Case("fss", family, model, options, slow=True)
    for cipher, options in (("bfv", BFV), ("paillier", PAILLIER)):
        yield Case("stream", cipher, "heart", options)
        for model in ("breast", "cardio"):
            yield Case("stream", cipher, model, options, slow=True)
    for model in ("digits-cnn", "mnist-1", "mnist-2", "mnist-3"):
        yield Case("stream", "bfv", model, BFV, slow=True)
    yield Case("stream", "paillier, packed", "breast-mlp", {**PAILLIER, "packed": True}, batch=5)
    for scenario in ("encrypted-data", "encrypted-model", "collective"):
        options = {"suite": "ckks", "scenario": scenario, "parties": 3}
        for model in ("digits-smooth/square", "nn5"):
            slow = model == "nn5"
            yield Case("ckks", scenario, model, options, 1, REAL_UNITS, REAL_BYTES, slow)


CASES = list(_cases())
FILES = tuple(dict.fromkeys(case.file for case in CASES))
