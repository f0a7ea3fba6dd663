"""Figures for people."""

from __future__ import annotations

from dataclasses import dataclass

from privet._native import Link


@dataclass(frozen=True)
class TextGrid:
    """A table: columns of words, then of numbers."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: tuple[str, ...] = ()
    """Columns of words behind the numbers."""


def size(count: int) -> str:
    """Bytes with a unit of three decimal orders."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"


def over(link: Link | None) -> str:
    """Words that name a shaped link, to follow others; empty without one."""
    if link is None:
        return ""
    rtt, rate = 1000 * link.rtt, link.bits_per_second / 1e6
    return f" over a link of {rtt:g} ms there and back and {rate:g} Mbit/s each way"
