"""The view of all material: what lies in the stores of the machines, for whom, and what it is for.

The record is the store on each machine's disk. When a machine joins, this view is built from it
(`add_found`); then it follows events. An entry is free for its client's next request, announced
(a notice's, whose request has not come), claimed by a request, or in use by its T_on. It comes once
and goes once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from privet.errors import Misuse
from privet.scheduler.actions import Action, MaterialGone, MaterialReady
from privet.scheduler.limits import Limits
from privet.scheduler.pairs import Pair
from privet.scheduler.policies.policy import JobStream
from privet.scheduler.profiles import Profiles
from privet.scheduler.submission import Phase
from privet.scheduler.timers import Alarm, Timers


@dataclass(frozen=True)
class MaterialEntry:
    """Material for `stream` on `machine`, of `bytes` bytes, made at that time.

    `job` is the notice, request or "ahead" job that it was made for, None if an earlier process
    made it. `ahead`: its client has not asked for it.
    """

    material: str
    stream: JobStream
    machine: str
    bytes: int
    time: float
    job: str | None = None
    ahead: bool = False


class Material:
    """All material; writes to the scheduler's timers, counters and outbox. Times in seconds.

    `announced` has the pairs of notices by their material, `bytes` what unused material takes on
    each machine.
    """

    def __init__(
        self,
        profiles: Profiles,
        limits: Limits,
        timers: Timers,
        counts: Counter[tuple[str, str]],
        outbox: list[Action],
    ) -> None:
        self.announced: dict[str, Pair] = {}
        self._free: dict[JobStream, dict[str, MaterialEntry]] = {}
        self.free_bytes = 0
        self._unused: dict[str, MaterialEntry] = {}
        self._in_use: dict[str, MaterialEntry] = {}
        self.bytes: Counter[str] = Counter()
        self._made_for: Counter[str] = Counter()
        self._profiles = profiles
        self._limits = limits
        self._timers = timers
        self._counts = counts
        self._outbox = outbox

    # What there is ------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How much was neither used up nor lost."""
        return len(self._unused) + len(self._in_use)

    def __contains__(self, material: str) -> bool:
        return material in self._unused or material in self._in_use

    def unused(self, client: str | None = None, model: str | None = None) -> list[MaterialEntry]:
        """What is not in use, of a client and for a model or of all, the oldest first."""
        return [
            entry
            for entry in self._unused.values()
            if client in (None, entry.stream.client) and model in (None, entry.stream.model)
        ]

    def names(self, machine: str) -> set[str]:
        """What there is on a machine, in use or not."""
        return {
            entry.material
            for entry in (*self._unused.values(), *self._in_use.values())
            if entry.machine == machine
        }

    def has(self, job: str) -> bool:
        """Whether unused material is here that was made for a job."""
        return self._made_for[job] > 0

    def free(self) -> dict[JobStream, int]:
        """How many entries are free for the next request; they take `free_bytes`."""
        return {stream: len(entries) for stream, entries in self._free.items()}

    def is_unclaimed(self, material: str) -> bool:
        """Whether no request has claimed it: it is free, or announced."""
        entry = self._unused.get(material)
        announced = material in self.announced
        return announced or (entry is not None and material in self._free.get(entry.stream, ()))

    def unclaimed(self, machine: str) -> list[MaterialEntry]:
        """What no request has claimed on a machine, the oldest first."""
        entries = [entry for entry in self._unused.values() if entry.machine == machine]
        return sorted(
            (entry for entry in entries if self.is_unclaimed(entry.material)),
            key=lambda entry: entry.time,
        )

    # How it comes -------------------------------------------------------------------------------

    def check_new(self, material: str) -> None:
        """Refuses material that is there already. Raises `Misuse` if there is some of that name."""
        if material in self:
            raise Misuse(f"the material {material} is known already")

    def add_made(self, now: float, pair: Pair, material: str, bytes: int) -> None:
        """The pair's T_pre left `material`, which is new, on its machine."""
        pair.material = material
        maker, machine = pair.maker, pair.machine or ""
        size = bytes or self._expected(pair.stream)
        self._insert(
            MaterialEntry(material, pair.stream, machine, size, now, maker.id, maker.ahead)
        )
        self._counts["material", "made"] += 1
        self._outbox.append(MaterialReady(maker.id, material, machine))

    def add_found(
        self, material: str, stream: JobStream, machine: str, bytes: int, at: float
    ) -> None:
        """New material lies on `machine`, from elsewhere."""
        size = bytes or self._expected(stream)
        entry = MaterialEntry(material, stream, machine, size, at)
        self._insert(entry)
        self._set_free(entry, at)

    # What becomes of it -------------------------------------------------------------------------

    def announce(self, now: float, pair: Pair) -> None:
        """The pair's material waits for the request of its notice."""
        material = pair.material or ""
        self.announced[material] = pair
        self._expire(material, now)

    def claim(self, pair: Pair) -> None:
        """The request has come."""
        self.announced.pop(pair.material or "", None)
        self._timers.drop(Alarm.EXPIRY, pair.material or "")

    def take(self, stream: JobStream) -> MaterialEntry | None:
        """The oldest that is free for `stream`, which then is its request's."""
        entry = next(iter(self._free.get(stream, {}).values()), None)
        if entry is not None:
            self._set_taken(entry)
            self._timers.drop(Alarm.EXPIRY, entry.material)
        return entry

    def release(self, now: float, pair: Pair) -> None:
        """The pair's material becomes free for the next request of its client."""
        self.claim(pair)
        self._set_free(self._unused[pair.material or ""], now)

    def use(self, pair: Pair) -> None:
        """The pair's T_on starts."""
        entry = self._take_out(pair.material or "")
        self._in_use[entry.material] = entry

    def finish_use(self, pair: Pair) -> None:
        """The pair's T_on is over, well or not."""
        self._in_use.pop(pair.material or "", None)

    def return_unused(self, now: float, pair: Pair) -> None:
        """The pair's T_on ended before anybody touched its material: it is free again."""
        entry = self._in_use.pop(pair.material or "")
        self._insert(entry)
        self._set_free(entry, now)

    def discard(self, material: str, reason: str) -> None:
        """Unused material will never be used."""
        entry = self._take_out(material)
        self.announced.pop(material, None)
        self._set_taken(entry)
        self._timers.drop(Alarm.EXPIRY, material)
        self._counts["material", reason] += 1
        self._outbox.append(MaterialGone(material, entry.machine, reason, entry.stream.model))

    def _insert(self, entry: MaterialEntry) -> None:
        self._unused[entry.material] = entry
        self.bytes[entry.machine] += entry.bytes
        if entry.job is not None:
            self._made_for[entry.job] += 1

    def _take_out(self, material: str) -> MaterialEntry:
        entry = self._unused.pop(material)
        self.bytes[entry.machine] -= entry.bytes
        if entry.job is not None:
            self._made_for[entry.job] -= 1
            if not self._made_for[entry.job]:
                del self._made_for[entry.job]
        return entry

    def _set_free(self, entry: MaterialEntry, since: float) -> None:
        self._free.setdefault(entry.stream, {})[entry.material] = entry
        self.free_bytes += entry.bytes
        self._expire(entry.material, since)

    def _set_taken(self, entry: MaterialEntry) -> None:
        """Takes an entry out of those that are free, if it is there."""
        entries = self._free.get(entry.stream, {})
        if entries.pop(entry.material, None) is not None:
            self.free_bytes -= entry.bytes
            if not entries:
                del self._free[entry.stream]

    def _expire(self, material: str, since: float) -> None:
        self._timers.set(Alarm.EXPIRY, material, since + self._limits.material_seconds)

    def _expected(self, stream: JobStream) -> int:
        return self._profiles.expected(stream.job(Phase.PRE)).material
