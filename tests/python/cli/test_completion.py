"""The shell completes commands, and options of commands that are loaded for that."""

from __future__ import annotations

import os
import subprocess
import sys


def completed(words: str) -> set[str]:
    """What bash offers for the last of the words."""
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    process = subprocess.run(
        [sys.executable, "-c", "from privet.cli import app; app(prog_name='privet')"],
        env=os.environ | environment | {"_PRIVET_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=False,
    )
    return set(process.stdout.split())


def test_commands_and_options() -> None:
    assert completed("privet do") == {"doctor"}
    assert completed("privet serve --answ") == {"--answers-per-hour"}
