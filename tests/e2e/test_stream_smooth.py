"""The pipeline of suite `stream` with smooth activations: the fixed-point executor's integers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.python.stream import models

from privet import keys
from privet.compiler.executor import execute
from privet.stream.cipher import BFV, PAILLIER, Cipher
from privet.stream.pair import pair


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "cipher", [pytest.param(PAILLIER, marks=pytest.mark.slow), BFV], ids=lambda cipher: cipher.name
)
def test_a_pipeline_computes_smooth_activations_in_the_clear(
    cipher: Cipher, tmp_path: Path
) -> None:
    compiled = models.gated()
    compiled.save(tmp_path / "program")
    keys.make(tmp_path / "keys")
    samples = [np.random.default_rng(seed).uniform(-1, 1, (1, 6)) for seed in range(3)]

    async def ask() -> list[list[np.ndarray]]:
        async with pair(tmp_path / "program", tmp_path / "keys", cipher=cipher) as parties:
            return list(
                await asyncio.gather(*(parties.data.integers([array]) for array in samples))
            )

    for sample, output in zip(samples, asyncio.run(ask()), strict=True):
        expected = execute(compiled.program, compiled.weights, [sample]).integers
        assert all(
            np.array_equal(array, other) for array, other in zip(output, expected, strict=True)
        )
