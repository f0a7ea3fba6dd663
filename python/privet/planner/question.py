"""What a person asks of `privet plan`."""

from __future__ import annotations

from dataclasses import dataclass

from privet.errors import Misuse
from privet.planner.network import Network
from privet.planner.setting import ALL, Setting, cohort


@dataclass(frozen=True)
class Question:
    """Which suite for a model, over `network`, for `rate` samples a second in batches of one of the
    sizes `batches`?

    `max_latency` is the most seconds from an input to its output, for 99 of 100; `budget` the most
    dollars a month for the service's side. Without `dealer`, no third party is trusted;
    `malicious` asks for a suite that catches parties who cheat. With `order_leak`, the client may
    see values inside the network in a random order. `parties` is how many share the key of data and
    model, which the host that evaluates then does not see; 0 where a server knows the model.
    `cores` limits the server. `only` are the settings to weigh; without any, all.
    """

    network: Network
    rate: float = 1.0
    batches: tuple[int, ...] = (1,)
    max_latency: float | None = None
    budget: float | None = None
    dealer: bool = True
    malicious: bool = False
    order_leak: bool = False
    parties: int = 0
    cores: int | None = None
    only: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        if self.rate <= 0 or not self.batches or min(self.batches) < 1:
            raise Misuse("a plan needs a positive rate and batches of at least 1")

    def settings(self) -> list[Setting]:
        """The settings to tell about: those asked for, or all between two, and with `parties` a
        cohort of so many."""
        if self.only:
            return list(self.only)
        between_two = [setting for setting in ALL.values() if not setting.members]
        return between_two + ([cohort(self.parties)] if self.parties else [])

    def distrust(self, setting: Setting) -> str | None:
        """Why the parties' trust rules a setting out; None if it does not."""
        if self.malicious and not setting.malicious:
            return "a party that cheats is not caught"
        if self.parties and not setting.members:
            return f"its server knows the model: {self.parties} parties were to share the key"
        if setting.dealer and not self.dealer:
            return setting.trust
        if setting.reveals_order and not self.order_leak:
            return (
                "shows the client all values before each activation, in a random order; "
                "--allow-order-leak accepts that"
            )
        return None
