"""Items of slytHErin: suite `ckks`, one server and cohorts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet import suites
from privet.compiler.compile import compile
from privet.planner.advise import plan
from privet.research.papers.datasets import MNIST
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.workplace import Workplace
from privet.runtime import Run
from privet.runtime import run as run_locally
from privet.runtime.machine import machine_memory
from privet.suites import Ckks

BATCH = 83
"""The paper's best batch of NN5."""

LARGE = 4096
SWEEP = (1, 8, 32, BATCH, 128, 512)
RATE, BANDWIDTH = 100.0, 1e10
"""Samples a second, and bits, that a batch is proposed for."""

DEEP_BATCH = 585
COHORTS = {3: 292, 5: 292, 10: 128, 20: 64}
"""Members, and the batch of NN20: the paper's 292 as long as its noise can be covered by flooding,
which larger cohorts and deeper networks reach with fewer samples to a ciphertext."""

DEEP_COHORT = 128
LINK = "40ms,1000Mbit"
"""The paper's delay of 20 ms each way between members, and its bandwidth."""

LAYERED = "6GB"
"""Memory of the coordinator of ten members or more: their processes share it with it."""

DIGITS = 512
"""Of the user's MNIST: how many digits are encrypted."""

DIGIT = 16.0
"""The brightest pixel of scikit-learn's digits."""

DEEPEST, LAYERS = "nn50", 51
PIXELS = (0.0, 1.0)


def _nn5(at: Workplace, batch: int) -> Run:
    return at.run("nn5", Ckks(), batch)


def table_1(at: Workplace) -> Grid:
    single, full = (_nn5(at, batch).online.seconds for batch in (1, 2 if at.quick else BATCH))
    batches = -(-LARGE // BATCH)
    return Grid(("batch 1", "batch 83", "batch 4096"), {"Privet": [single, full, batches * full]})


def figure_4(at: Workplace) -> Grid:
    """The sweep, and the batch that `privet plan` proposes from it for more samples than one core
    keeps up with."""
    sizes = (1, 2) if at.quick else SWEEP
    suite = Ckks()
    records = at.records(["nn5"], [suite.setting], sizes)
    best = plan(
        at.model("nn5"), suite=suite, batch=sizes, rate=RATE, rtt=0.0, bandwidth=BANDWIDTH,
        records=at.study,
    ).recommended  # fmt: skip
    rows: dict[str, Sequence[Cell]] = {}
    for record in records:
        seconds = record.online.seconds
        proposed = "yes" if best is not None and best.batch == record.batch else None
        rows[f"batch {record.batch}"] = [seconds, 1000 * seconds / record.batch, proposed]
    largest = records[-1]
    times, seconds = LARGE // largest.batch, largest.online.seconds
    rows[f"batch {LARGE}, as {times} of {largest.batch}"] = [
        times * seconds,
        1000 * seconds / largest.batch,
        None,
    ]
    return Grid(("seconds", "ms a sample", "`privet plan` proposes"), rows)


def _cohort(at: Workplace, members: int, batch: int) -> Run:
    memory = LAYERED if members >= 10 else None
    return at.run("nn20", Ckks.cohort(members), batch, memory)


def table_2(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for members, batch in COHORTS.items():
        seconds = _cohort(at, members, batch).online.seconds
        model = "layer by layer" if members >= 10 else "before"
        rows[f"{members} parties, batch {batch}"] = [seconds, batch / seconds, model]
    return Grid(("seconds", "samples/s", "model sent"), rows)


def figure_5(at: Workplace) -> Grid:
    runs = {"central, one server": at.run("nn20", Ckks(flooding="light"))}
    runs |= {f"together, {count} parties": _cohort(at, count, 1) for count in (3, 5, 10)}
    rows: dict[str, Sequence[Cell]] = {}
    for name, run in runs.items():
        refreshes = None if run.plan is None else run.plan["refreshes"]
        rows[name] = [run.online.seconds, run.online.cpu_seconds, refreshes]
    return Grid(("seconds", "CPU s", "refreshes"), rows)


def links(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    model, cohorts = ("nn5", (2,)) if at.quick else ("nn20", (3, 5, 10))
    for members in cohorts:
        memory = LAYERED if members >= 10 else None
        loopback, remote = (
            at.run(model, Ckks.cohort(members), 1, memory, link) for link in (None, LINK)
        )
        megabytes = (remote.online.bytes_client + remote.online.bytes_server) / 1e6
        cells = loopback.online.seconds, remote.online.seconds, remote.online.rounds, megabytes
        rows[f"{members} parties"] = cells
    return Grid(("loopback, s", "links, s", "rounds", "MB"), rows)


def table_3(at: Workplace) -> Grid:
    cases = {
        "1: encrypted data": (Ckks(flooding="light"), DEEP_BATCH),
        "2: encrypted model": (Ckks(scenario="encrypted-model"), DEEP_BATCH),
        "3: both, 3 parties": (Ckks.cohort(3), DEEP_COHORT),
    }
    rows: dict[str, Sequence[Cell]] = {}
    for name, (suite, batch) in cases.items():
        memory = LAYERED if suite.collective else None
        server_bytes = 0.0 if memory else _server_bytes(at, suite, batch)
        row = f"{name}, batch {batch}"
        if server_bytes > machine_memory():
            rows[row] = [f"needs {server_bytes / 1e9:.0f} GB", None, None, None]
            continue
        seconds = at.run(DEEPEST, suite, batch, memory).online.seconds
        rows[row] = [seconds, seconds / batch, batch / seconds, seconds / LAYERS]
    return Grid(("seconds", "s a sample", "samples/s", "s a layer"), rows)


def _server_bytes(at: Workplace, suite: Ckks, batch: int) -> float:
    """What the larger party's memory has to hold, by the plan."""
    numbers = suite.precision
    compiled = compile(
        at.model(DEEPEST),
        bits=numbers.bits,
        scale=numbers.scale,
        batch=batch,
        input_range=PIXELS,
    )
    public = compiled.program.to_public_bytes()
    plan = suites.plan_ckks(public, suite.scenario, suite.flooding, suite.parties)
    return float(max(plan["memory_bytes_server"], plan["memory_bytes_client"]))


def accuracy(at: Workplace) -> Grid:
    """Polynomial activations on samples that training did not see: of the zoo's digits models, and
    of the user's MNIST."""
    archive = np.load(at.trained("digits-smooth/held-out.npz"))
    pixels = (archive["raw"] / DIGIT).astype(np.float32)
    cases = {
        f"digits, {activation}": (
            at.trained(f"digits-smooth/{activation}.onnx"),
            pixels[:, None],
            archive["labels"],
        )
        for activation in ("square", "silu")
    }
    if (path := at.user_model("nn5", MNIST)) is not None:
        samples = at.user_samples(MNIST, limit=DIGITS)
        cases[f"NN5, {DIGITS} digits of MNIST"] = (path, samples.images, samples.labels)
    rows: dict[str, Sequence[Cell]] = {}
    for title, (path, inputs, labels) in cases.items():
        at.report(title)
        count = 4 if at.quick else len(labels)
        run = run_locally(path, [inputs[:count]], suite=Ckks(), batch=count, input_range=PIXELS)
        (key,) = run.outputs
        encrypted, clear = (
            np.asarray(outputs[key], float).reshape(count, -1).argmax(1)
            for outputs in (run.outputs, run.reference)
        )
        shares = (clear == labels[:count], encrypted == labels[:count], clear == encrypted)
        rows[title] = [100 * float(np.mean(share)) for share in shares]
    return Grid(("in the clear %", "encrypted %", "label agreement %"), rows)
