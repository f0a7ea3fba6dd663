"""A compilation as a process of its own, which loads nothing of a service.

`privet.service.repository` starts it. It reads a job as JSON from standard input and prints what
came of it: `{"folder": ...}` or `{"error": ..., "type": ...}`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from privet.errors import PrivetError
from privet.runtime.calibration import read_samples
from privet.runtime.catalog import compile_once


def build(model: str, programs: str, calibration: str | None, options: dict[str, Any]) -> Path:
    """Compiles here and now."""
    samples = read_samples(Path(calibration)) if calibration else None
    return compile_once(Path(model), Path(programs), samples, **options)


def main() -> int:
    """Does the job on standard input."""
    try:
        answer = {"folder": str(build(**json.load(sys.stdin)))}
    except (PrivetError, OSError) as error:
        answer = {"error": str(error), "type": type(error).__name__}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
