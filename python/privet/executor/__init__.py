"""The plaintext fixed-point executor: the reference that every suite is measured against."""

from privet.executor.bounds import error_bound
from privet.executor.codec import decode_output, encode_input
from privet.executor.fixed import Execution, execute

__all__ = ["Execution", "decode_output", "encode_input", "error_bound", "execute"]
