"""Models of suite `ckks` at a service: a session of the program `privet-ckks`, which runs here.

The service relays sessions by WebSocket and knows their certificates; key and data stay in the
program on this host. What a session computes waits in the service's queues like other jobs.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from privet.compiler.executor.codec import Inputs
from privet.errors import LinkError, PrivetError
from privet.gateway.calls import Calls
from privet.gateway.model import Offer, Terms
from privet.gateway.relay import relay
from privet.runtime import Credentials, Result
from privet.runtime.homomorphic import Endpoint, Prediction, ask
from privet.suites import Progress
from privet.suites.ckks import encrypting

SILENCE = 120.0
"""Seconds that this side waits for each message if it is not reply."""


async def infer_encrypted(
    calls: Calls,
    credentials: Credentials,
    path: str,
    offer: Offer,
    inputs: Inputs,
    terms: Terms,
    timeout: float,
    progress: Progress | None = None,
) -> Result:
    """The private predictions for real inputs, up to the program's batch, by the model at `path`,
    in the scenario of `terms` and with no less noise on results than they say.

    # Errors
    `InputError` before anything is sent if an input does not fit; `Misuse` without the program
    `privet-ckks`; `PeerBusy`, `LinkError`, `PeerError`.
    """
    with tempfile.TemporaryDirectory(prefix="privet-") as keys:
        credentials.link_into(Path(keys), "client")
        async with relay(calls, path + "/session") as (socket, failures):
            suite = encrypting(terms.suite)
            endpoint = Endpoint("", 0, Path(keys), timeout=timeout, suite=suite, socket=socket)
            found = await _ask(endpoint, offer, inputs, progress, failures)
    return _result(found, offer.program.calibration)


async def _ask(
    endpoint: Endpoint,
    offer: Offer,
    inputs: Inputs,
    progress: Progress | None,
    failures: list[PrivetError],
) -> Prediction:
    try:
        return await asyncio.to_thread(ask, endpoint, offer.program, inputs, progress=progress)
    except LinkError as error:
        # What broke the link is what the service said, if it said anything.
        raise (failures[0] if failures else error) from error


def _result(found: Prediction, calibration: str) -> Result:
    return Result(
        outputs=found.outputs,
        integers=found.integers,
        material="",
        config=found.suite,
        calibration=calibration,
        dry=None,
        offline=found.offline,
        online=found.online,
        layers=found.layers,
        samples=found.samples,
        plan=found.plan,
    )
