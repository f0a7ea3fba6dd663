"""Compiles a version in a process of its own, so that the control plane keeps answering."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privet.compiler.compile import PUBLIC_FILE
from privet.errors import ModelError, error_named
from privet.service import child
from privet.service.repository.config import MODEL_FILE, ModelConfig
from privet.service.repository.files import Source
from privet.start import START
from privet.suites.spawned import deaf_to_ctrl_c

SHARED = ("batch", "input_range", "sound", "reveal", "client_side")
"""Options of `config.toml` that are those of `privet.compile`."""
Build = Callable[[Source, ModelConfig], Awaitable[Path]]
"""Compiles a version; the folder with its program. Raises `PrivetError`."""


@dataclass(frozen=True)
class Builder:
    """Compiles into `programs`; what was compiled before is taken from there."""

    programs: Path

    async def __call__(self, source: Source, config: ModelConfig) -> Path:
        """The folder with the program; of a public half, with that alone. Raises the compiler's
        own; `ModelError` if its process died, or if the suite needs weights and there are none, or
        there are and the service must not have them."""
        self._check_half(source, config)
        if source.is_public_half:
            return await asyncio.to_thread(self._keep, source.onnx)
        with deaf_to_ctrl_c():
            process = await asyncio.create_subprocess_exec(
                *START,
                "privet.runtime.compilation",
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
            raise error_named(answer["type"], answer["error"])
        return Path(answer["folder"])

    @staticmethod
    def _check_half(source: Source, config: ModelConfig) -> None:
        suite = config.session
        weights = suite is None or suite.serves_weights
        if weights and source.is_public_half:
            raise ModelError(
                f"{source.onnx} is the public half of a program, and this suite takes the weights "
                f"here: put the model into {source.onnx.with_name(MODEL_FILE)}"
            )
        if suite is not None and not weights and not source.is_public_half:
            raise ModelError(
                f"{source.onnx} has weights, which stay with {suite.partners[0]} in this suite: "
                f"`privet compile` it there, and serve {PUBLIC_FILE} alone"
            )

    def _keep(self, public: Path) -> Path:
        """A copy, which stays as it is."""
        data = public.read_bytes()
        folder = self.programs / hashlib.sha256(data).hexdigest()[:32]
        if not (folder / PUBLIC_FILE).is_file():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial = folder / f"{PUBLIC_FILE}.{os.getpid()}"
            partial.write_bytes(data)
            partial.rename(folder / PUBLIC_FILE)
        return folder

    def _job(self, source: Source, config: ModelConfig) -> dict[str, Any]:
        widths = config.types[0].precision.with_widths(
            config.bits, config.scale, config.weight_scale
        )
        options = asdict(widths) | {
            "name": source.model,
            "widest": min(suite_type().widest_ring for suite_type in config.types),
            "input_shapes": dict(config.shapes),
            **{name: getattr(config, name) for name in SHARED},
        }
        return {
            "model": str(source.onnx),
            "programs": str(self.programs),
            "calibration": str(source.calibration) if source.calibration else None,
            "options": options,
        }
