"""Both sides' blindings of one request, without a pipeline."""

from __future__ import annotations

import threading
from pathlib import Path

from privet import _native
from privet.runtime import Credentials
from privet.stream.blinding import DataBlinding, KeyBlinding, Masks, MaterialBlinding, ModelBlinding
from privet.stream.cipher import Cipher
from privet.stream.preprocessing import (
    PreparingData,
    PreparingModel,
    PreprocessingAddress,
    Rules,
    name_of,
)
from privet.stream.stages import Stages
from privet.suites import make_policy


def entry(stages: Stages, weights: bytes, keys: Path) -> tuple[MaterialBlinding, Masks]:
    """A material entry, prepared by both workers on threads of this process."""
    public = stages.program.to_public_bytes()
    files = [Credentials.from_directory(keys, role).files for role in ("server", "client")]
    rules = Rules(make_policy(revealed_values=True).text(), "unused")
    model = PreparingModel(public, weights, files[0], 30.0, rules)
    endpoint = PreprocessingAddress("127.0.0.1", model.listen("127.0.0.1", 0), "127.0.0.1")
    results = []
    fetching = threading.Thread(target=lambda: results.append(model.fetch(30.0)))
    fetching.start()
    material, _ = PreparingData(public, files[1], 30.0).prepare(endpoint, name_of(b"\x01" * 16, 3))
    fetching.join()
    model.close()
    material_entry = results[0]
    assert material_entry is not None
    assert (material_entry.session, material_entry.number) == (b"\x01" * 16, 3)
    return MaterialBlinding(stages, material_entry.material), Masks(3, stages.row_bytes, material)


def blindings(
    stages: Stages, weights: bytes, keys: Path, key: _native.StreamKey
) -> tuple[ModelBlinding, DataBlinding]:
    """For a request under either cipher."""
    if stages.cipher.masked:
        return entry(stages, weights, keys)
    return KeyBlinding(stages, key.public()), DataBlinding()


CIPHERS = [Cipher("paillier"), Cipher("bfv")]
