"""An inference of suite `stream` in one session over TLS: masks or noise first, then the rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from privet._native import Connection, Guard, StreamClient, StreamPlan, StreamServer
from privet.suites.base import Suite
from privet.suites.costs import NOTHING, PhaseCost, read_report
from privet.suites.single import Answer, Gate


class StreamHost:
    """The model provider's side, as `ProgramHost`."""

    def __init__(self, public: bytes, private: bytes, guard: Guard) -> None:
        self._server = StreamServer(public, private, guard)

    def serve(
        self,
        connection: Connection,
        suite: Suite,
        done: Callable[[PhaseCost], None],
        gate: Gate,
        threads: int,
    ) -> None:
        offline = NOTHING

        def on_event(kind: str, report: str | None) -> None:
            nonlocal offline
            if report is None:
                return
            cost = read_report(report, by_server=True)[0]
            if kind == "prepared":
                offline = cost
            else:
                done(offline + cost)

        config = json.dumps(suite.to_json())
        self._server.serve(connection, config, on_event, None, gate, threads)


def infer(connection: Connection, public: bytes, config: str, inputs: Sequence[bytes]) -> Answer:
    """The data provider's side in this `config`, as `SingleJobSuite.infer`."""
    client = StreamClient(connection)
    plan = StreamPlan(public, config)
    offline, layers = read_report(client.prepare(plan))
    revealed, report = client.infer(plan, list(inputs))
    client.close()
    return Answer(revealed, report, offline, layers)
