"""A copy of the sources in which masks are removed, one at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..check_files import repository_files
from .masks import Mask


class Tree:
    """The repository's files, copied below `folder`.

    A file is written only if it differs, so that cargo builds again what changed and nothing else;
    and always with the present as its time, because cargo compares times. What else lies in
    `folder` is deleted, so a folder that no tree was made in must be empty.
    """

    MARK = ".privet-mutation"

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / self.MARK).exists():
            raise FileExistsError(f"{folder} has files that are not of a mutation test")
        (folder / self.MARK).touch()
        names = {str(path) for path in repository_files(source)}
        for name in names:
            data = (source / name).read_bytes()
            target = folder / name
            if not target.is_file() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                shutil.copymode(source / name, target)
        for path in list(folder.rglob("*")):
            if path.is_file() and str(path.relative_to(folder)) not in names | {self.MARK}:
                path.unlink()

    @contextmanager
    def without(self, mask: Mask) -> Iterator[None]:
        """The tree with a mask removed, until the end of the block."""
        before = {edit.file: (self.folder / edit.file).read_text() for edit in mask.edits}
        try:
            for edit in mask.edits:
                path = self.folder / edit.file
                path.write_text(edit.apply(path.read_text()))
            yield
        finally:
            for file, text in before.items():
                (self.folder / file).write_text(text)
