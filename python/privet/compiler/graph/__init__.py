"""ONNX in, typed graph out. Only names of the importer load ONNX."""

from typing import TYPE_CHECKING

from privet.lazy import attach

if TYPE_CHECKING:
    from privet.compiler.graph.graph import (
        ClientStep,
        Graph,
        GraphBuilder,
        Input,
        Node,
        Output,
        Value,
    )
    from privet.compiler.graph.importer import import_model
    from privet.compiler.graph.onnx_model import ModelSource, load_model
    from privet.compiler.graph.registry import supported_operators
    from privet.compiler.graph.table import operators_table

__getattr__ = attach(
    __name__,
    {
        "privet.compiler.graph.graph": (
            "ClientStep",
            "Graph",
            "GraphBuilder",
            "Input",
            "Node",
            "Output",
            "Value",
        ),
        "privet.compiler.graph.importer": ("import_model",),
        "privet.compiler.graph.onnx_model": ("ModelSource", "load_model"),
        "privet.compiler.graph.registry": ("supported_operators",),
        "privet.compiler.graph.table": ("operators_table",),
    },
)
