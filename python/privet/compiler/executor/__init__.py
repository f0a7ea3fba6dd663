"""The plaintext fixed-point executor: the reference that every suite is measured against."""

from typing import TYPE_CHECKING

from privet.lazy import attach

if TYPE_CHECKING:
    from privet.compiler.executor.codec import decode_output, encode_input
    from privet.compiler.executor.fixed import execute

__getattr__ = attach(
    __name__,
    {
        "privet.compiler.executor.codec": ("decode_output", "encode_input"),
        "privet.compiler.executor.fixed": ("execute",),
    },
)
