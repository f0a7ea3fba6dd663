"""A Transformer says which library a sentence is about; its words stay with the reader.

Both parties run on this machine. The model is `docs-bert` of the zoo, trained on docstrings of
Python's library: 31 words, each its place in a list, and a start.
"""

import json
from pathlib import Path

import numpy as np

import privet

MODELS = Path(__file__).parents[2] / "zoo" / "models"
card = json.loads((MODELS / "docs-bert.json").read_text())
START, UNKNOWN, NOTHING = range(3)


def tokens(sentence: str) -> np.ndarray:
    """The words of a sentence as the model takes them, `[1, 32]`."""
    places = {word: place for place, word in enumerate(card["words"])}
    words = [places.get(word, UNKNOWN) for word in sentence.lower().split()][:31]
    return np.array([[START, *words, *[NOTHING] * (31 - len(words))]])


# The owner of the model compiles it; real sentences fix the ranges of its numbers.
samples = np.load(MODELS / "docs-bert-samples.npy")
model = privet.compile(MODELS / "docs-bert.onnx", calibration=samples)

# The public word list turns the sentence into tokens here, and no word of it is sent.
sentence = "return the widget that has the focus , or none if no window of the application has it ."
result = privet.run(model, {"input": tokens(sentence)}, suite="gmw")
scores = result.outputs["logits"][0]
print("about:", card["classes"][int(np.argmax(scores))])
print(f"material {result.offline.seconds:.2f} s, answer {result.online.seconds:.2f} s")
