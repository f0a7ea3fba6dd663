"""A client that is killed in the middle of an inference: `python doomed_client.py JOB.json`.

Prints the id of its material, then kills itself when the online phase has begun.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from privet.runtime import Client, Credentials


def die(phase: str, done: int, _total: int, _step: str) -> None:
    """Ends the process as `kill -9` does, once the server is in the middle of its work."""
    if phase == "online" and done > 1:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Prepares, tells of the material, and dies on it."""
    job = json.loads(Path(sys.argv[1]).read_text())
    credentials = Credentials.from_directory(job["keys"], "client")
    client = Client("localhost", job["port"], credentials, state=job["state"])
    (material,) = client.prepare()
    sys.stdout.write(material + "\n")
    sys.stdout.flush()
    client.infer([job["input"]], material=material, progress=die)


if __name__ == "__main__":
    main()
