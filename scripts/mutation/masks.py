"""The list of masks: what each hides, how a mutant takes it away, which test must notice.

The list is data, one TOML file for each part of the repository in `masks/`. A mutant is one or more
texts to find in the sources, each of which must occur exactly once, and what to put in their place.
A mask that names no `file` is in that of the mask before it, and one that says not what is
`still_right` has what the head of its list says.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .tests import Test

FOLDER = Path(__file__).with_name("masks")


@dataclass(frozen=True)
class Edit:
    """`find`, which occurs once in `file` (relative to the repository), becomes `replace`."""

    file: str
    find: str
    replace: str

    def fault(self, root: Path) -> str | None:
        """Why it cannot be made below `root`, or None."""
        path = root / self.file
        if not path.is_file():
            return f"there is no {self.file}"
        count = path.read_text().count(self.find)
        if count != 1:
            return f"{self.file} has {count} times, not once: {self.find.strip()}"
        return "nothing is replaced" if self.find == self.replace else None

    def apply(self, text: str) -> str:
        """The file's mutated text."""
        return text.replace(self.find, self.replace)


@dataclass(frozen=True)
class Mask:
    """Randomness that hides a secret, or that may be used only once, and its mutant."""

    id: str
    part: str
    """The file of the list it is from, which is the crate's name."""
    mask: str
    mutant: str
    edits: tuple[Edit, ...]
    caught_by: Test
    still_right: Test | None
    """Passes under the mutant as well: the results of the mutant are right."""
    quick: bool

    @classmethod
    def read(cls, part: str, entry: dict[str, Any]) -> Mask:
        also = entry.pop("also", [])
        first = {key: entry.pop(key) for key in ("file", "find", "replace")}
        still_right = entry.pop("still_right", None)
        return cls(
            part=part,
            edits=tuple(Edit(**edit) for edit in [first, *also]),
            caught_by=Test.parse(entry.pop("caught_by")),
            still_right=None if still_right is None else Test.parse(still_right),
            quick=entry.pop("quick", False),
            **entry,
        )

    def tests(self) -> Iterator[Test]:
        """The tests that decide on the mutant."""
        yield self.caught_by
        if self.still_right is not None:
            yield self.still_right


def load(folder: Path = FOLDER) -> list[Mask]:
    masks = []
    for path in sorted(folder.glob("*.toml")):
        usual = tomllib.loads(path.read_text())
        for entry in usual.pop("mask"):
            usual["file"] = entry.get("file") or usual["file"]
            masks.append(Mask.read(path.stem, usual | entry))
    return masks


def faults(masks: Iterable[Mask], root: Path) -> Iterator[str]:
    """What is wrong with a list for the sources below `root`, one line each."""
    masks = list(masks)
    for name, count in Counter(mask.id for mask in masks).items():
        if count > 1:
            yield f"{name}: {count} masks have this name"
    for mask in masks:
        if not re.fullmatch(r"[a-z]+(-[a-z]+)*", mask.id):
            yield f"{mask.id}: a name is lower-case words with hyphens"
        for edit in mask.edits:
            fault = edit.fault(root)
            if fault is not None:
                yield f"{mask.id}: {fault}"
        for test in mask.tests():
            if not test.exists(root):
                yield f"{mask.id}: there is no test {test}"
