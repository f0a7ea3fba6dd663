"""Answers a process of suite `ckks` that asks, before it works for a client, whether it may.

The process asks on its standard output and reads the answer on its standard input, so that the
policy and the counts of answers are those of every other server (`crates/suites/src/policy.rs`).
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from privet.errors import PrivetError
from privet.runtime.revocation import Revoked
from privet.suites import Guard, Mode


def guarded(
    process: subprocess.Popen[str], guard: Guard, mode: Mode, revoked: Revoked | None = None
) -> Iterator[dict[str, Any]]:
    """The process's events from now on, without its questions, which are answered from a thread
    whether or not anybody reads the events. Whoever is on the list of the `revoked` is refused."""
    events: queue.Queue[dict[str, Any] | None] = queue.Queue()
    verdict = partial(_verdict, guard, mode, revoked or Revoked())
    threading.Thread(target=_follow, args=(process, verdict, events), daemon=True).start()
    return iter(events.get, None)


def _follow(
    process: subprocess.Popen[str],
    verdict: Callable[[dict[str, Any]], dict[str, Any]],
    events: queue.Queue[dict[str, Any] | None],
) -> None:
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] != "guard":
                events.put(event)
                continue
            # A process that has ended needs no answer.
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(json.dumps(verdict(event)) + "\n")
                process.stdin.flush()
    finally:
        events.put(None)


def _verdict(guard: Guard, mode: Mode, revoked: Revoked, asked: dict[str, Any]) -> dict[str, Any]:
    client, name = asked["client"], asked["name"] or None
    verdict: dict[str, Any] = {"guard": asked["guard"]}
    try:
        refusal = revoked.refuses(client) or guard.check(client, name, mode.text)
        if refusal is None and asked["answers"]:
            spent = guard.count(client, name, asked["answers"])
            if spent is not None:
                return verdict | {"refused": spent[0], "busy": spent[1] is not None}
    except PrivetError:
        return verdict | {"refused": "this server cannot count answers now", "busy": True}
    return verdict | ({} if refusal is None else {"refused": refusal})
