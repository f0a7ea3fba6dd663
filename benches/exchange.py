"""Hands a model to a peer: the network that Privet runs, as JSON and arrays, without ONNX.

Peers get the graph after Privet's own rewriting (batch normalisation folded into convolutions,
pooling before ReLU), so that both sides compute the same operations and none is handicapped by
how the model was exported.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from privet.compiler.graph import Graph, import_model, load_model
from privet.compiler.graph.function import Function
from privet.compiler.graph.operations import Operation
from privet.compiler.passes import simplify

NETWORK_FILE = "network.json"
WEIGHTS_FILE = "weights.npz"


def write(model: Path, folder: Path) -> None:
    """Writes `network.json` and `weights.npz` of an ONNX model into `folder`.

    Weights are named `w0`, `w1`, .. in the order of use; an operation's arrays are given by name.
    Names and layouts of operations are those of `privet.compiler.graph.operations`; what a peer is
    not given it refuses when it compiles.
    """
    graph = simplify(import_model(load_model(model), name=model.stem))
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    steps = [
        {
            "op": node.operation.name,
            "inputs": node.inputs,
            "output": node.output,
            **_attributes(node.operation, arrays),
        }
        for node in graph.nodes
    ]
    (folder / NETWORK_FILE).write_text(json.dumps(_network(graph, steps)))
    np.savez(folder / WEIGHTS_FILE, **arrays)  # type: ignore[arg-type]


def _network(graph: Graph, steps: list[dict[str, Any]]) -> dict[str, Any]:
    (entry,), (result,) = graph.inputs, graph.outputs
    return {
        "name": graph.name,
        "input": entry.value,
        "input_shape": graph.values[entry.value].shape,
        "output": result.value,
        "steps": steps,
    }


def _attributes(operation: Operation, arrays: dict[str, Any]) -> dict[str, Any]:
    """The operation's fields; arrays are moved to `arrays` and named, functions become steps."""
    fields = {}
    for field, value in vars(operation).items():
        if isinstance(value, np.ndarray):
            name = f"w{len(arrays)}"
            arrays[name] = np.asarray(value, dtype=np.float32)
            value = name
        elif isinstance(value, Function):
            value = [asdict(step) for step in value.steps]
        fields[field] = value
    return fields
