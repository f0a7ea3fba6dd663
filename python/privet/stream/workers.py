"""What a worker of a stage does: functions of serialised tensors, with no state of a request.

A worker has one thread; a stage with several threads has as many workers, each of which gets the
slice of a tensor that it needs. They live in processes of their own (`privet.stream.worker_pool`).
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Sequence

from privet.errors import Misuse
from privet.stream.cipher import Cipher

KEYS_KEPT = 8
"""Data providers whose tables of noise (16 MB each) a worker keeps."""


class LinearWorker:
    """Part of a linear stage at the model provider; sees ciphertexts or masked values alone."""

    def __init__(self, public: bytes, cipher: Cipher, weights: bytes) -> None:
        _one_thread()
        from privet import _native

        self._stages = _native.StreamStages(public, cipher.config, weights)
        self._cipher = cipher
        self._noise: OrderedDict[bytes, _native.StreamNoise] = OrderedDict()

    def process(self) -> int:
        return os.getpid()

    def ready(self, key: bytes) -> None:
        """Makes the table of noise for a data provider's key."""
        if key not in self._noise:
            self._noise[key] = self._stages.noise(key)
            while len(self._noise) > KEYS_KEPT:
                self._noise.popitem(last=False)
        self._noise.move_to_end(key)

    def linear(
        self, key: bytes, index: int, elements: bytes, operands: Sequence[tuple[bytes, bytes]]
    ) -> tuple[bytes, float]:
        """Elements of a round's value, under Paillier with fresh noise; its processor seconds."""
        if not self._cipher.masked:
            self.ready(key)
        began = time.process_time()
        rows = self._stages.linear(index, self._noise.get(key), elements, list(operands))
        return rows, time.process_time() - began


class NonlinearWorker:
    """Part of a stage at the data provider: holds its private key, or gets masks with each call."""

    def __init__(self, public: bytes, cipher: Cipher) -> None:
        _one_thread()
        from privet import _native

        self._stages = _native.StreamStages(public, cipher.config)
        self._cipher = cipher
        self._key: _native.StreamKey | None = None

    def process(self) -> int:
        return os.getpid()

    def open(self, secret: bytes) -> None:
        """Takes the private key."""
        from privet import _native

        self._key = _native.StreamKey.read(self._cipher.key_bits, secret)

    def encrypt(self, values: bytes, hiding: bytes) -> tuple[bytes, float]:
        """Values (little-endian int64) as rows, and its processor seconds."""
        began = time.process_time()
        return self._stages.encrypt(
            self._private_key(), values, hiding
        ), time.process_time() - began

    def answer(self, index: int, rows: bytes, opening: bytes, hiding: bytes) -> tuple[bytes, float]:
        """What a round's stage makes of whole units, hidden anew."""
        began = time.process_time()
        answer = self._stages.answer(index, self._private_key(), rows, opening, hiding)
        return answer, time.process_time() - began

    def values(self, index: int, rows: bytes, opening: bytes) -> tuple[bytes, float]:
        """The same in the clear, for an output."""
        began = time.process_time()
        values = self._stages.values(index, self._private_key(), rows, opening)
        return values, time.process_time() - began

    def _private_key(self) -> _native.StreamKey | None:  # type: ignore[name-defined]  # noqa: F821
        if self._key is None and not self._cipher.masked:
            raise Misuse("this worker has no key yet")
        return self._key


def _one_thread() -> None:
    """Before the extension module starts its threads: there is a worker for each."""
    os.environ["RAYON_NUM_THREADS"] = "1"
