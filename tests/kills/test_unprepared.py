"""Correlations that are made while the network runs are gone with whoever is killed."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
from tests.attacks.scene import INPUT, SOON
from tests.kills.stage import Mortal, Stage, infer, staged
from tests.kills.wiretap import Party

from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.suites import Gmw

KILLS = 8

PARTIES: tuple[Party, ...] = ("client", "server")


def kept(stage: Stage) -> list[Path]:
    """All files of entries, ready or spent, in both stores."""
    folders = [stage.store(party) / kind for party in PARTIES for kind in ("ready", "spent")]
    return [path for folder in folders if folder.is_dir() for path in folder.iterdir()]


def wait_for_the_server(stage: Stage, first: int) -> None:
    """Waits until the server has said something after so many frames."""
    frames = stage.tap.frames
    assert stage.tap.wait(lambda: any(frame.sender == "server" for frame in frames[first:]), SOON)


def test_an_inference_without_material_leaves_nothing_to_be_used_again(
    tmp_path: Path, key_folder: Path, compiled: Compiled
) -> None:
    expected = execute(compiled.program, compiled.weights, {"x": INPUT}).outputs["y"]
    chance = random.Random(KILLS)
    with staged(tmp_path, key_folder, compiled, Gmw(linear="online"), ahead=2) as stage:
        party: dict[Party, Mortal] = {
            "server": stage.start_server(),
            "client": stage.start_client(),
        }

        def undisturbed() -> float:
            start = time.monotonic()
            answer = party["client"].ask(infer(None))
            assert np.allclose(answer["output"], expected, atol=0.1), answer
            return time.monotonic() - start

        seconds = min(undisturbed() for _ in range(3))
        cut = 0
        for number in range(KILLS):
            victim, first = PARTIES[number % 2], len(stage.tap.frames)
            party["client"].tell(infer(None))
            wait_for_the_server(stage, first)
            time.sleep(chance.uniform(0, 0.7) * seconds)
            party[victim].process.kill()
            cut += party["client"].answer().get("event") != "inferred"
            party[victim].kill()
            party["client"].kill()
            assert stage.tap.quiet(SOON), "a party still waits for one that was killed"
            # A file that was being written is no entry, and goes when the store is opened again.
            partials = [path for path in kept(stage) if path.suffix == ".partial"]
            assert set(kept(stage)) <= set(partials)
            if victim == "server":
                party["server"] = stage.start_server()
            party["client"] = stage.start_client()
            undisturbed()
            assert not any(path.exists() for path in partials)
        assert cut >= KILLS // 2
        ledger = stage.audit()
        assert len(ledger.uses) == 3 + 2 * KILLS
        assert ledger.reused() == []
