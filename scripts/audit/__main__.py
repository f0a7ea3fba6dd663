"""Attacks Privet's own code: what a sceptic would try, in one run.

    python -m scripts.audit                      # everything, an hour or two
    python -m scripts.audit --fuzz-minutes 600   # a night of fuzzing for each decoder
    python -m scripts.audit --short              # what CI runs beside the tests
    python -m scripts.audit --only timing --only branches

docs/how-to/audit.md says what each part would catch. Exit code 1 if a check fails.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Sequence

from .parts import PARTS, Effort


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m scripts.audit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--short", action="store_true", help="minutes, beside `make test`")
    parser.add_argument(
        "--only", action="append", choices=list(PARTS), help="this part (may be repeated)"
    )
    parser.add_argument(
        "--fuzz-minutes", type=float, default=2.0, metavar="N", help="for each decoder"
    )
    parser.add_argument(
        "--runs", type=int, default=20_000, metavar="N", help="timed runs of each kernel"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="the fuzzer's; drawn if not given")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    options = parse(arguments)
    # Not 0, which the fuzzer takes for none.
    seed = options.seed if options.seed is not None else 1 + secrets.randbelow(2**31 - 1)
    effort = Effort(options.short, options.fuzz_minutes, options.runs, seed)
    print(f"seed {seed}", flush=True)
    counts = {True: 0, False: 0}
    for name in options.only or PARTS:
        start = time.monotonic()
        for title, is_ok, output in PARTS[name](effort):
            counts[is_ok] += 1
            seconds = time.monotonic() - start
            print(f"{'ok' if is_ok else 'FAILED':7}{name:12}{seconds:7.0f} s  {title}", flush=True)
            if not is_ok:
                print(output, file=sys.stderr, flush=True)
            start = time.monotonic()
    print(f"audit: {counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
