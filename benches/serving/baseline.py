"""`python -m benches.serving.baseline KEYS STATE PROGRAM DEALER`: one model on `privet.Server`.

A thread for each session and no scheduler: what `privet serve` is compared with. Prints its address
as JSON, and serves until it is ended.
"""

from __future__ import annotations

import json
import sys

import privet


def main(keys: str, state: str, program: str, dealer: str) -> None:
    """Serves the compiled program in a folder."""
    credentials = privet.Credentials.from_directory(keys, "server")
    with privet.Server(credentials, state=state, dealer=dealer) as server:
        server.add_saved(program)
        address = "{}:{}".format(*server.address)
        sys.stdout.write(json.dumps({"address": address}) + "\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
