"""From an ONNX model to a program: graph, passes, program, and the plaintext executor."""
