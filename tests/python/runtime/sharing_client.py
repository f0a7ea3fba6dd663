"""A client that shares a state directory with others: `python sharing_client.py JOB.json`.

Says that it is connected, waits for a line, then infers as often as the job says on what is ready,
and prints the entries that it used.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from privet.runtime import Client, Credentials


def main() -> None:
    """Runs the job named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    credentials = Credentials.from_directory(job["keys"], "client")
    with Client(
        job["host"], job["port"], credentials, state=job["state"], when_dry="refuse"
    ) as client:
        shapes = [client.program.values[entry.value].shape for entry in client.program.inputs]
        inputs = [np.zeros(shape) for shape in shapes]
        sys.stdout.write("connected\n")
        sys.stdout.flush()
        sys.stdin.readline()
        entries = [client.infer(inputs).material for _ in range(job["count"])]
    sys.stdout.write(json.dumps(entries) + "\n")


if __name__ == "__main__":
    main()
