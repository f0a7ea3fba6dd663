"""Exports small networks with the tools that people use: `python make.py` writes the files.

It needs torch and onnxscript, or keras, tensorflow and tf2onnx, which Privet does not; the files
here were written with versions 2.15.0 and 0.7.2, and 3.15.1, 2.21.0 and 1.17.0.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent


def by_torch() -> None:
    """A U-Net, an autoencoder, a bag of embeddings, and data with categories."""
    import torch
    from torch import nn
    from torch.nn import functional

    def block(channels: int, out: int) -> nn.Module:
        first, second = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        return nn.Sequential(first, nn.BatchNorm2d(out), nn.ReLU(), second, nn.ReLU())

    class UNet(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.down, self.bottom, self.up = block(1, 4), block(4, 8), block(8, 4)
            self.wide, self.last = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(4, 2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            skip = self.down(x)
            back = self.wide(self.bottom(functional.max_pool2d(skip, 2)))
            return torch.sigmoid(self.last(self.up(torch.cat([back, skip], 1))))

    class Bag(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.bag, self.last = nn.EmbeddingBag(40, 8, mode="mean"), nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(self.bag(x))

    class Categories(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Embedding(7, 3), nn.Embedding(12, 4)
            self.last = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(torch.cat([self.a(x[:, 0]), self.b(x[:, 1])], 1))

    codes = nn.Sequential(nn.Linear(30, 16), nn.GELU(), nn.Linear(16, 4))
    autoencoder = nn.Sequential(codes, nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 30))
    nets = {
        "unet": (UNet(), torch.randn(1, 1, 16, 16)),
        "autoencoder": (autoencoder, torch.randn(1, 30)),
        "bag": (Bag(), torch.randint(0, 40, (1, 6))),
        "categories": (Categories(), torch.randint(0, 7, (1, 2))),
    }
    for name, (net, x) in nets.items():
        for exporter in ("script", "dynamo"):
            torch.onnx.export(
                net.eval(),
                (x,),
                HERE / f"{name}_{exporter}.onnx",
                dynamo=exporter == "dynamo",
                external_data=False,
                input_names=["x"],
            )


def by_keras() -> None:
    """Convolutions and a dense network."""
    import keras
    import tensorflow
    import tf2onnx

    layers = keras.layers
    image = [
        layers.Conv2D(4, 3, activation="relu"),
        *(layers.BatchNormalization(), layers.MaxPooling2D(), layers.DepthwiseConv2D(3)),
        *(layers.Activation("swish"), layers.GlobalAveragePooling2D(), layers.Dense(5, "softmax")),
    ]
    rows = [layers.Dense(16, "tanh"), layers.LayerNormalization(), layers.Dense(3, "sigmoid")]
    nets = {"convolutions": ([12, 12, 3], image), "dense": ([10], rows)}
    for name, (shape, stack) in nets.items():
        net = keras.Sequential([keras.Input(shape), *stack])
        entry = tensorflow.TensorSpec([1, *shape], tensorflow.float32, name="x")
        function = tensorflow.function(lambda x, net=net: net(x), input_signature=[entry])
        tf2onnx.convert.from_function(
            function, input_signature=[entry], output_path=str(HERE / f"{name}_keras.onnx")
        )


if __name__ == "__main__":
    if importlib.util.find_spec("torch"):
        by_torch()
    if importlib.util.find_spec("keras"):
        by_keras()
