"""What a person asks of `privet plan`."""

from __future__ import annotations

from dataclasses import dataclass

from privet.errors import Misuse
from privet.study.network import Network
from privet.study.setting import ALL, Setting


@dataclass(frozen=True)
class Question:
    """Which suite for a model, over `network`, for `rate` samples a second in batches of one of the
    sizes `batches`?

    `max_latency` is the most seconds from an input to its output, for 99 of 100; `budget` the most
    dollars a month for the service's side. Without `dealer`, no third party is trusted;
    `malicious` asks for a suite that catches parties who cheat. `cores` limits the server.
    """

    network: Network
    rate: float = 1.0
    batches: tuple[int, ...] = (1,)
    max_latency: float | None = None
    budget: float | None = None
    dealer: bool = True
    malicious: bool = False
    cores: int | None = None

    def __post_init__(self) -> None:
        if self.rate <= 0 or not self.batches or min(self.batches) < 1:
            raise Misuse("a plan needs a positive rate and batches of at least 1")

    def settings(self) -> list[Setting]:
        """All settings that could be told about: cohorts are another use, and left out."""
        return [setting for setting in ALL.values() if not setting.members]

    def distrust(self, setting: Setting) -> str | None:
        """Why the parties' trust rules a setting out; None if it does not."""
        if self.malicious and not setting.malicious:
            return "a party that cheats is not caught"
        if setting.dealer and not self.dealer:
            return "needs a dealer that colludes with neither party"
        return None
