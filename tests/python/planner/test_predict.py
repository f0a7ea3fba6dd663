"""Predictions: the formula by hand, links that delay for real, unit costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.python.planner.records import MakeRecord

from privet import suites
from privet.compiler.compile import compile
from privet.errors import Misuse
from privet.planner import machine, units
from privet.planner.cases import plan_cases
from privet.planner.measure import measure
from privet.planner.network import PRESETS, Network, parse_bandwidth, parse_network, parse_seconds
from privet.planner.predict import on_network, predict
from privet.planner.record import Record, costed
from privet.planner.setting import Setting, settings
from privet.planner.units import UnitCosts, fit, non_negative_least_squares
from privet.research.report.validate import compare, errors
from privet.runtime import Link
from privet.suites import Fss, Gmw

MODELS = Path(__file__).resolve().parents[3] / "zoo" / "models"


def test_networks_are_read() -> None:
    assert parse_network("wan_s") == PRESETS["WAN_S"]
    assert parse_network("40ms, 400mbps").rtt == 0.04
    assert parse_bandwidth("1.5Gbit/s") == 1.5e9
    assert parse_seconds("20us", "time") == pytest.approx(2e-5)
    assert PRESETS["WAN_S"].bytes_per_second == 70e6
    for text in ("fast", "40ms", "40,400mbps", "40ms,0mbps"):
        with pytest.raises(Misuse):
            parse_network(text)


def test_a_prediction_is_the_formula(record: MakeRecord) -> None:
    measured = record(
        "gmw-dealer-log",
        batch=4,
        offline={"seconds": 2.0, "rounds": 1, "dealer_bytes_client": 10**6, "bytes_client": 0},
        online={"seconds": 0.5, "rounds": 9, "bytes_client": 10**6},
    )
    network = Network("n", 0.1, 8e6)  # a MB a second
    prediction = predict(measured, network)
    assert prediction.online.seconds == pytest.approx(0.5 + 1.0 + 10 * 0.05)
    assert prediction.offline.computing == 2.0
    assert prediction.offline.transfer == 1.0
    assert prediction.offline.waiting == pytest.approx(0.1)
    assert 2.1 < prediction.offline.seconds < 3.1  # part of the transfer hides behind computing
    assert prediction.online_throughput == pytest.approx(4 / prediction.online_latency)
    assert prediction.pipelined_throughput == pytest.approx(4 / 2.0)  # the link is the narrow place
    assert predict(measured, network, speed=10).online.computing == pytest.approx(0.05)


def test_in_suite_stream_directions_take_turns(record: MakeRecord) -> None:
    measured = record("stream-bfv", online={"seconds": 0.5, "rounds": 4, "bytes_client": 10**6})
    network = Network("n", 0.1, 8e6)
    online = predict(measured, network).online
    assert online.seconds == pytest.approx(0.5 + 1.0005 + 4 * 0.1)
    assert predict(measured, network).offline.waiting == pytest.approx((2 * 10 - 2) * 0.05)


def test_what_has_a_delay_in_it_is_no_base(record: MakeRecord) -> None:
    with pytest.raises(ValueError, match="over a link"):
        predict(record(link="40000us,400Mbit"), PRESETS["WAN_S"])


@pytest.mark.parametrize("link", ["20us,10000Mbit", "40ms,400Mbit", "70ms,20Mbit"])
def test_the_extension_is_the_one_that_the_parties_choose(link: str) -> None:
    compiled = compile(MODELS / "digits-cnn.onnx")
    (setting,) = settings(["gmw-blocks"])
    network = parse_network(link.replace("Mbit", "mbps"))
    moved = on_network(costed(setting.config.cost(compiled.program), "a", "", setting, 1), network)
    planned = Gmw(rounds="blocks").native(compiled.program.to_public_bytes(), Link(link))
    forecast = suites.forecast(planned)
    assert moved.extension == forecast.extension
    assert moved.offline.bytes_client == forecast.offline_bytes_client
    assert moved.offline.bytes_server == forecast.offline_bytes_server
    assert moved.offline.rounds == forecast.offline_rounds


@pytest.mark.slow
def test_predictions_hold_on_a_link_that_delays(tmp_path: Path, figures: list[str]) -> None:
    chosen = settings(["gmw-blocks", "gmw-dealer-log", "fss", "fss-malicious"])
    networks = [None, parse_network("60ms,100mbps")]
    cases = plan_cases([MODELS / "digits-cnn.onnx"], chosen, [1], networks)
    records, skipped = measure(cases, tmp_path)
    assert skipped == []
    compared = compare(records)
    assert len(compared) == 2 * len(chosen)
    for it in records:
        if it.link is not None:
            (base,) = (r for r in records if r.setting == it.setting and r.link is None)
            moved = on_network(base, networks[1] or PRESETS["WAN_S"])
            assert it.extension == moved.extension
            assert it.offline.bytes == moved.offline.bytes
            assert it.offline.rounds == moved.offline.rounds
            assert it.online.bytes == base.online.bytes
            assert it.online.rounds == base.online.rounds
    summary = errors(compared)
    assert summary is not None
    figures.append(f"predictions: median error {summary.median:.1%} of {summary.count} runs")
    # Waiting is most of it and never shorter than said; a busy machine takes longer.
    assert all(it.measured > 0.8 * it.predicted for it in compared)
    assert summary.median < 0.3


@pytest.mark.slow
@pytest.mark.go
def test_homomorphic_suites_are_slowed_down_as_well(tmp_path: Path) -> None:
    """Suite `ckks` over a relay, with its keys, and suite `stream` over its own shaped link."""
    network = parse_network("60ms,50mbps")
    cases = plan_cases(
        [MODELS / "digits-smooth" / "square.onnx"], settings(["ckks"]), [1], [None, network]
    )
    streamed = settings(["stream", "stream-bfv"])
    cases += plan_cases([MODELS / "breast-mlp.onnx"], streamed, [1], [None, network])
    records, skipped = measure(cases, tmp_path)
    assert skipped == []
    compared = compare(records)
    assert [(it.setting, it.phase) for it in compared] == [
        (name, phase) for name in ("ckks", "stream", "stream-bfv") for phase in ("online", "both")
    ]
    for it in records:
        if it.link is not None:
            (base,) = (r for r in records if r.setting == it.setting and r.link is None)
            assert abs(it.online.bytes - base.online.bytes) < 500
            assert it.online.rounds == base.online.rounds
    (keys,) = (it for it in compared if (it.setting, it.phase) == ("ckks", "both"))
    (answer,) = (it for it in compared if (it.setting, it.phase) == ("ckks", "online"))
    assert keys.predicted > answer.predicted + 0.5  # keys of some MB travel, too
    waiting = [it.measured / it.predicted for it in compared if it.phase == "online"]
    assert min(waiting) > 0.5


def test_errors_are_median_and_95th_percentile(record: MakeRecord) -> None:
    base = record("fss", online={"seconds": 1.0})
    network = parse_network("40ms,400mbps")
    slow = predict(base, network).online_latency
    over = record("fss", link="40ms,400mbps", online={"seconds": slow / 1.25})
    online = [it for it in compare([base, over]) if it.phase == "online"]
    assert [it.error for it in online] == [pytest.approx(0.25)]
    summary = errors(online)
    assert summary is not None
    assert summary.count == 1
    assert summary.median == pytest.approx(0.25)
    assert errors([]) is None


def test_unit_costs_explain_what_they_were_found_from(record: MakeRecord) -> None:
    def run(ands: float, rounds: float) -> Record:
        work = {"run": 1.0, "bytes sent": ands, "rounds": rounds}
        seconds = 0.001 + 2e-6 * ands + 5e-5 * rounds
        phase = {"seconds": seconds, "cpu_seconds": 2 * seconds, "work": work}
        return record("gmw-log", offline=phase, online=phase)

    costs = fit([run(1e3, 10), run(1e5, 60), run(3e4, 200), run(1e6, 20)])
    unseen = run(5e5, 100)
    priced = costs.price(unseen)
    assert priced.online.seconds == pytest.approx(unseen.online.seconds, rel=1e-3)
    assert priced.online.cpu_seconds == pytest.approx(2 * unseen.online.seconds, rel=1e-3)
    assert costs.knows(Setting(Gmw(rounds="linear")))
    assert not costs.knows(Setting(Fss()))


def test_no_price_is_negative() -> None:
    a = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    x = non_negative_least_squares(a, np.array([3.0, 2.0, 1.0]))
    assert x == pytest.approx([2.0, 0.0])


def test_unit_costs_are_kept_for_this_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept" / "units.json"
    monkeypatch.setenv(units.VARIABLE, str(path))
    here = machine.describe()
    prices = {"fss online": {"run": 1.0}}
    costs = UnitCosts(prices, prices, here["cpu"], here["cores"])
    monkeypatch.setattr(units, "calibrate", lambda progress: costs)
    assert units.known() == costs
    monkeypatch.delattr(units, "calibrate")
    assert units.known() == costs
    UnitCosts(prices, prices, "another", 1).write(path)
    assert units.read(path) is None
