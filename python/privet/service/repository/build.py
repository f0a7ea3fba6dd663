"""Compiles a version in a process of its own, so that the control plane keeps answering."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privet.errors import ModelError
from privet.service import child
from privet.service.repository.config import ModelConfig
from privet.service.repository.files import Source

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
            *("-m", __package__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            out, _ = await process.communicate(json.dumps(self._job(source, config)).encode())
        except BaseException:
            await child.kill(process)
            raise
        if process.returncode != 0 or not out:
            raise ModelError(f"compiling {source.onnx} ended with code {process.returncode}")
        answer = json.loads(out)
        if "error" in answer:
            raise ModelError(answer["error"])
        return Path(answer["folder"])

    def _job(self, source: Source, config: ModelConfig) -> dict[str, Any]:
        widths = config.types[0].precision.with_widths(
            config.bits, config.scale, config.weight_scale
        )
        return {
            "onnx": str(source.onnx),
            "programs": str(self.programs),
            "calibration": str(source.calibration) if source.calibration else None,
            "name": source.model,
            **asdict(widths),
            "batch": config.batch,
            "input_range": config.input_range,
            "sound": config.sound,
            "reveal": config.reveal,
            "client_side": config.client_side,
            "shapes": dict(config.shapes),
        }
