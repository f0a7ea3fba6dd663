"""Kills workers, their executor and their clients, and looks each time whether all is well."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from tests.attacks.scene import SOON
from tests.kills.stage import Mortal, Stage, infer

VICTIMS = (("worker",), ("executor",), ("client",), ("worker", "client"), ("executor", "client"))
GRACE = 3.0
"""How long a job waits for a client that may have been killed, in seconds."""

SERVICE = Path(__file__).with_name("service.py")


class Siege:
    """A service, and clients of its jobs; `landed` counts what kills interrupted."""

    def __init__(self, stage: Stage, suite: str, expected: np.ndarray[Any, Any], seed: int) -> None:
        self.stage, self.suite, self.expected = stage, suite, expected
        self.random = random.Random(seed)
        self.landed: Counter[str] = Counter()
        self.spares: list[Mortal] = []
        self.service = self._start_service()
        # How long jobs take from the client's request on.
        self.seconds = {"prepare": 1.0, "infer": 1.0}
        for _ in range(3):
            material = self._undisturbed(None)
            self._undisturbed(material)
        self.ready: set[str] = set()

    def round(self, number: int) -> None:
        """One kill in one job, and all checks after it."""
        phase = "infer" if number % 3 else "prepare"
        if phase == "infer" and not self.ready:
            self.ready = {self._undisturbed(None)}
        victims = VICTIMS[number % len(VICTIMS)]
        material = self.random.choice(sorted(self.ready)) if phase == "infer" else None
        self.stage.copy("client", "backup")
        go = self.service.ask({"do": phase, "material": material, "grace": GRACE})
        assert go["event"] == "go", go
        self.stage.tap.upstream = go["port"]
        client, first = self.stage.start_client(), len(self.stage.tap.frames)
        client.tell(infer(material) if material else {"do": "prepare"})
        self._take_aim(phase, first)
        for victim in victims:
            self._kill(victim, go["worker"], client)
        answer = client.answer() if "client" not in victims else {}
        client.kill()
        outcome = self._outcome(victims)
        assert self.stage.tap.quiet(SOON), "a party still waits for one that was killed"
        success = outcome.get("failure", "") is None
        self.landed["nothing" if success else self._interrupted(material)] += 1
        self._check(victims, material, answer, outcome)
        if material and material in self.stage.audit().begun("server"):
            self._check_backup(material)

    def finish(self) -> None:
        """Every entry that both sides still have serves, once."""
        for material in sorted(self._list()[1] & self._client_list()):
            self._undisturbed(material)
        entries, ready = self._list()
        assert not ready & self._client_list()
        assert ready <= entries
        assert self.stage.audit().reused() == []

    def end(self) -> None:
        """Ends the service."""
        for process in [self.service, *self.spares]:
            process.kill()

    def _start_service(self) -> Mortal:
        # One is started ahead, so that a restart takes less time.
        while len(self.spares) < 2:
            self.spares.append(Mortal(SERVICE))
        service = self.spares.pop(0)
        stage = self.stage
        answer = service.ask(
            {
                "keys": str(stage.keys),
                "state": str(stage.folder / "server"),
                "program": str(stage.folder / "program"),
                "dealer": stage.dealer,
                "suite": self.suite,
                "timeout": SOON / 2,
            }
        )
        assert answer["event"] == "listening", answer
        return service

    def _undisturbed(self, material: str | None) -> str:
        """A job that goes well; its entry."""
        phase = "infer" if material else "prepare"
        go = self.service.ask({"do": phase, "material": material})
        self.stage.tap.upstream = go["port"]
        client = self.stage.start_client()
        answer = client.ask(infer(material) if material else {"do": "prepare"})
        if material:
            assert answer["event"] == "inferred", answer
            assert np.abs(np.array(answer["output"]) - self.expected).max() < 0.01
        outcome = self.service.answer()
        assert outcome["failure"] is None, outcome
        client.kill()
        self.seconds[phase] = min(self.seconds[phase], outcome["seconds"])
        return str(outcome["material"])

    def _take_aim(self, phase: str, first: int) -> None:
        """Waits for a moment at which the job is probably under way."""
        if self.random.random() < 0.8:
            frames = self.stage.tap.frames
            # On a busy machine the client may come after the grace, and never ask.
            self.stage.tap.wait(
                lambda: any(frame.request.get("request") == phase for frame in frames[first:]),
                GRACE,
            )
            time.sleep(self.random.uniform(0, 0.9) * self.seconds[phase])
        else:
            time.sleep(self.random.uniform(0, 0.2))

    def _kill(self, victim: str, worker: int, client: Mortal) -> None:
        match victim:
            case "worker":
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            case "executor":
                self.service.process.kill()
            case _:
                client.process.kill()

    def _outcome(self, victims: tuple[str, ...]) -> dict[str, Any]:
        """What the service tells of the job; empty if it died before it could."""
        outcome = self.service.answer()
        if "executor" in victims:
            self.service.kill()
            self.service = self._start_service()
        else:
            assert outcome["event"] == "outcome", outcome
        return outcome

    def _interrupted(self, material: str | None) -> str:
        if material is None:
            return "preparing"
        return "inferring" if material in self.stage.audit().begun("server") else "claiming"

    def _check(
        self,
        victims: tuple[str, ...],
        material: str | None,
        answer: dict[str, Any],
        outcome: dict[str, Any],
    ) -> None:
        ledger = self.stage.audit()
        assert ledger.reused() == []
        entries, ready = self._list()
        assert ready <= entries, "an offer without its entry"
        assert not entries & ledger.begun("server"), "what was begun is still there"
        missing = self.ready - {material} - ready
        assert not missing, "entries that no job had are gone"
        if answer.get("event") == "prepared":
            assert answer["material"] in entries, "the client has an entry that the server has not"
        if outcome.get("failure", "") is None and material is None:
            assert outcome["material"] in ready
        if material in ready:
            # Its client came too late, and the service may have died before it could say so.
            assert outcome.get("kept", "executor" in victims)
        elif material:
            assert material not in entries
            assert self.service.ask({"do": "infer", "material": material})["event"] == "refused"
        self.ready = ready & self._client_list()

    def _check_backup(self, material: str) -> None:
        """A client from before the kill, which knows of no use, is refused by a worker too."""
        go = self.service.ask({"do": "prepare"})
        self.stage.tap.upstream = go["port"]
        client = self.stage.start_client("backup")
        assert client.ask(infer(material))["event"] in ("failed", "refused")
        client.kill()
        # The grant was not for that: an honest client still has its entry made.
        client = self.stage.start_client()
        assert client.ask({"do": "prepare"})["event"] == "prepared"
        client.kill()
        assert self.service.answer()["failure"] is None

    def _list(self) -> tuple[set[str], set[str]]:
        """The entries in the service's store, and those that it offers this client."""
        answer = self.service.ask({"do": "list"})
        return set(answer["stored"]), set(answer["ready"])

    def _client_list(self) -> set[str]:
        """The entries that the client's store would still hand out."""
        return self.stage.ready("client")
