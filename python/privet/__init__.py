"""Privet: private predictions from ONNX models."""

__version__ = "0.1.0"
