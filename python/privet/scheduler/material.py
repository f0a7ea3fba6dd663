"""Where every piece of material is, from its T_pre to its T_on.

A piece is in stock (free for its client's next request), in transit (a notice's, whose request has
not come), or with a pair that waits for its T_on or runs it. It enters once and leaves once.
"""

from __future__ import annotations

from collections import Counter

from privet.errors import Misuse
from privet.scheduler.actions import Action, MaterialGone, MaterialReady
from privet.scheduler.limits import Limits
from privet.scheduler.pairs import Pair
from privet.scheduler.policies.policy import Stream
from privet.scheduler.profiles import Profiles
from privet.scheduler.stock import Piece, Stock
from privet.scheduler.submission import Phase
from privet.scheduler.timers import Alarm, Timers


class Material:
    """The pieces; writes to the scheduler's timers, counters and outbox. Times in seconds."""

    def __init__(
        self,
        profiles: Profiles,
        limits: Limits,
        timers: Timers,
        counts: Counter[tuple[str, str]],
        outbox: list[Action],
    ) -> None:
        self.stock = Stock()
        self.in_transit: dict[str, Pair] = {}
        self._known: set[str] = set()
        self._profiles = profiles
        self._limits = limits
        self._timers = timers
        self._counts = counts
        self._outbox = outbox

    def __len__(self) -> int:
        """Pieces that were not used up and are not gone."""
        return len(self._known)

    def check_new(self, material: str) -> None:
        """Refuses a piece that is there already.

        # Errors
        `Misuse` if there is one of that name.
        """
        if material in self._known:
            raise Misuse(f"the piece {material} is known already")

    def made(self, pair: Pair, material: str) -> None:
        """The pair's T_pre left `material`, which is new, on its machine."""
        self._known.add(material)
        pair.material = material
        self._counts["material", "made"] += 1
        self._outbox.append(MaterialReady(pair.maker.id, material, pair.machine or ""))

    def found(self, now: float, material: str, stream: Stream, machine: str) -> None:
        """A new piece lies on `machine`, from elsewhere."""
        self._known.add(material)
        self._add(now, material, stream, machine)

    def to_transit(self, now: float, pair: Pair) -> None:
        """The pair's piece waits for the request of its notice."""
        material = pair.material or ""
        self.in_transit[material] = pair
        self._timers.set(Alarm.EXPIRY, material, now + self._limits.material_seconds)

    def from_transit(self, pair: Pair) -> None:
        """The request has come."""
        self.in_transit.pop(pair.material or "", None)
        self._timers.drop(Alarm.EXPIRY, pair.material or "")

    def release(self, now: float, pair: Pair) -> None:
        """The pair's piece becomes free for the next request of its client."""
        self.from_transit(pair)
        self._add(now, pair.material or "", pair.stream, pair.machine or "")

    def take(self, stream: Stream) -> Piece | None:
        """The oldest free piece for `stream`, which then is its request's."""
        piece = self.stock.take(stream)
        if piece is not None:
            self._timers.drop(Alarm.EXPIRY, piece.material)
        return piece

    def used(self, pair: Pair) -> None:
        """The pair's T_on is over, well or not."""
        self._known.discard(pair.material or "")

    def gone(self, material: str, machine: str, reason: str) -> None:
        """A piece will never be used; take it out of where it is first."""
        self._timers.drop(Alarm.EXPIRY, material)
        self._known.discard(material)
        self._counts["material", reason] += 1
        self._outbox.append(MaterialGone(material, machine, reason))

    def _add(self, now: float, material: str, stream: Stream, machine: str) -> None:
        size = self._profiles.expected(stream.job(Phase.PRE)).material
        self.stock.add(Piece(material, stream, machine, size))
        self._timers.set(Alarm.EXPIRY, material, now + self._limits.material_seconds)
