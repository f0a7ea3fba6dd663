"""Exports small recurrent nets with the tools that people use: `python make.py` writes the files.

It needs torch and onnxscript, or keras, tensorflow and tf2onnx, which Privet does not; the files
here were written with versions 2.15.0 and 0.7.2, and 3.15.1, 2.21.0 and 1.17.0.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent
STEPS, WIDTH, HIDDEN, CLASSES = 5, 6, 8, 3
NETS: dict[str, tuple[str, dict[str, object]]] = {
    "lstm": ("LSTM", {}),
    "gru": ("GRU", {}),
    "rnn": ("RNN", {}),
    "two": ("LSTM", {"bidirectional": True, "num_layers": 2}),
}


def by_torch() -> None:
    """With both of torch's exporters."""
    import torch

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, kind: str, options: dict[str, object]) -> None:
            super().__init__()
            self.net = getattr(torch.nn, kind)(WIDTH, HIDDEN, batch_first=True, **options)
            width = HIDDEN * (2 if "bidirectional" in options else 1)
            self.head = torch.nn.Linear(width, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.net(x)[0][:, -1])

    for name, (kind, options) in NETS.items():
        for exporter in ("legacy", "dynamo"):
            torch.manual_seed(0)
            torch.onnx.export(
                Net(kind, options).eval(),
                (torch.zeros(1, STEPS, WIDTH),),
                str(HERE / f"{name}_torch_{exporter}.onnx"),
                input_names=["x"],
                output_names=["y"],
                dynamo=exporter == "dynamo",
                external_data=False,
            )


def by_keras() -> None:
    """With tf2onnx: unrolled by Keras, or as a loop."""
    import numpy as np

    setattr(np, "object", object)  # noqa: B010  # tf2onnx reads it, and numpy 2 has it not
    import keras
    import onnx
    import tensorflow as tf
    import tf2onnx

    kinds = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}
    for name, kind in kinds.items():
        for form in ("unrolled", "loop"):
            keras.utils.set_random_seed(0)
            layer = kind(HIDDEN, unroll=form == "unrolled")
            entry = keras.Input((STEPS, WIDTH), batch_size=1)
            net = keras.Sequential([entry, layer, keras.layers.Dense(CLASSES)])
            signature = [tf.TensorSpec((1, STEPS, WIDTH), tf.float32, name="x")]
            proto, _ = tf2onnx.convert.from_function(
                tf.function(net, input_signature=signature), input_signature=signature, opset=17
            )
            onnx.save(proto, HERE / f"{name}_keras_{form}.onnx")


if __name__ == "__main__":
    by_torch() if importlib.util.find_spec("torch") else by_keras()
