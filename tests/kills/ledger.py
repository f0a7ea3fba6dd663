"""Who used which material entry when, from the wire alone.

A party uses an entry when it says something in an online phase. The ledger knows two ways to see
that an entry was used twice, and neither asks the parties' stores. By name: a party speaks in two
sessions under one id. By content: two online phases open with the same message, although every
message of an online phase is under a mask that serves once. For that all inputs must be equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.kills.wiretap import DATA, Frame, Party

TELLING_BYTES = 16
"""A message of fewer bytes may be equal to another one by chance."""


@dataclass
class Use:
    """One session's inference on an entry, and the first thing that each party said in it."""

    material: str
    session: int
    granted: bool = False
    opening: dict[Party, Frame] = field(default_factory=dict)


class Ledger:
    """The inferences that were asked for, in order."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self._current: dict[int, Use | None] = {}
        self._read = 0

    def read(self, frames: Sequence[Frame]) -> None:
        """Takes in what is new in the record of a wiretap."""
        new, self._read = frames[self._read :], len(frames)
        for frame in new:
            request, use = frame.request, self._current.get(frame.session)
            if request:
                use = None
                if request["request"] in ("infer", "infer_unprepared"):
                    # What is made as it goes has no name, so every inference has its own.
                    name = request.get("material", f"what was made for use {len(self.uses)}")
                    use = Use(name, frame.session)
                    self.uses.append(use)
                self._current[frame.session] = use
            elif use is None or frame.kind != DATA:
                continue
            elif frame.sender == "server" and not use.granted:
                use.granted = True
            else:
                use.opening.setdefault(frame.sender, frame)

    def begun(self, party: Party) -> set[str]:
        """Entries that `party` must never use again: the client said something under them, or the
        server said yes. The client claims an entry between the two."""
        return {
            use.material
            for use in self.uses
            if (use.granted if party == "server" else party in use.opening)
        }

    def reused(self) -> list[str]:
        """What is wrong: a line for each use of an entry after its first."""
        return self._by_name() + self._by_content()

    def _by_name(self) -> list[str]:
        counts = Counter((party, use.material) for use in self.uses for party in use.opening)
        grants = Counter(("server", use.material) for use in self.uses if use.granted)
        return [
            f"the {party} used {material} in {count} sessions"
            for (party, material), count in (counts | grants).items()
            if count > 1
        ]

    def _by_content(self) -> list[str]:
        uses: dict[tuple[Party, bytes], Use] = {}
        wrong = []
        for use in self.uses:
            for party, frame in use.opening.items():
                if not frame.whole or len(frame.payload) < TELLING_BYTES:
                    continue
                first = uses.setdefault((party, frame.payload), use)
                if first is not use:
                    wrong.append(
                        f"the {party} said the same under {first.material} and {use.material}"
                    )
        return wrong
