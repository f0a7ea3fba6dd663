"""Plans of suite `ckks`, by the Go program `privet-ckks` (folder `ckks/`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privet.errors import Misuse, PrivetError, error_named

PROGRAM = "privet-ckks"
VARIABLE = "PRIVET_CKKS"
"""Environment variable that names the program, where it is not beside the interpreter."""

MODULE = "privet-ckks.wasm"
MODULE_VARIABLE = "PRIVET_CKKS_WASM"
"""Environment variable that names the client for browsers, where it is elsewhere."""

PLANNING_SECONDS = 600.0


def program_path() -> str:
    """Where the program lies. Raises `Misuse` if there is none."""
    beside = Path(sys.executable).with_name(PROGRAM)
    candidates = (os.environ.get(VARIABLE), str(beside), PROGRAM)
    for candidate in candidates:
        path = shutil.which(candidate) if candidate else None
        if path is not None:
            return path
    raise Misuse(
        f"suite ckks needs the program {PROGRAM}: the wheel of `make wheel` holds it, `make setup` "
        "builds it where Go 1.26 or newer is installed, or name it in the environment variable "
        f"{VARIABLE}"
    )


def module_paths() -> tuple[Path, Path]:
    """Where the client for browsers lies: the WebAssembly module, and Go's script that runs it,
    which has the same name and ends in `.js`. Raises `Misuse` if they are not there."""
    setting = os.environ.get(MODULE_VARIABLE)
    module = Path(setting) if setting else Path(sys.executable).with_name(MODULE)
    script = module.with_suffix(".js")
    if not module.is_file() or not script.is_file():
        raise Misuse(
            f"browsers need {MODULE} and its script: `make setup` builds them where Go 1.26 or "
            f"newer is installed, or name the module in {MODULE_VARIABLE}"
        )
    return module, script


def plan_ckks(
    public: bytes,
    scenario: str = "encrypted-data",
    flooding: str = "statistical",
    parties: int = 2,
    private: bytes | None = None,
) -> dict[str, Any]:
    """How suite `ckks` runs a program: parameters, packing of every layer, bytes and memory.

    `parties` counts in scenario `collective`. With the `private` half, weights that leave no room
    for flooding are refused, as a run refuses them. The keys are those of `Summary` in
    `ckks/internal/plan/summary.go`, of a cohort with those of `ckks/internal/cohort/summary.go`.

    Raises `Misuse` if a layer does not run in this suite, or no secure parameters have room for it.
    """
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        (Path(folder) / "program.json").write_bytes(public)
        if private is not None:
            (Path(folder) / "weights.safetensors").write_bytes(private)
        job = Path(folder) / "job.json"
        options = {"scenario": scenario, "statistical": flooding == "statistical"}
        options |= {"members": parties}
        job.write_text(json.dumps({"role": "plan", "program": folder, **options}))
        process = subprocess.run(
            [program_path(), str(job)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PLANNING_SECONDS,
        )
    for line in process.stdout.splitlines():
        message: dict[str, Any] = json.loads(line)
        if message["event"] == "plan":
            plan: dict[str, Any] = message["plan"]
            return plan
        raise_failure(message)
    raise PrivetError(f"{PROGRAM} ended (exit code {process.returncode}): {process.stderr.strip()}")


def raise_failure(message: Mapping[str, Any]) -> None:
    """Raises the error that a party's event `failed` tells of; other events are left alone."""
    if message["event"] == "failed":
        raise error_named(message["type"], message["message"])
