"""What leaves a gateway: protocol messages, and calls that say nothing of an input.

A tap that holds the keys of both parties hears everything under TLS. The same search that finds no
trace of the input there finds it in what the application told the gateway, and in messages that
would carry it in any of the ways in which the parties write numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.gateways import HTTP, Array, assert_right, gateway, tensor
from tests.e2e.services import put_digits, serving
from tests.e2e.tapped import Spoken, Tap, tapped
from tests.e2e.test_commands import key_folder

from privet.gateway.updates import WAIT_SECONDS

__all__ = ["key_folder"]

RING_BITS, SCALE_BITS = 37, 12
RUN = 8
"""Neighbouring numbers that make a trace; of fixed-point numbers, 37 bytes when packed."""

IMAGE = np.random.default_rng(5).uniform(0.1, 1, (1, 1, 8, 8)).astype(np.float32)

PATHS = re.compile(
    r"/v2/health/(ready|live)"
    r"|/v2/jobs(/[0-9a-f]{16})?(\?wait=\d+(\.\d+)?&seen=\d+(&ahead=1)?)?"
    r"|/v2/models/digits(/versions/1(/program)?|/requests|/notices)?"
)

WORDS: dict[str, set[object]] = {
    "suite": {"gmw"},
    "security": {"semi-honest"},
    # What suits the round trip that was measured.
    "rounds": {"linear", "log", "blocks"},
    "truncation": {"exact"},
    "correlations": {"parties"},
    "field": {"ring"},
    "linear": {"offline"},
    "encrypts": {"masks"},
    "transfers": {"auto"},
    "samples": {1},
    "wait": {WAIT_SECONDS},
}
"""What bodies may say, besides the program's hash, a random key, and ids, versions and counts of
the service's making."""


def packed(values: Iterable[int]) -> bytes:
    """Ring elements, packed to `RING_BITS` bits each."""
    bits = 0
    for index, value in enumerate(values):
        bits |= (value % (1 << RING_BITS)) << (index * RING_BITS)
    return bits.to_bytes(-(-RUN * RING_BITS // 8), "little")


def traces(image: Array) -> Iterator[bytes]:
    """Every run of neighbouring numbers of an image, in each way to write them."""
    reals = image.ravel()
    fixed = np.rint(np.ldexp(reals.astype(np.float64), SCALE_BITS)).astype(np.int64)
    for first in range(len(reals) - RUN + 1):
        part = reals[first : first + RUN]
        for kind in ("<f2", "<f4", "<f8", ">f4", ">f8"):
            yield part.astype(kind).tobytes()
        whole = fixed[first : first + RUN]
        for kind in ("<i2", "<i4", "<i8", ">i8"):
            yield whole.astype(kind).tobytes()
        yield packed(int(value) for value in whole)
        for separator in (",", ", "):
            yield separator.join(repr(float(value)) for value in part).encode()
            yield separator.join(str(int(value)) for value in whole).encode()


def leaks(image: Array, spoken: Iterable[bytes]) -> bool:
    """Whether a trace of the image is in what was spoken."""
    image_traces = list(traces(image))
    return any(trace in message for message in spoken for trace in image_traces)


@pytest.fixture
def heard(key_folder: Path, tmp_path: Path) -> Iterator[Tap]:
    """What a tap heard of two predictions: one with material made ahead, one without."""
    put_digits(tmp_path / "repository")
    with (
        serving(tmp_path, key_folder) as scene,
        tapped(key_folder, scene.address) as tap,
    ):
        service, state = f"localhost:{tap.port}", tmp_path / "client"
        for options in ((), ("--ahead", "digits=1")):
            with gateway(service, key_folder, state, *options) as front:
                assert_right(front.infer(HTTP, "digits", IMAGE), IMAGE)
        yield tap


def test_no_trace_of_an_input_leaves(heard: Tap) -> None:
    frames = heard.said_to_workers()
    assert sum(map(len, frames)) > 100_000
    assert not leaks(IMAGE, frames)
    assert not leaks(IMAGE, (_raw(call) for call in heard.calls))


def test_calls_say_what_is_allowed_and_nothing_else(heard: Tap) -> None:
    bodies = []
    for call in heard.calls:
        assert PATHS.fullmatch(call.path), call.path
        allowed = {"host", "accept", "accept-encoding", "user-agent"}
        if call.body:
            allowed |= {"content-length", "content-type"}
            bodies.append(json.loads(call.body))
        assert {name.lower() for name in call.headers} <= allowed
    assert len(bodies) >= 3
    for body in bodies:
        assert re.fullmatch("[0-9a-f]{64}", body.pop("program"))
        assert re.fullmatch("[0-9a-f]{32}", body.pop("key"))
        assert re.fullmatch("[0-9a-f]{16}", body.pop("notice", "0" * 16))
        assert body.pop("version", 1) == 1
        assert body.pop("seen", 0) in range(1000)
        assert all(value in WORDS[name] for name, value in body.items()), body


def test_the_search_finds_what_an_application_says() -> None:
    input_tensor = tensor(HTTP, IMAGE)
    body, _ = HTTP.InferenceServerClient.generate_request_body([input_tensor])
    assert leaks(IMAGE, [body])
    input_tensor = tensor(HTTP, IMAGE, binary_data=False)
    body, _ = HTTP.InferenceServerClient.generate_request_body([input_tensor])
    assert leaks(IMAGE, [body])


def test_the_search_finds_messages_that_are_not_masked() -> None:
    fixed = np.rint(np.ldexp(IMAGE.ravel().astype(np.float64), SCALE_BITS)).astype(np.int64)
    rng = np.random.default_rng(1)
    for message in (fixed.astype("<i8").tobytes(), packed(map(int, fixed[8:16]))):
        assert leaks(IMAGE, [rng.bytes(1000) + message + rng.bytes(1000)])
    numbers = (fixed + rng.integers(0, 1 << RING_BITS, len(fixed))) % (1 << RING_BITS)
    assert not leaks(IMAGE, [numbers.astype("<i8").tobytes(), packed(map(int, numbers[8:16]))])


def _raw(call: Spoken) -> bytes:
    return json.dumps([call.method, call.path, call.headers]).encode() + call.body
