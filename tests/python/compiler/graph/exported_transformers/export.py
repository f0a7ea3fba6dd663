"""Writes the files beside it, as the exporters of PyTorch write Transformers.

Run it with torch 2.15.0, transformers 5.23.0 and onnxscript 0.7.2 installed. Names say the module
and the exporter. What exporters note of where in Python a node came from is left out. The legacy
exporter fails on `TransformerEncoderLayer` and on decoders of these versions.
"""

# mypy: ignore-errors
from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import onnx
import torch
import transformers as hf
from torch import nn
from torch.nn import functional

HERE = Path(__file__).parent
TOKENS, WIDTH, HEADS, VOCABULARY = 6, 8, 2, 20
BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "intermediate_size": 16,
    "max_position_embeddings": 8,
    "initializer_range": 0.3,
}
GPT2 = {
    "vocab_size": VOCABULARY,
    "n_positions": 8,
    "n_embd": WIDTH,
    "n_layer": 1,
    "n_head": HEADS,
    "initializer_range": 0.3,
}
LLAMA = BERT | {"num_attention_heads": 4, "num_key_value_heads": 2}
VIT = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "intermediate_size": 16,
    "image_size": 8,
    "patch_size": 4,
    "initializer_range": 0.3,
}


class Attention(nn.Module):
    """Packed projections and `scaled_dot_product_attention`, causal."""

    def __init__(self) -> None:
        super().__init__()
        self.packed = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        split = self.packed(x).reshape(1, TOKENS, 3, HEADS, WIDTH // HEADS)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return y.transpose(1, 2).reshape(1, TOKENS, WIDTH)


class Masked(nn.Module):
    """`MultiheadAttention` with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(TOKENS))

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False, attn_mask=self.mask)[0]


class First(nn.Module):
    """The first output of a model of Hugging Face."""

    def __init__(self, kind, config, attention, **settings) -> None:
        super().__init__()
        self.key = "pixel_values" if "image_size" in settings else "input_ids"
        self.options = {} if "image_size" in settings else {"use_cache": False}
        self.model = kind._from_config(config(**settings), attn_implementation=attention)

    def forward(self, x):
        return self.model(**{self.key: x}, **self.options)[0]


def modules() -> Iterator[tuple[str, Callable[[], nn.Module], torch.Tensor]]:
    """Each module, how it is made and an input."""
    hidden = torch.randn(1, TOKENS, WIDTH)
    yield "encoder", lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True), hidden
    yield (
        "encoder-gelu",
        lambda: nn.TransformerEncoderLayer(
            WIDTH, HEADS, 16, batch_first=True, norm_first=True, activation="gelu"
        ),
        hidden,
    )
    yield "masked", Masked, hidden
    yield "attention", Attention, hidden
    ids, image = torch.randint(0, VOCABULARY, (1, TOKENS)), torch.rand(1, 3, 8, 8)
    for kind in ("eager", "sdpa"):
        yield f"bert-{kind}", partial(First, hf.BertModel, hf.BertConfig, kind, **BERT), ids
        yield f"gpt2-{kind}", partial(First, hf.GPT2LMHeadModel, hf.GPT2Config, kind, **GPT2), ids
        yield f"llama-{kind}", partial(First, hf.LlamaModel, hf.LlamaConfig, kind, **LLAMA), ids
    yield "vit", partial(First, hf.ViTForImageClassification, hf.ViTConfig, "sdpa", **VIT), image


def written(module: nn.Module, sample: torch.Tensor, exporter: str) -> onnx.ModelProto:
    """What `legacy` or `dynamo`, with its usual opset or 23, writes."""
    file = io.BytesIO()
    names = {"input_names": ["x"], "output_names": ["y"]}
    if exporter == "legacy":
        torch.onnx.export(module, (sample,), file, dynamo=False, opset_version=17, **names)
    else:
        opset = {"opset_version": 23} if exporter == "dynamo23" else {}
        program = torch.onnx.export(module, (sample,), dynamo=True, verbose=False, **names, **opset)
        file.write(program.model_proto.SerializeToString())
    return onnx.load_from_string(file.getvalue())


def stripped(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without what was noted about nodes and tensors."""
    del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:]
    parts = [*model.graph.node, *model.graph.initializer, *model.graph.input, *model.graph.output]
    for part in parts:
        part.doc_string = ""
        del part.metadata_props[:]
    return model


def main() -> None:
    """Each module through each exporter that takes it."""
    torch.backends.mha.set_fastpath_enabled(False)
    for name, make, sample in modules():
        for exporter in ("legacy", "dynamo", "dynamo23"):
            if exporter == "dynamo23" and name.endswith("eager"):
                continue
            torch.manual_seed(0)
            try:
                model = written(make().eval(), sample, exporter)
            except Exception as error:  # what an exporter does not take
                print(f"{name}-{exporter}: {type(error).__name__} {str(error)[:80]}")  # noqa: T201
                continue
            onnx.save(stripped(model), HERE / f"{name}-{exporter}.onnx")


if __name__ == "__main__":
    main()
