"""A decoder of random weights in both forms: of whole texts, and token by token."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import privet
from privet.compiler.compile import Compiled
from privet.runtime.generate import sessions
from privet.zoo.gpt import cached, gpt
from privet.zoo.graph import GraphBuilder
from privet.zoo.initial import draw
from privet.zoo.writer import write

CONTEXT, VOCABULARY = 6, 11
TEXTS = np.random.default_rng(3).integers(0, VOCABULARY, (6, CONTEXT))


def token_by_token() -> GraphBuilder:
    """The form with a cache."""
    return cached("decoder", layers=1, heads=2, width=16, context=CONTEXT, vocabulary=VOCABULARY)


def of_whole_texts() -> GraphBuilder:
    """The form without."""
    return gpt("decoder", layers=1, heads=2, width=16, tokens=CONTEXT, vocabulary=VOCABULARY)


def written(graph: GraphBuilder, folder: Path) -> Path:
    """The ONNX file of a form: weights of the same names are the same in both."""
    path = folder / f"{graph.name}-{len(graph.more_inputs)}.onnx"
    write(graph, path, lambda weight: draw("decoder", weight))
    return path


@cache
def compiled(form: Callable[[], GraphBuilder], folder: Path) -> Compiled:
    """A form compiled on `TEXTS`."""
    samples = sessions(TEXTS) if form is token_by_token else [text[None] for text in TEXTS]
    model = written(form(), folder)
    return privet.compile(model, calibration=samples, bits=40)
