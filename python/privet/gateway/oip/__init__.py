"""The Open Inference Protocol, version 2, as a gateway speaks it to clients on its own host.

The protocol is the one of Triton, KServe and others: REST with JSON, Triton's extension for binary
tensors in it, and gRPC. `exchange` is what both have in common, and knows neither.
"""
