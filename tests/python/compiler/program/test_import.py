"""`import privet` brings no heavy library along."""

from __future__ import annotations

import subprocess
import sys

import privet

HEAVY = ("numpy", "onnx", "onnxruntime", "safetensors", "cryptography")


def test_import_is_light() -> None:
    code = f"import sys, privet; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_facade_gives_what_it_lists() -> None:
    for name in privet.__all__:
        assert getattr(privet, name) is not None
