"""Prints the known answer of `service.rs`: a digit, and what ONNX Runtime says of it.

`python crates/client/tests/digit.py > crates/client/tests/digit.json`
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime

MODELS = Path(__file__).parents[3] / "zoo" / "models"


def main() -> None:
    """Prints it."""
    image = np.load(MODELS / "digits-cnn.npz")["inputs"][:1]
    session = onnxruntime.InferenceSession(MODELS / "digits-cnn.onnx")
    (logits,) = session.run(None, {"input": image})
    print(json.dumps({"image": image.ravel().tolist(), "logits": logits.ravel().tolist()}))


if __name__ == "__main__":
    main()
