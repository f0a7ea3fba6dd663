"""Items of SecONNds: SqueezeNet in suite `gmw`, summed by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from privet.compiler.compile import compile
from privet.research.papers.datasets import IMAGENET, Array
from privet.research.papers.paper import Cell, Grid
from privet.research.papers.workplace import Peer, Workplace
from privet.runtime import Run
from privet.runtime import run as run_locally
from privet.suites import Costing, Gmw
from privet.suites.costs import LayerCost

MIB = 1 << 20

KAPPA = 128
"""Bits of security, and of a row of SoftSpokenOT with subspaces of one bit."""

MODES = {
    "exact, log (SecONNds-P (LR))": Gmw(rounds="log"),
    "exact, linear (SecONNds-P)": Gmw(rounds="linear"),
    "one-bit, log (SecONNds (LR))": Gmw(rounds="log", truncation="one-bit"),
    "one-bit, linear (SecONNds)": Gmw(rounds="linear", truncation="one-bit"),
}
"""Privet's modes, and the paper's that each stands beside."""

OPERATIONS = {
    "truncation": ("truncate",),
    "ReLU": ("relu",),
    "max pooling": ("max_pool2d",),
    "average pooling": ("avg_pool2d",),
    "extension": ("extend",),
    "openings and outputs": ("open", "reveal"),
}
"""Operators by what the paper calls them; the last two are not in its table."""

CHEETAH = {
    "ReLU": ("less", "multiply"),
    "max pooling": ("reduce_window",),
    "average pooling": ("reduce",),
}
"""SPU's operations by what the paper calls them; its truncations are within convolutions."""

COMPARISONS = 1 << 13
PHOTOS, PHOTO_BATCH = 32, 4
"""Of the user's ImageNet: how many of the validation images, and how many at a time."""

SIZES = (256, 1024, 4096)


def _model(at: Workplace) -> str:
    return "m1" if at.quick else "squeezenet"


def _bytes(layers: Iterable[LayerCost]) -> int:
    return sum(layer.bytes_client + layer.bytes_server for layer in layers)


def _seconds(layers: Iterable[LayerCost]) -> float:
    return sum(layer.seconds for layer in layers)


def _of(run: Run, phase: str, test: Callable[[LayerCost], bool]) -> list[LayerCost]:
    return [layer for layer in run.layers if layer.phase == phase and test(layer)]


def table_1(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for size in SIZES[:1] if at.quick else SIZES:
        costing = Gmw(rounds="linear").cost(compile(_dense(size), input_range=(-1, 1)).program, 1)
        offline, online = costing.offline, costing.online
        rows[f"Privet, N = {size}"] = [
            float(offline.rounds),
            f"{(offline.bytes_client + offline.bytes_server) / 1e6:.2f} MB",
            float(online.rounds),
        ]
    return Grid(("offline rounds", "offline traffic", "online rounds"), rows)


def _dense(size: int) -> onnx.ModelProto:
    weights = np.random.default_rng(0).normal(0, size**-0.5, (size, size)).astype(np.float32)
    return _onnx(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        size,
        [onnx.numpy_helper.from_array(weights, "w")],
    )


def _onnx(nodes: list[Any], size: int, constants: list[Any]) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def table_2(at: Workplace) -> Grid:
    path = at.models / "relus.onnx"
    onnx.save(_onnx([helper.make_node("Relu", ["x"], ["y"])], COMPARISONS, []), path)
    rows: dict[str, Sequence[Cell]] = {}
    modes = {name: suite for name, suite in MODES.items() if not name.startswith("exact")}
    for name, suite, transfers in (
        (name, suite, kind) for name, suite in modes.items() for kind in ("soft-spoken", "silent")
    ):
        run = at.run(path, replace(suite, transfers=transfers))
        bits = 8 * (_total(run.offline) + _total(run.online)) / COMPARISONS
        online = 1000 * run.online.seconds
        rows[f"Privet, {name}, {transfers}"] = [bits, online + 1000 * run.offline.seconds, online]
    if (peer := at.peer(path)) is not None:
        milliseconds = 1000 * peer.seconds
        rows[_peer_name(peer)] = [8 * peer.bytes / COMPARISONS, milliseconds, milliseconds]
    return Grid(("bits sent", "ms in all", "ms online"), rows)


def _peer_name(peer: Peer) -> str:
    return f"SPU {peer.version}, Cheetah"


def _total(phase: Any) -> int:
    return int(phase.bytes_client + phase.bytes_server)


def table_3(at: Workplace) -> Grid:
    runs = {name: at.run(_model(at), suite) for name, suite in MODES.items()}
    rows: dict[str, list[Cell]] = {name: [] for name in OPERATIONS}
    for run in runs.values():
        for name, operators in OPERATIONS.items():
            layers = _of(run, "online", lambda layer, kinds=operators: layer.operator in kinds)  # type: ignore[misc]
            rows[name] += [_seconds(layers), _bytes(layers) / MIB]
    columns = [word for name in runs for word in (f"{name} s", "MiB")]
    if (peer := at.peer(_model(at))) is not None:
        columns += [f"{_peer_name(peer)} s", "MiB"]
        for name, cells in rows.items():
            seconds, traffic = peer.part(*CHEETAH.get(name, ()))
            cells += [seconds, traffic / MIB] if name in CHEETAH else [None, None]
    return Grid(tuple(columns), rows)


def table_4(at: Workplace) -> Grid:
    rows: dict[str, list[Cell]] = {}
    program = compile(at.model(_model(at))).program
    for name, suite in MODES.items():
        count = _transfers(suite.cost(program, 1)) / 1e6
        for transfers in ("soft-spoken", "silent"):
            run = at.run(_model(at), replace(suite, transfers=transfers))
            ot_layers = _of(run, "offline", lambda layer: layer.operator == "ot")
            rows[f"{name}, {transfers}"] = [count, _seconds(ot_layers), _bytes(ot_layers) / MIB]
    return Grid(("millions", "seconds", "MiB"), rows)


def _transfers(costing: Costing) -> float:
    """How many OTs an entry takes: the first extension sends `KAPPA` bits for each."""
    first = costing.extensions[0]
    return 8 * (first.bytes_client + first.bytes_server) / KAPPA


def _linear(run: Run) -> tuple[float, float, float]:
    """Seconds offline and online, and MiB, of linear layers."""
    offline = _of(run, "offline", lambda layer: layer.operator != "ot")
    online = _of(run, "online", lambda layer: layer.operator in ("conv2d", "dense", "open"))
    return _seconds(offline), _seconds(online), _bytes([*offline, *online]) / MIB


def table_5(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for weights in ("prepared", "none"):
        suite = replace(MODES["exact, linear (SecONNds-P)"], weights=weights)
        rows[f"weights {weights}"] = _linear(at.run(_model(at), suite))
    if (peer := at.peer(_model(at))) is not None:
        seconds, traffic = peer.part("convolution")
        rows[_peer_name(peer)] = [0.0, seconds, traffic / MIB]
    return Grid(("offline s", "online s", "MiB"), rows)


def figure_2(at: Workplace) -> Grid:
    rows: dict[str, Sequence[Cell]] = {}
    for name, suite in MODES.items():
        run = at.run(_model(at), suite)
        offline, online, mib = _linear(run)
        compared = _of(run, "offline", lambda layer: layer.operator == "ot")
        compared += _of(run, "online", lambda layer: layer.operator in ("relu", "max_pool2d"))
        rows[name] = _parts(
            (_seconds(compared), _bytes(compared)),
            (offline + online, mib * MIB),
            (run.offline.seconds + run.online.seconds, _total(run.offline) + _total(run.online)),
        )
    if (peer := at.peer(_model(at))) is not None:
        rows[_peer_name(peer)] = _parts(
            peer.part(*CHEETAH["ReLU"], *CHEETAH["max pooling"]),
            peer.part("convolution"),
            (peer.seconds, peer.bytes),
        )
    kinds = ("comparisons", "convolutions", "the rest")
    return Grid(
        tuple(f"{measure}: {kind}" for measure in ("time", "traffic") for kind in kinds), rows
    )


def _parts(
    compared: tuple[float, float], linear: tuple[float, float], whole: tuple[float, float]
) -> list[Cell]:
    """Shares in % of seconds, then of bytes: of comparisons, convolutions and what is left."""
    cells: list[Cell] = []
    for first, second, all_of in zip(compared, linear, whole, strict=True):
        shares = 100 * first / all_of, 100 * second / all_of
        cells += [*shares, 100 - sum(shares)]
    return cells


def _whole(at: Workplace, model: str, names: Iterable[str]) -> Grid:
    return _grid({name: at.run(model, MODES[name]) for name in names})


def _grid(runs: Mapping[str, Run]) -> Grid:
    """Whole inferences, a row each."""
    rows: dict[str, Sequence[Cell]] = {}
    for name, run in runs.items():
        traffic = (_total(run.offline) + _total(run.online)) / MIB
        rows[name] = [
            run.offline.seconds,
            run.online.seconds,
            traffic,
            _total(run.online) / MIB,
            float(run.online.rounds),
        ]
    return Grid(("offline s", "online s", "MiB", "online MiB", "rounds online"), rows)


def figure_5(at: Workplace) -> Grid:
    return _beside_peer(at, _model(at))


def links(at: Workplace) -> Grid:
    """SqueezeNet over links that delay for real; depth and OT extension follow the link."""
    suites = {"exact": Gmw(), "one-bit": Gmw(truncation="one-bit")}
    runs = [(link, name) for link in ("lan", "wan") for name in suites]
    return _grid(
        {f"{name}, {link}": at.run(_model(at), suites[name], link=link) for link, name in runs}
    )


def small(at: Workplace) -> Grid:
    return _beside_peer(at, "m1")


def _beside_peer(at: Workplace, model: str) -> Grid:
    """A model in every mode, and by SPU's Cheetah in the same run."""
    grid = _whole(at, model, MODES)
    if (peer := at.peer(model)) is None:
        return grid
    mib = peer.bytes / MIB
    return Grid(grid.columns, {**grid.rows, _peer_name(peer): [0.0, peer.seconds, mib, mib, None]})


def figure_7(at: Workplace) -> Grid:
    names = [name for name in MODES if "linear" in name]
    return _whole(at, "m1" if at.quick else "resnet50", names)


def prime_field(at: Workplace) -> Grid:
    model = "m1" if at.quick else "m2"
    suites = {"modulo a prime": Gmw(rounds="linear", field="prime"), "ring": Gmw(rounds="linear")}
    rows = {f"{name}, {model}": _linear(at.run(model, suite)) for name, suite in suites.items()}
    return Grid(("offline s", "online s", "MiB"), rows)


def accuracy(at: Workplace) -> Grid:
    """Samples that training did not see, of the zoo's trained CNN and of the user's ImageNet."""
    archive = np.load(at.trained("digits-cnn.npz"))
    count = 4 if at.quick else 64
    inputs, labels = archive["inputs"][:count], archive["labels"][:count]
    cases = {"digits": (at.trained("digits-cnn.onnx"), inputs, labels, count)}
    for name in ("squeezenet", "resnet50"):
        if (path := at.user_model(name, IMAGENET)) is not None:
            photos = at.user_samples(IMAGENET, limit=PHOTOS)
            cases[f"{name}, {PHOTOS} photos"] = (path, photos.images, photos.labels, PHOTO_BATCH)
    rows: dict[str, Sequence[Cell]] = {}
    for title, (path, inputs, labels, batch) in cases.items():
        for name, suite in (("exact", Gmw()), ("one-bit", Gmw(truncation="one-bit"))):
            at.report(f"{title}, {name}")
            rows[f"{title}, {name}"] = _agreement(path, suite, inputs, labels, batch)
    return Grid(("top-1 %", "label agreement %", "mean relative error of logits, %"), rows)


def _agreement(path: Path, suite: Gmw, inputs: Array, labels: Array, batch: int) -> list[Cell]:
    """Of private inferences, `batch` at a time: right labels, labels as in the clear, and how far
    logits are from those in the clear, all in %."""
    private, clear = [], []
    for start in range(0, len(inputs), batch):
        part = inputs[start : start + batch]
        run = run_locally(path, [part], suite=suite, batch=len(part))
        (key,) = run.outputs
        private.append(np.asarray(run.outputs[key], float).reshape(len(part), -1))
        clear.append(np.asarray(run.reference[key], float).reshape(len(part), -1))
    private_scores, clear_scores = np.concatenate(private), np.concatenate(clear)
    return [
        100 * float(np.mean(private_scores.argmax(1) == labels)),
        100 * float(np.mean(private_scores.argmax(1) == clear_scores.argmax(1))),
        100
        * float(np.mean(np.abs(private_scores - clear_scores) / np.abs(clear_scores).clip(1e-3))),
    ]
