"""Which depth of comparisons a link leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet import Link, suites
from privet.compiler.compile import compile
from privet.errors import Misuse
from privet.runtime.client import network_of
from privet.suites import Fss, Gmw
from privet.suites.material.suite import quickest

DIGITS = Path(__file__).parents[2] / "zoo" / "models" / "digits-cnn.onnx"


@pytest.fixture(scope="module")
def public() -> bytes:
    return compile(DIGITS).program.to_public_bytes()


@pytest.mark.parametrize(
    ("link", "rounds"),
    [
        (None, "linear"),
        ("0ms,1Mbit", "linear"),
        ("1ms,100kbit", "linear"),
        ("10ms,1Mbit", "log"),
        ("wan", "blocks"),
    ],
)
def test_the_link_decides_between_bytes_and_rounds(
    public: bytes, link: str | None, rounds: str
) -> None:
    plans = Gmw().plans(public)
    assert [plan.rounds for plan in plans] == ["linear", "log", "blocks"]
    assert quickest(plans, Link(link) if link else None).rounds == rounds
    linear_plans = Gmw(rounds="linear").plans(public)
    assert quickest(linear_plans, Link("wan")).rounds == "linear"


def test_the_delay_is_that_of_the_formula(public: bytes) -> None:
    forecast = suites.forecast(Gmw(rounds="log").native(public))
    bits = 8 * max(forecast.online_bytes_client, forecast.online_bytes_server)
    assert suites.online_delay(forecast, Link("0ms,1Mbit")) == pytest.approx(bits / 1e6)
    fast = suites.online_delay(forecast, Link("2ms,100Gbit"))
    assert fast == pytest.approx(forecast.online_rounds * 1e-3, rel=1e-3)


def test_an_unknown_depth_is_refused() -> None:
    with pytest.raises(Misuse, match="auto, linear, log, blocks"):
        Gmw(rounds="few")


def test_keys_leave_no_depth_to_choose(public: bytes) -> None:
    (plan,) = Fss().plans(public, Link("wan")).values()
    assert suites.forecast(plan).extension is None


def test_a_measured_round_trip_stands_for_a_network() -> None:
    assert network_of(None) is None
    for rtt in (1e-4, 0.02, 1000.0):
        network = network_of(rtt)
        assert network is not None
        assert network.rtt == pytest.approx(min(rtt, 10))


def test_links_say_what_they_are() -> None:
    assert str(Link("wan")) == "40ms,352Mbit"
    assert Link("0.04s,44MB/s") == Link("wan") != Link("lan")
    with pytest.raises(Misuse, match="20ms,100Mbit"):
        Link("40ms")
