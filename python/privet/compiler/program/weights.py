"""The private half of a program: named int64 tensors and a salt, in a safetensors file.

The file is written in a canonical form (tensors in order, no padding beyond the format's), so its
hash is known before it is written and large models are never held twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from privet.compiler.graph.operations import Array
from privet.errors import InvalidProgram

SALT = "salt"
SALT_BYTES = 32


def _fresh_salt() -> Array:
    return np.frombuffer(secrets.token_bytes(SALT_BYTES), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Weights:
    """The server's tensors. `salt` keeps the commitment from confirming a guess of them."""

    tensors: Mapping[str, Array]
    salt: Array = field(default_factory=_fresh_salt)

    @cached_property
    def commitment(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        digest = hashlib.sha256()
        for chunk in self._chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def to_private_bytes(self) -> bytes:
        """The whole file."""
        return b"".join(self._chunks())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, readable by its owner only."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for chunk in self._chunks():
                file.write(chunk)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Weights:
        """Reads a file that `save` wrote. Raises `InvalidProgram` if it is missing or not such a
        file."""
        try:
            tensors = safetensors.numpy.load_file(Path(path))
        except (OSError, safetensors.SafetensorError) as error:
            raise InvalidProgram(f"the weights {path!s} cannot be read: {error}") from error
        salt = tensors.pop(SALT, None)
        if salt is None or salt.dtype != np.uint8 or salt.shape != (SALT_BYTES,):
            raise InvalidProgram("the weights have no salt: they are not a program's private half")
        for name, tensor in tensors.items():
            if tensor.dtype != np.int64:
                raise InvalidProgram(f"tensor {name} is {tensor.dtype}, not int64")
        return cls(tensors, salt)

    def _chunks(self) -> Iterator[bytes | memoryview]:
        """The file's bytes: an 8-byte length, a JSON header, the tensors."""
        tensors = {**dict(sorted(self.tensors.items())), SALT: self.salt}
        header, offset = {}, 0
        for name, tensor in tensors.items():
            header[name] = {
                "dtype": "U8" if tensor.dtype == np.uint8 else "I64",
                "shape": list(tensor.shape),
                "data_offsets": [offset, offset + tensor.nbytes],
            }
            offset += tensor.nbytes
        encoded_header = json.dumps(header, separators=(",", ":")).encode()
        encoded_header += b" " * (-len(encoded_header) % 8)
        yield len(encoded_header).to_bytes(8, "little")
        yield encoded_header
        for tensor in tensors.values():
            dtype = np.uint8 if tensor.dtype == np.uint8 else np.dtype("<i8")
            flat: Any = np.ascontiguousarray(tensor, dtype=dtype).reshape(-1)
            yield memoryview(flat).cast("B")
