"""Networks between the parties: round trip and bandwidth, with the presets of "Beyond Latency"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from privet.errors import Misuse


@dataclass(frozen=True)
class Network:
    """`rtt` in seconds, `bits_per_second` each way; full duplex."""

    name: str
    rtt: float
    bits_per_second: float

    @property
    def bytes_per_second(self) -> float:
        """Bandwidth each way in bytes."""
        return self.bits_per_second / 8


_GB = 8e9
PRESETS = {
    network.name: network
    for network in (
        Network("WAN_S", 0.070, 0.07 * _GB),
        Network("WAN_M", 0.070, 1 * _GB),
        Network("WAN_F", 0.070, 50 * _GB),
        Network("LAN_S", 0.00002, 1 * _GB),
        Network("LAN_F", 0.00002, 50 * _GB),
    )
}
"""Table I of the paper."""

_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9}
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(us|ms|s)")
_BITS = re.compile(r"(\d+(?:\.\d+)?) ?([kmg])(?:bit(?:/s|ps)?|bps)", re.IGNORECASE)
_BYTES = re.compile(r"(\d+(?:\.\d+)?) ?([kMG])B(?:/s)?")


def parse_seconds(text: str, subject: str) -> float:
    """Seconds of `40ms`, `20us` or `5s`. Raises `Misuse` if it is no time."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise Misuse(f"{text!r} is no {subject}, such as 40ms or 5s")
    return float(match[1]) * _TIMES[match[2]]


def parse_bandwidth(text: str) -> float:
    """Bits a second of `400Mbit`, `1Gbit/s` or `400mbps`, and of bytes as links have them, such as
    `44MB`. Raises `Misuse` if it is no bandwidth."""
    bits, bytes_ = _BITS.fullmatch(text.strip()), _BYTES.fullmatch(text.strip())
    match = bits or bytes_
    if match is None or float(match[1]) == 0:
        raise Misuse(f"{text!r} is no bandwidth, such as 400Mbit, 1Gbit or 44MB")
    return float(match[1]) * _PREFIXES[match[2].lower()] * (1 if bits else 8)


def parse_network(text: str) -> Network:
    """A preset by name, or round trip and bandwidth with a comma between, such as `40ms,400Mbit`.
    Raises `Misuse` if it is neither."""
    preset = PRESETS.get(text.strip().upper())
    if preset is not None:
        return preset
    rtt, comma, rate = text.partition(",")
    if not comma:
        names = ", ".join(PRESETS)
        raise Misuse(f"{text!r} is no network: give one of {names}, or such as 40ms,400Mbit")
    return Network(text, parse_seconds(rtt, "round trip"), parse_bandwidth(rate))
