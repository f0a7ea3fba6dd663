"""Compiles a network for SPU: `.venv-spu/bin/python -m benches.peers.spu_compile FOLDER`.

Reads what `benches.exchange` wrote and `input.npy`, images with channels first. Writes for the
parties `executable.bin`, `names.json`, `input-last.npy` and `weights-last.npz` (channels last), and
`expected.npy`, the output in floating point.
"""

# mypy: disable-error-code="import-not-found,import-untyped"
from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import numpy as np
from spu import libspu
from spu.utils import frontend

from benches.peers.network import arranged, function, to_channels_last


def main(folder: Path) -> None:
    """Does the job of one task's folder."""
    network = json.loads((folder / "network.json").read_text())
    with np.load(folder / "weights.npz") as arrays:
        weights = arranged(network, dict(arrays))
    x = np.ascontiguousarray(to_channels_last(np.load(folder / "input.npy")))
    predict = function(network, list(weights))
    operands = [x, *weights.values()]
    names = ["input", *weights]
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        predict,
        operands,
        {},
        names,
        [libspu.Visibility.VIS_SECRET] * len(operands),
        lambda outputs: [f"output{index}" for index in range(len(outputs))],
    )
    (folder / "executable.bin").write_bytes(executable.code)
    document = {"inputs": names, "outputs": list(executable.output_names)}
    (folder / "names.json").write_text(json.dumps(document))
    np.save(folder / "input-last.npy", x)
    np.savez(folder / "weights-last.npz", **weights)
    with jax.default_device(jax.devices("cpu")[0]):
        np.save(folder / "expected.npy", np.asarray(jax.jit(predict)(*operands)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
