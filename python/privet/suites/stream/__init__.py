"""Suite `stream`."""

from privet.suites.stream.config import CIPHERS, KEY_BITS, STREAM_TRUST, Stream
