"""Writes the files of this folder: torchvision's classifiers as both of PyTorch's exporters write
them, without their large weights, which tests draw.

Needs torch, torchvision and onnxscript, which the project does not; made with torch 2.15.0,
torchvision 0.29.2 and onnxscript 0.7.2:

    python tests/python/compiler/graph/exported_networks/make.py
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import onnx
import torch
from torch import nn
from torchvision import models
from torchvision.models import densenet, efficientnet, inception, mobilenetv3, regnet, resnet

HERE = Path(__file__).parent
KEPT = 16
"""Tensors of so many elements keep their values: shapes, axes and single numbers."""


def mobilenet_v2() -> nn.Module:
    setting = [[1, 8, 1, 1], [6, 12, 2, 2], [6, 16, 1, 2]]
    return models.MobileNetV2(10, 0.5, setting, round_nearest=4)


def mobilenet_v3() -> nn.Module:
    setting, _ = mobilenetv3._mobilenet_v3_conf("mobilenet_v3_small", width_mult=0.25)
    return mobilenetv3.MobileNetV3(setting[:5], 32, num_classes=10)


def efficientnet_b0() -> nn.Module:
    setting, _ = efficientnet._efficientnet_conf("efficientnet_b0", width_mult=0.25, depth_mult=0.4)
    return efficientnet.EfficientNet(setting[:4], 0.0, num_classes=10, last_channel=32)


def efficientnet_v2() -> nn.Module:
    setting, _ = efficientnet._efficientnet_conf("efficientnet_v2_s")
    for block in setting:
        block.num_layers = min(block.num_layers, 1)
    norm = partial(nn.BatchNorm2d, eps=1e-3)
    return efficientnet.EfficientNet(setting[:4], 0.0, num_classes=10, norm_layer=norm)


def mnasnet() -> nn.Module:
    return models.MNASNet(0.25, 10)


def shufflenet_v2() -> nn.Module:
    return models.ShuffleNetV2([2, 2, 2], [8, 16, 32, 64, 64], 10)


def regnet_x() -> nn.Module:
    return _regnet(None)


def regnet_y() -> nn.Module:
    return _regnet(0.25)


def _regnet(squeeze: float | None) -> nn.Module:
    blocks = regnet.BlockParams.from_init_params(
        depth=5, w_0=16, w_a=16.0, w_m=2.0, group_width=8, se_ratio=squeeze
    )
    return regnet.RegNet(blocks, num_classes=10, stem_width=16)


def densenet121() -> nn.Module:
    return densenet.DenseNet(8, (2, 2, 2), 16, num_classes=10)


def resnext50() -> nn.Module:
    block = resnet.Bottleneck
    return resnet.ResNet(block, [1, 1, 1, 1], 10, groups=4, width_per_group=4)


def resnet18() -> nn.Module:
    return resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], 10)


def squeezenet() -> nn.Module:
    return models.SqueezeNet("1_1", 10)


class Heads(nn.Module):  # type: ignore[misc]
    """A network with its auxiliary heads as outputs."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.network.training = True
        return tuple(self.network(x))


def googlenet() -> nn.Module:
    return Heads(models.GoogLeNet(10, aux_logits=True, init_weights=False))


def inception_v3() -> nn.Module:
    return inception.Inception3(10, aux_logits=False, init_weights=False)


NETWORKS = {
    **{
        network.__name__: (network, 32) for network in (mobilenet_v2, mobilenet_v3, efficientnet_b0)
    },
    **{network.__name__: (network, 32) for network in (efficientnet_v2, mnasnet, shufflenet_v2)},
    **{network.__name__: (network, 32) for network in (regnet_x, regnet_y, densenet121)},
    **{network.__name__: (network, 32) for network in (resnext50, resnet18, squeezenet)},
    "googlenet": (googlenet, 64),
    "inception_v3": (inception_v3, 96),
}
"""Each with the side of its images."""


def stripped(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without large weights, names of scopes and what else no test reads."""
    for node in model.graph.node:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
    del model.graph.value_info[:]
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) > KEPT and tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
        tensor.ClearField("doc_string")
    return model


def main() -> None:
    for name, (make, side) in NETWORKS.items():
        torch.manual_seed(0)
        network = make().eval()
        x = torch.randn(1, 3, side, side)
        for exporter in ("script", "dynamo"):
            path = HERE / f"{name}_{exporter}.onnx"
            options = {"opset_version": 17} if exporter == "script" else {"external_data": False}
            torch.onnx.export(
                network, (x,), path, dynamo=exporter == "dynamo", input_names=["x"], **options
            )
            onnx.save(stripped(onnx.load(path)), path)


if __name__ == "__main__":
    main()
