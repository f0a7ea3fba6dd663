"""Parties as processes that can be killed, around a wiretap, and their stores on disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.attacks.scene import INPUT, SOON
from tests.kills.ledger import Ledger
from tests.kills.wiretap import Party, Wiretap

from privet.compiler.compile import Compiled
from privet.runtime import Credentials, Dealer
from privet.suites import Fss, Gmw, MaterialSuite

MORTAL = Path(__file__).with_name("mortal.py")


WAYS: tuple[MaterialSuite, ...] = (
    Gmw(),
    Gmw(correlations="dealer"),
    Gmw(linear="online"),
    Fss(),
    Fss(security="malicious"),
)
"""All ways in which material is made and used."""


def named(way: MaterialSuite) -> str:
    """What a test with a suite is called."""
    return way.alternatives()[0].label.replace(" ", "-")


class Mortal:
    """A party's process, which runs `script`."""

    def __init__(self, script: Path = MORTAL) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAYON_NUM_THREADS": "1"},
        )

    def tell(self, line: dict[str, Any]) -> None:
        """Gives it its job or an order."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Its next answer; empty if it died first."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line.endswith("\n") else {}
        return answer

    def ask(self, line: dict[str, Any]) -> dict[str, Any]:
        """Gives an order and waits for the answer."""
        self.tell(line)
        return self.answer()

    def kill(self) -> None:
        """Ends it at once, as `kill -9` does."""
        self.process.kill()
        self.process.wait(SOON)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@dataclass
class Stage:
    """A client and a server of one program; between them a wiretap, and its ledger.

    `ahead` is how many processes are started before they are needed.
    """

    folder: Path
    keys: Path
    way: MaterialSuite
    tap: Wiretap
    dealer: str | None
    ahead: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    spares: list[Mortal] = field(default_factory=list)
    playing: list[Mortal] = field(default_factory=list)

    def start_server(self) -> Mortal:
        """Starts the server on its state; the tap leads to it from now on."""
        server = self._start("server", "server")
        self.tap.upstream = server.answer()["port"]
        return server

    def start_client(self, state: str = "client") -> Mortal:
        """Starts a client whose state is the folder of this name."""
        return self._start("client", state)

    def store(self, party: Party, state: str | None = None) -> Path:
        """The folder of a party's store."""
        return self.folder / (state or party) / party

    def files(self, party: Party) -> set[str]:
        """The files of entries that are ready at a party."""
        return {path.name for path in (self.store(party) / "ready").iterdir()}

    def ready(self, party: Party) -> set[str]:
        """The entries that a party's store would still hand out."""
        entries = {name.removesuffix(".json") for name in self.files(party) if ".json" in name}
        return entries - {path.name for path in (self.store(party) / "spent").iterdir()}

    def setups(self, party: Party) -> dict[str, str]:
        """The entries at a party that were made with a setup, and which one that was."""
        setups = {}
        for path in (self.store(party) / "ready").glob("*.json"):
            setup = json.loads(path.read_text()).get("setup")
            if setup is not None:
                setups[path.stem] = setup
        return setups

    def keeps(self, party: Party) -> set[str]:
        """The setups that a party keeps; marks of checks and locks lie beside them."""
        files = (self.store(party) / "setups").glob("*/*")
        return {path.name for path in files if not path.suffix and path.name != "lock"}

    def copy(self, source: str, target: str) -> None:
        """Makes the state `target` what the state `source` is now."""
        shutil.rmtree(self.folder / target, ignore_errors=True)
        shutil.copytree(self.folder / source, self.folder / target)

    def audit(self) -> Ledger:
        """The ledger, with everything that has passed the tap."""
        self.ledger.read(self.tap.frames)
        return self.ledger

    def end(self) -> None:
        """Ends all processes."""
        for mortal in self.spares + self.playing:
            mortal.kill()

    def _start(self, role: str, state: str) -> Mortal:
        while len(self.spares) < self.ahead + 1:
            self.spares.append(Mortal())
        mortal = self.spares.pop(0)
        self.playing.append(mortal)
        mortal.tell(
            {
                "role": role,
                "keys": str(self.keys),
                "state": str(self.folder / state),
                "program": str(self.folder / "program"),
                "port": self.tap.port,
                "dealer": self.dealer,
                "way": self.way.to_json(),
                "timeout": SOON,
            }
        )
        return mortal


def infer(material: str | None) -> dict[str, Any]:
    """The order to use up an entry, always on the same input; without one, on what is there."""
    return {"do": "infer", "material": material, "input": INPUT.tolist()}


@contextmanager
def staged(
    folder: Path, keys: Path, compiled: Compiled, way: MaterialSuite, ahead: int = 0
) -> Iterator[Stage]:
    """A stage with nobody on it yet but the dealer, whom nobody kills."""
    compiled.save(folder / "program")
    credentials = Credentials.from_directory(keys, "dealer")
    with Wiretap(keys).listening() as tap, Dealer(credentials, patience=0.5) as dealer:
        dealer.start()
        address = f"127.0.0.1:{dealer.address[1]}" if way.dealt else None
        stage = Stage(folder, keys, way, tap, address, ahead)
        try:
            yield stage
        finally:
            stage.end()
