"""Compiles a version in a process of its own, so that the control plane keeps answering.

`python -m privet.serve.repository.build` reads a job as JSON from standard input and prints what
came of it: `{"folder": ...}` or `{"error": ...}`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.errors import ModelError, PrivetError
from privet.parties.calibration import read_samples
from privet.parties.catalog import compile_once
from privet.serve.repository.config import ModelConfig
from privet.serve.repository.files import Source

Build = Callable[[Source, ModelConfig], Awaitable[Path]]
"""Compiles a version; the folder with its program. Raises `PrivetError`."""


@dataclass(frozen=True)
class Builder:
    """Compiles into `programs`; what was compiled before is taken from there."""

    programs: Path

    async def __call__(self, source: Source, config: ModelConfig) -> Path:
        """The folder with the program.

        # Errors
        `ModelError` with the compiler's own message, or if its process died.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", __name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            out, _ = await process.communicate(json.dumps(self._job(source, config)).encode())
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode != 0 or not out:
            raise ModelError(f"compiling {source.onnx} ended with code {process.returncode}")
        answer = json.loads(out)
        if "error" in answer:
            raise ModelError(answer["error"])
        return Path(answer["folder"])

    def _job(self, source: Source, config: ModelConfig) -> dict[str, Any]:
        return {
            "onnx": str(source.onnx),
            "programs": str(self.programs),
            "calibration": str(source.calibration) if source.calibration else None,
            "name": source.model,
            "bits": config.bits,
            "scale": config.scale,
            "batch": config.batch,
            "input_range": config.input_range,
        }


def build(job: dict[str, Any]) -> Path:
    """Compiles here and now."""
    calibration = job["calibration"]
    given = job["input_range"]
    return compile_once(
        Path(job["onnx"]),
        Path(job["programs"]),
        bits=job["bits"],
        scale=job["scale"],
        calibration=read_samples(Path(calibration)) if calibration else None,
        input_range=(given[0], given[1]) if given else None,
        name=job["name"],
        batch=job["batch"],
    )


def main() -> int:
    """Does the job on standard input."""
    try:
        answer = {"folder": str(build(json.load(sys.stdin)))}
    except (PrivetError, OSError) as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
