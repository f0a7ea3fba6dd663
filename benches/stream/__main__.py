"""Experiments of suite `stream`, each a Markdown table.

.venv/bin/python -m benches.stream                       all, in some minutes
.venv/bin/python -m benches.stream latency --cipher bfv  one, with options of its own
.venv/bin/python -m benches.stream --list                their names
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from benches.stream import latency, packing

EXPERIMENTS: dict[str, Callable[[Sequence[str]], int]] = {
    "latency": latency.main,
    "packing": packing.main,
}


def main(words: Sequence[str]) -> int:
    """Runs the experiment named first, with the words after it, or all of them."""
    if words[:1] == ["--list"]:
        sys.stdout.write("\n".join(EXPERIMENTS) + "\n")
        return 0
    if words:
        if words[0] not in EXPERIMENTS:
            sys.stderr.write(f"no experiment {words[0]}: {', '.join(EXPERIMENTS)}\n")
            return 2
        return EXPERIMENTS[words[0]](words[1:])
    failures = 0
    for name, run in EXPERIMENTS.items():
        sys.stdout.write(f"\n## {name}\n\n")
        failures += run([]) != 0
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
