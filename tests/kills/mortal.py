"""A party that does what it is told, a line at a time, until it is killed: `python mortal.py`.

The first line of standard input is its job, each later one a client's order. Every order gets one
line in answer. It starts up before it is needed, so that a restart takes no time.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from privet.errors import MaterialError, PrivetError
from privet.runtime import Client, Credentials, Server
from privet.suites import from_json


def say(event: str, **fields: Any) -> None:
    """Answers."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def serve(job: dict[str, Any]) -> None:
    """Offers the program until standard input closes."""
    credentials = Credentials.from_directory(job["keys"], "server")
    options = {"state": job["state"], "dealer": job["dealer"], "timeout": job["timeout"]}
    with Server(credentials, **options) as server:
        server.add_saved(job["program"])
        server.start()
        say("listening", port=server.address[1])
        sys.stdin.read()


def obey(client: Client, order: dict[str, Any]) -> None:
    """Does what it is told: to prepare, to infer, or to list what is ready."""
    match order["do"]:
        case "prepare":
            (material,) = client.prepare()
            say("prepared", material=material)
        case "infer":
            result = client.infer([np.array(order["input"])], material=order["material"])
            say("inferred", output=result.outputs["y"].tolist())
        case _:
            say("ready", materials=client.ready())


def query(job: dict[str, Any]) -> None:
    """A session with the server until the first failure but for a refusal of its own store."""
    credentials = Credentials.from_directory(job["keys"], "client")
    options = {"state": job["state"], "dealer": job["dealer"], "timeout": job["timeout"]}
    suite = from_json(job["way"])
    with Client("localhost", job["port"], credentials, suite=suite, **options) as client:
        for line in sys.stdin:
            try:
                obey(client, json.loads(line))
            except MaterialError as error:
                say("refused", message=str(error))


def main() -> None:
    """Plays the party that the job names."""
    job = json.loads(sys.stdin.readline())
    try:
        {"server": serve, "client": query}[job["role"]](job)
    except PrivetError as error:
        say("failed", type=type(error).__name__, message=str(error))


if __name__ == "__main__":
    main()
