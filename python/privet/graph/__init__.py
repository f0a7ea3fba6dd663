"""ONNX in, typed graph out."""

from privet.graph.graph import ClientStep, Graph, GraphBuilder, Input, Node, Output, Value
from privet.graph.importer import import_model
from privet.graph.onnx_model import ModelSource, load_model
from privet.graph.registry import OperatorSupport, supported_operators
from privet.graph.table import operators_table

__all__ = [
    "ClientStep",
    "Graph",
    "GraphBuilder",
    "Input",
    "ModelSource",
    "Node",
    "OperatorSupport",
    "Output",
    "Value",
    "import_model",
    "load_model",
    "operators_table",
    "supported_operators",
]
