"""Trains `zoo/models/docs-gpt.onnx` and `docs-bert.onnx` on docstrings of Python's library.

Run `python zoo/train/docs.py gpt` or `bert` with the package `privet` importable and the
requirements beside this file installed. The same versions, Python's too, on the same CPU give the
same file.
"""

# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import ast
import platform
import re
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from export import export
from fit import Adam, Labels, batches, cross_entropy, minimise, split
from network import forward, initial

from privet.zoo.trained import CHARACTERS, docs_bert, docs_gpt

SEED = 20260101
LIBRARY = Path(sysconfig.get_paths()["stdlib"])
SKIPPED = {"test", "idlelib", "lib2to3", "site-packages", "config", "ensurepip", "pydoc_data"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
HELD = 0.1
CLASSES = 8
START, UNKNOWN, NOTHING = "[start]", "[unknown]", "[nothing]"
BATCH = 32
GPT_STEPS, GPT_RATE = 6000, 2e-3
BERT_EPOCHS, BERT_RATE = 12, 1e-3
FORGOTTEN = 0.15
"""The share of words that a training step does not see."""


def docstrings() -> dict[str, list[str]]:
    """Each top-level module's docstrings, without repetitions."""
    texts_of: dict[str, dict[str, None]] = defaultdict(dict)
    for path in sorted(LIBRARY.rglob("*.py")):
        parts = path.relative_to(LIBRARY).with_suffix("").parts
        if SKIPPED.intersection(parts) or "tests" in parts or parts[0].startswith(("_", "config-")):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if text:
                texts_of[parts[0]][text] = None
    return {module: list(texts) for module, texts in texts_of.items()}


def train_gpt() -> None:
    """The next character; a tenth of the docstrings are held out."""
    generator = np.random.default_rng(SEED)
    texts = [text for group in docstrings().values() for text in group]
    order = generator.permutation(len(texts))
    count = round(HELD * len(texts))
    train, test = (_characters([texts[i] for i in part]) for part in (order[count:], order[:count]))
    whole, last = docs_gpt(every=True), docs_gpt()
    length = last.input.shape[1]

    def windows(text: Labels, count: int) -> Labels:
        starts = generator.integers(0, len(text) - length, count)
        return np.stack([text[start : start + length + 1] for start in starts])

    def steps() -> Iterator[tuple[Any, Labels]]:
        for _ in range(GPT_STEPS):
            window = windows(train, BATCH)
            yield window[:, :-1], window[:, 1:].reshape(-1)

    weights = minimise(
        lambda p, x, y: cross_entropy(forward(whole, p, x).reshape(-1, len(CHARACTERS)), y),
        initial(whole),
        Adam(rate=GPT_RATE, decay=0.1, steps=GPT_STEPS),
        steps(),
    )
    card = {
        "input": f"{length} characters, each its place in the classes, [1, {length}]",
        "source": f"docstrings of Python {platform.python_version()}'s library",
        "classes": list(CHARACTERS),
        "trained_on": len(train),
    }
    window, samples = windows(test, 400), windows(train, 64)
    export(last, weights, window[:, :-1], window[:, :-1], window[:, -1], samples[:, :-1], card)


def train_bert() -> None:
    """Which module; a tenth of the docstrings of each is held out."""
    graph = docs_bert()
    (_, length), (vocabulary, _) = graph.input.shape, graph.weights[0].shape
    texts_of = docstrings()
    modules = sorted(sorted(texts_of, key=lambda name: -len(texts_of[name]))[:CLASSES])
    texts = [_words(text)[: length - 1] for module in modules for text in texts_of[module]]
    labels = np.repeat(np.arange(CLASSES), [len(texts_of[module]) for module in modules])
    train, test = split(labels, HELD, SEED)
    counts = Counter(word for index in train for word in texts[index])
    most = [word for word, _ in counts.most_common(vocabulary - 3)]
    words = [START, UNKNOWN, NOTHING, *most]
    places = {word: place for place, word in enumerate(words)}
    inputs = np.full((len(texts), length), places[NOTHING])
    for row, text in zip(inputs, texts, strict=True):
        row[0] = places[START]
        row[1 : 1 + len(text)] = [places.get(word, places[UNKNOWN]) for word in text]

    generator = np.random.default_rng(SEED)

    def forgotten(rows: Labels) -> Labels:
        mask = (generator.random(rows.shape) < FORGOTTEN) & (rows > places[NOTHING])
        return np.where(mask, places[UNKNOWN], rows)

    order = batches(generator, len(train), BATCH, BERT_EPOCHS)
    weights = minimise(
        lambda p, x, y: cross_entropy(forward(graph, p, x), y),
        initial(graph),
        Adam(BERT_RATE, decay=0.1, steps=BERT_EPOCHS * (len(train) // BATCH)),
        ((forgotten(inputs[train[step]]), labels[train[step]]) for step in order),
    )
    card = {
        "input": f"[start] and {length - 1} words, each its place in words, [1, {length}]",
        "source": f"docstrings of Python {platform.python_version()}'s library",
        "classes": modules,
        "words": words,
        "trained_on": len(train),
    }
    mixed = generator.permutation(test)
    samples = inputs[generator.permutation(train)]
    export(graph, weights, inputs[mixed], inputs[mixed], labels[mixed], samples, card)


def _characters(texts: list[str]) -> Labels:
    places = {character: place for place, character in enumerate(CHARACTERS)}
    text = "\n\n".join(texts)
    return np.array([places[character] for character in text if character in places])


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|[^a-z\s]", text.lower())


if __name__ == "__main__":
    {"gpt": train_gpt, "bert": train_bert}[sys.argv[1]]()
