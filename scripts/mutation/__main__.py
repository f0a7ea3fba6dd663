"""Removes every mask in the list, one at a time, and checks that a test notices.

    python -m scripts.mutation            # all of them
    python -m scripts.mutation --quick    # a handful
    python -m scripts.mutation --only and-x --only reply-mask

First every test must pass on the sources as they are. Then each mask is removed in a copy of them;
the test that should notice must fail, as a test: a mutant that does not compile is a fault of the
list. If the list says that the mutant's results stay right, the test of that must pass. Exit code 1
if a mask can be removed and nobody notices, 2 if the list or the sources are not fit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .masks import Mask, faults, load
from .table import count, table
from .tests import Outcome, Test, Verdict
from .tree import Tree

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Bench:
    """Where tests run."""

    tree: Tree
    build: Path
    limit_seconds: float

    def run(self, test: Test) -> Outcome:
        """Runs one test in the tree as it is now."""
        return test.run(self.tree.folder, self.build, self.limit_seconds)

    def passes_unmutated(self, masks: Sequence[Mask]) -> bool:
        """Runs every test that the masks name, and says which do not pass."""
        tests = list(dict.fromkeys(test for mask in masks for test in mask.tests()))
        start, fit = time.monotonic(), True
        for test in tests:
            outcome = self.run(test)
            if outcome.verdict is not Verdict.PASSED:
                fit = False
                print(outcome.output, file=sys.stderr)
                print(f"without a mutant, {test} {outcome.verdict.value}", file=sys.stderr)
        if fit:
            seconds = time.monotonic() - start
            print(f"baseline: {len(tests)} tests pass as things are ({seconds:.0f} s)", flush=True)
        return fit

    def fault(self, mask: Mask) -> str | None:
        """Removes a mask; None if it is caught, and otherwise what happened instead."""
        with self.tree.without(mask):
            outcome = self.run(mask.caught_by)
            if outcome.verdict is Verdict.PASSED:
                return f"survived {mask.caught_by}"
            if outcome.verdict is not Verdict.FAILED:
                return f"{mask.caught_by} {outcome.verdict.value}\n{outcome.output}"
            if mask.still_right is not None:
                outcome = self.run(mask.still_right)
                if outcome.verdict is not Verdict.PASSED:
                    return f"its results are not right\n{outcome.output}"
        return None


def mutate(bench: Bench, masks: Sequence[Mask]) -> int:
    """Removes all masks, one line each. Returns how many were caught."""
    tally = 0
    for mask in masks:
        start = time.monotonic()
        fault = bench.fault(mask)
        tally += fault is None
        verdict = "caught" if fault is None else "NOT CAUGHT"
        seconds = time.monotonic() - start
        print(
            f"{verdict:10} {mask.part:6} {mask.id:28} {seconds:5.1f} s  {mask.mutant}", flush=True
        )
        if fault is not None:
            print(fault, file=sys.stderr)
    return tally


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m scripts.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="remove this mask (may be repeated)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="remove a handful of masks, one of each part"
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="print the list as a Markdown table and do nothing else",
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "target" / "mutation",
        help="folder for the copy and the builds",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="for building and running one test",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    options = parse(arguments)
    masks = load()
    if options.table:
        print(count(masks), table(masks), sep="\n\n")
        return 0
    wrong = list(faults(masks, ROOT))
    names = {mask.id for mask in masks}
    wrong += [f"{name}: there is no such mask" for name in options.only or [] if name not in names]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 2
    if options.only:
        masks = [mask for mask in masks if mask.id in options.only]
    elif options.quick:
        masks = [mask for mask in masks if mask.quick]

    work = options.work.resolve()
    bench = Bench(Tree(ROOT, work / "tree"), work / "build", options.limit)
    if not bench.passes_unmutated(masks):
        return 2
    tally = mutate(bench, masks)
    print(f"mutation: {len(masks)} masks removed, {tally} caught")
    return 0 if tally == len(masks) else 1


if __name__ == "__main__":
    sys.exit(main())
