"""How often Python's garbage collector looks at what a process holds."""

from __future__ import annotations

import gc


def look_seldom() -> None:
    """Has it look less often: an eighth of a command's start went into looks at modules that had
    just been loaded."""
    gc.set_threshold(10_000, 20, 20)


def collect_seldom() -> None:
    """Keeps what there is now from it, and has it look at the rest less often. A service keeps its
    jobs in memory, and each look at all of them stops it for a while."""
    gc.collect()
    gc.freeze()
    look_seldom()
