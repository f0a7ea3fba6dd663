"""Kills a client and a server over and over, and looks after each time whether all is well."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.attacks.scene import SOON
from tests.kills.stage import Mortal, Stage, infer
from tests.kills.wiretap import Frame, Party

AIMS = ("preparing", "storing", "claiming", "inferring")
"""Kinds of work that a kill is to interrupt."""

VICTIMS: tuple[tuple[Party, ...], ...] = (("client",), ("server",), ("client", "server"))
STORED = ("server", b"\x01")
"""The frame by which a server says that it has stored its half."""


class Ordeal:
    """A client and a server at work, and what is known of their entries.

    `landed` counts what each kill interrupted, by what was found afterwards; `setups` are those
    that entries were made with, `shared` those that both parties have kept at a time, and `gone`
    those of them that a party has given up since. One that the client died before it stored is
    kept by the server alone: nobody gave it up.
    """

    def __init__(self, stage: Stage, expected: np.ndarray[Any, Any], seed: int) -> None:
        self.stage, self.expected, self.random = stage, expected, random.Random(seed)
        self.landed: Counter[str] = Counter()
        self.setups: dict[str, str] = {}
        self.shared: set[str] = set()
        self.gone: set[str] = set()
        self.party: dict[Party, Mortal] = {
            "server": stage.start_server(),
            "client": stage.start_client(),
        }
        self.seconds = self._measure()
        self.kept = set(self._list())

    def round(self, number: int) -> None:
        """One kill, aimed at one kind of work of one party or both, and all checks after it."""
        aim, victims = AIMS[number % len(AIMS)], VICTIMS[number // len(AIMS) % len(VICTIMS)]
        material = None
        if aim in ("claiming", "inferring"):
            material = self.random.choice(sorted(self.kept or {self._prepare()}))
        self.stage.copy("client", "backup")
        ready = {party: self.stage.ready(party) for party in self.party}
        for party in self.party:
            self.setups |= self.stage.setups(party)
        self.shared |= self._kept_by_both()
        first = len(self.stage.tap.frames)
        order = infer(material) if material else {"do": "prepare"}
        self.party["client"].tell(order)
        self._take_aim(aim, victims, first)
        for victim in victims:
            self.party[victim].process.kill()
        answer = self._aftermath(victims)
        self.landed[self._interrupted(material, answer, ready["server"], first)] += 1
        self._restart(victims)
        self._check(material, answer, ready)
        if material and material in self.stage.audit().begun("server") and number % 3 == 0:
            self._check_backup(material)

    def finish(self) -> None:
        """Every entry that is left serves, once."""
        for material in sorted(self.kept):
            self._check_output(self.party["client"].ask(infer(material)))
        assert set(self._list()) <= self._useless()
        assert self.stage.audit().reused() == []

    def _measure(self) -> dict[str, float]:
        """How long work takes that nobody disturbs."""
        seconds: dict[str, list[float]] = {"prepare": [], "infer": []}
        for _ in range(3):
            start = time.monotonic()
            material = self._prepare()
            seconds["prepare"].append(time.monotonic() - start)
            start = time.monotonic()
            self._check_output(self.party["client"].ask(infer(material)))
            seconds["infer"].append(time.monotonic() - start)
        return {work: min(times) for work, times in seconds.items()}

    def _prepare(self) -> str:
        return str(self.party["client"].ask({"do": "prepare"})["material"])

    def _useless(self) -> set[str]:
        """Material entries of setups that a party has given up."""
        return self._useless_at("client") | self._useless_at("server")

    def _useless_at(self, party: Party) -> set[str]:
        """Entries of setups that this party has given up because a check came to no end."""
        setups = self.stage.keeps(party)
        return {entry for entry, setup in self.setups.items() if setup not in setups}

    def _kept_by_both(self) -> set[str]:
        return self.stage.keeps("client") & self.stage.keeps("server")

    def _list(self) -> list[str]:
        """What the client's own store says is ready."""
        return list(self.party["client"].ask({"do": "list"})["materials"])

    def _take_aim(self, aim: str, victims: tuple[Party, ...], first: int) -> None:
        """Waits for a moment at which the victim is probably at the work that is aimed at."""
        preparation, inference = self.seconds["prepare"], self.seconds["infer"]
        match aim, victims[0]:
            case "preparing", _:
                delay = self.random.uniform(0, preparation)
            case "storing", "server":
                delay = self.random.uniform(0.6, 1.0) * preparation
            case "storing", _:
                self._await(first, lambda frame: (frame.sender, frame.payload) == STORED)
                delay = self.random.uniform(0, 0.002)
            case "claiming", "server":
                self._await(first, lambda frame: frame.request)
                delay = self.random.uniform(0, 0.002)
            case "claiming", _:
                delay = self.random.uniform(0, 0.5) * inference
            case _:
                self._await(first, lambda frame: frame.sender == "server")
                delay = self.random.uniform(0, 0.7) * inference
        time.sleep(delay)

    def _await(self, first: int, test: Callable[[Frame], object]) -> None:
        frames = self.stage.tap.frames
        assert self.stage.tap.wait(lambda: any(map(test, frames[first:])), SOON)

    def _aftermath(self, victims: tuple[Party, ...]) -> dict[str, Any]:
        """The client's answer, if it gave one; by then nobody waits for the dead any more."""
        start = time.monotonic()
        answer = self.party["client"].answer()
        for victim in victims:
            self.party[victim].kill()
        self.party["client"].kill()
        assert self.stage.tap.quiet(SOON), "a party still waits for one that was killed"
        assert time.monotonic() - start < SOON
        if "client" not in victims:
            assert answer["event"] in ("prepared", "inferred", "failed"), answer
            assert answer.get("type", "LinkError") in (
                "LinkError",
                "NobodyListens",
                "PeerMisbehaved",
            ), answer
        return answer

    def _interrupted(
        self, material: str | None, answer: dict[str, Any], before: set[str], first: int
    ) -> str:
        """The kind of work that the kill found, by the tap and the disks."""
        if answer.get("event") in ("prepared", "inferred"):
            return "nothing"
        requests = [frame for frame in self.stage.tap.frames[first:] if frame.request]
        if material is None:
            is_storing = len(self.stage.files("server")) > 2 * len(before)
            return "storing" if is_storing else "preparing"
        # Both parties claim their halves until the client says something under its own.
        if material in self.stage.audit().begun("client"):
            return "inferring"
        claimed = (self.stage.store("client") / "spent" / material).exists()
        return "claiming" if requests or claimed else "nothing"

    def _restart(self, victims: tuple[Party, ...]) -> None:
        if "server" in victims:
            self.party["server"] = self.stage.start_server()
        self.party["client"] = self.stage.start_client()

    def _check(
        self, material: str | None, answer: dict[str, Any], before: dict[Party, set[str]]
    ) -> None:
        """Nothing that was begun is offered again, and nothing else is lost."""
        listing, ledger = set(self._list()), self.stage.audit()
        assert ledger.reused() == []
        ready = {party: self.stage.ready(party) for party in self.party}
        useless = self._useless()
        assert ready["client"] == listing
        for party in self.party:
            assert not ready[party] & self._useless_at(party), (
                f"the {party} keeps what it has given up"
            )
        # A client that was killed before it could claim what the server had spent for it.
        left = listing - useless - ready["server"]
        assert left <= {use.material for use in ledger.uses}, "the server lost an entry"
        for party, entries in ready.items():
            assert not entries & ledger.begun(party), f"the {party} offers what it has begun to use"
            assert before[party] - {material} - useless <= entries, f"the {party} lost an entry"
            new = {answer["material"]} - useless if answer.get("event") == "prepared" else set()
            assert new <= entries, f"the {party} lost an entry that was made"
            if party == "client":
                whole = {f"{entry}.{part}" for entry in entries for part in ("json", "material")}
                assert self.stage.files(party) == whole, "something is left of a killed process"
        for entry in left:
            assert self.party["client"].ask(infer(entry))["event"] == "refused"
            # The server ends a session that asks for what it does not have.
            self.party["client"].kill()
            self.party["client"] = self.stage.start_client()
        assert not left & set(self._list()), "the client keeps what the server refuses"
        count = len(self.stage.audit().uses)
        for entry in ({material} if material else set()) | self._sample(ledger.begun("client")):
            if entry not in listing:
                assert self.party["client"].ask(infer(entry))["event"] == "refused"
        assert len(self.stage.audit().uses) == count, "the client asked for an entry it had used"
        self.kept = listing - useless - left
        # Entries of a setup that was given up before may turn up later: setups count.
        missing = self.shared - self._kept_by_both()
        if missing - self.gone:
            assert material in ledger.begun("server"), "a setup was given up without a check"
        self.gone = missing

    def _sample(self, entries: set[str]) -> set[str]:
        return set(self.random.sample(sorted(entries), min(3, len(entries))))

    def _check_backup(self, material: str) -> None:
        """A client from before the kill, which knows of no use, is refused by the server."""
        client = self.stage.start_client("backup")
        assert client.ask(infer(material))["event"] == "refused"
        client.kill()

    def _check_output(self, answer: dict[str, Any]) -> None:
        assert answer["event"] == "inferred", answer
        assert np.abs(np.array(answer["output"]) - self.expected).max() < 0.01
