"""Intervals of integers, with which bounds go through a program.

An interval has one entry per element, channel or tensor, as numpy broadcasts it to the value's
shape: convolutions and pools keep one per channel. Everything is exact in 64 bits; what could be
larger has no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BEYOND = 1 << 61
"""From here on a value has no bound."""


@dataclass(frozen=True)
class Interval:
    """Integers from `low` to `high`, element by element."""

    low: Array
    high: Array

    @classmethod
    def of(cls, low: int, high: int, rank: int) -> Interval:
        """One interval for all elements of a tensor."""
        ends = (np.full((1,) * rank, end, dtype=np.int64) for end in (low, high))
        return cls(*ends)

    @classmethod
    def between(cls, *corners: Array) -> Interval:
        """The smallest that contains all of these."""
        return cls(np.minimum.reduce(corners), np.maximum.reduce(corners))

    @property
    def largest(self) -> int:
        """The largest magnitude."""
        return max(-int(self.low.min()), int(self.high.max()), 0)

    def wider(self, margin: int) -> Interval:
        """By so much at either end."""
        return Interval(self.low - margin, self.high + margin)

    def per_channel(self) -> Interval:
        """One interval for all elements of a channel of an image, in all samples."""
        return Interval(
            self.low.min(axis=(0, 2, 3), keepdims=True),
            self.high.max(axis=(0, 2, 3), keepdims=True),
        )

    def compact(self) -> Interval:
        """The same intervals with one entry along each axis where all are equal."""
        low, high = self.low, self.high
        for axis in range(low.ndim):
            first = [end.take([0], axis) for end in (low, high)]
            if np.array_equal(np.broadcast_to(first[0], low.shape), low) and np.array_equal(
                np.broadcast_to(first[1], high.shape), high
            ):
                low, high = first
        return Interval(low, high)
