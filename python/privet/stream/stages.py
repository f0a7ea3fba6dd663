"""A program as alternating stages: linear ones at the model provider, others at the data provider.

Adjacent operations of the same side are one stage (PP-Stream, Section IV-B), so that a request
crosses between the two organisations as rarely as can be. A *round* is a linear stage and the
non-linear one that follows it; before the first round the data provider encrypts the input.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import _native
from privet.compiler.program import Program
from privet.errors import PeerMisbehaved
from privet.stream.cipher import Cipher

NONE = (1 << 32) - 1
"""In an order, a place where no element comes."""

Indices = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Round:
    """A linear stage and what the data provider does on what it gives.

    `bases` are the values, by number, that the linear stage reads: inputs of the program and
    targets of earlier rounds; `shares` those whose shares it adds, over BFV. The model provider
    sends `sent` rows; `unit` of them belong together, such as the window of a pooling. `returned`
    come back as the value `target`; for an `output`, which is sent in its own order, none do and
    `target` counts the program's outputs. What is sent is the value `source`, of this `shape`.
    """

    name: str
    linear: tuple[str, ...]
    operators: str
    bases: tuple[int, ...]
    shares: tuple[int, ...]
    sent: int
    unit: int
    returned: int
    target: int
    output: bool
    source: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StageSlice:
    """A part of a linear stage: its elements, and those that it needs of each base and share."""

    elements: Indices
    needs: tuple[Indices, ...]
    shares: tuple[Indices, ...]

    @property
    def read(self) -> int:
        """How many elements a worker gets for this part."""
        return sum(len(needs) for needs in (*self.needs, *self.shares))


class Stages:
    """The stages of a program; with its weights, those of the model provider."""

    def __init__(self, public: bytes, cipher: Cipher, weights: bytes | None = None) -> None:
        self.native = _native.StreamStages(public, cipher.config, weights)
        self.cipher = cipher
        self.program = Program.from_public_bytes(public)
        self.row_bytes, self.key_bytes = self.native.sizes()
        self._slices: dict[tuple[int, int], tuple[StageSlice, ...]] = {}

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds in the order in which a request goes through them."""

        def read(fields: dict[str, Any]) -> Round:
            values: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
            return Round(**values)

        return tuple(map(read, json.loads(self.native.rounds())))

    @cached_property
    def inputs(self) -> dict[int, int]:
        """How many elements each input of the program has, by its value."""
        sizes = (
            (entry.value, self.program.values[entry.value].shape) for entry in self.program.inputs
        )
        return {value: int(np.prod(shape)) for value, shape in sizes}

    @cached_property
    def last_uses(self) -> tuple[frozenset[int], ...]:
        """For each round the bases that no later one reads."""
        later: set[int] = set()
        last = []
        for round in reversed(self.rounds):
            last.append(frozenset(round.bases) - later)
            later.update(round.bases)
        return tuple(reversed(last))

    def slices(self, index: int, count: int) -> tuple[StageSlice, ...]:
        """A linear stage in at most `count` parts."""
        if (index, count) not in self._slices:
            self._slices[index, count] = tuple(
                StageSlice(
                    indices(elements), tuple(map(indices, needs)), tuple(map(indices, shares))
                )
                for elements, needs, shares in self.native.slices(index, count)
            )
        return self._slices[index, count]

    def arrange(self, index: int) -> tuple[Indices, Indices]:
        """A fresh order under Paillier: the element at each place sent, and the place of each that
        is returned."""
        sent, returned = self.native.arrange(index)
        return indices(sent), indices(returned)

    def rows(self, tensor: bytes, count: int) -> npt.NDArray[np.uint8]:
        """A peer's ciphertexts or masked values, one in a row. Raises `PeerMisbehaved` if there are
        not `count` of them."""
        if len(tensor) != count * self.row_bytes:
            raise PeerMisbehaved(
                f"a tensor of {count} rows has {count * self.row_bytes} bytes, not {len(tensor)}"
            )
        return np.frombuffer(tensor, dtype=np.uint8).reshape(count, self.row_bytes)

    @cached_property
    def least(self) -> npt.NDArray[np.uint8]:
        """The row of a masked value that no maximum notices."""
        return np.frombuffer(self.native.least(), dtype=np.uint8)

    def largest(self) -> int:
        """Bytes of the largest tensor that either side sends."""
        counts = [*self.inputs.values()]
        counts += [max(exchange.sent, exchange.returned) for exchange in self.rounds]
        return max(counts) * self.row_bytes


def split_into_ranges(count: int, unit: int, parts: int) -> list[slice]:
    """`count` places in at most so many ranges of whole units."""
    units = count // unit
    parts = max(1, min(parts, units))
    bounds = [at * units // parts * unit for at in range(parts + 1)]
    return [slice(start, end) for start, end in itertools.pairwise(bounds)]


def names(rounds: Sequence[Round]) -> list[tuple[str, str]]:
    """Side and name of every stage, in the order of a request."""
    stages = [("data", "encrypt")]
    for round in rounds:
        stages += [("model", " + ".join(round.linear) or "permute"), ("data", round.operators)]
    return stages


def indices(raw: bytes) -> Indices:
    """Numbers of elements or places, as the native part gives them."""
    return np.frombuffer(raw, dtype="<u4")
