"""Suite `stream`."""

from privet.suites.stream.config import Stream
from privet.suites.stream.planning import CIPHERS, KEY_BITS, STREAM_TRUST

__all__ = ["CIPHERS", "KEY_BITS", "STREAM_TRUST", "Stream"]
