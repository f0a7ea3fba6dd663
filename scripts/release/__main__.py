"""Checks a release: bill of materials, licences, known flaws, and a wheel that comes out twice.

    python -m scripts.release                    # what can be checked here
    python -m scripts.release --strict           # exit code 1, too, if a check could not be made
    python -m scripts.release --without-wheel    # the wheel takes minutes

The bill is written to target/release-check/privet.cdx.json. Exit code 1 if a check fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from privet import __version__

from . import advisories, licences, reproduce
from .bill import bill
from .component import ROOT, crates, modules, packages
from .verdict import Verdict, exit_code


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each check; the exit code."""
    parser = argparse.ArgumentParser(
        "python -m scripts.release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--strict", action="store_true", help="a check that was not made fails")
    parser.add_argument("--without-wheel", action="store_true", help="build no wheels")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "release-check")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)

    components = [*crates(), *modules(), *packages()]
    path: Path = options.out / "privet.cdx.json"
    path.write_text(bill(__version__, components))
    verdicts = [Verdict.passed(f"{len(components)} components in {path}").named("bill")]
    refusals = licences.refused(components, licences.accepted())
    licensed = (
        Verdict.failed("; ".join(refusals)) if refusals else Verdict.passed("all are accepted")
    )
    verdicts.append(licensed.named("licences"))
    verdicts += [check() for check in advisories.CHECKS]
    verdicts.append(
        Verdict.unchecked("--without-wheel").named("reproducible wheel")
        if options.without_wheel
        else reproduce.wheel(options.out)
    )
    for verdict in verdicts:
        sys.stdout.write(f"{verdict}\n")
    return exit_code(verdicts, options.strict)


if __name__ == "__main__":
    raise SystemExit(main())
