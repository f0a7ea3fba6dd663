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
    for text in ("fast", "40ms", "40,400mbps", "40ms,0mbps", "40ms,44Mb", "40ms,44mb"):
        with pytest.raises(Misuse):
            parse_network(text)


@pytest.mark.parametrize("unit", ["kbit", "Mbit", "Gbit", "kB", "MB", "GB", "MB/s", "Mbit/s"])
def test_a_bandwidth_is_that_of_a_link(unit: str) -> None:
    assert parse_bandwidth(f"2.5{unit}") == Link(f"1ms,2.5{unit}").bits_per_second


def test_a_prediction_is_the_formula(record: MakeRecord) -> None:
    base = record(
        "gmw-dealer-log",
        batch=4,
        offline={"seconds": 2.0, "rounds": 1, "dealer_bytes_client": 10**6, "bytes_client": 0},
        online={"seconds": 0.5, "rounds": 9, "bytes_client": 10**6},
    )
    network = Network("n", 0.1, 8e6)  # a MB a second
    prediction = predict(base, network)
    assert prediction.online.seconds == pytest.approx(0.5 + 1.0 + 10 * 0.05)
    assert prediction.offline.computing == 2.0
    assert prediction.offline.transfer == 1.0
    assert prediction.offline.waiting == pytest.approx(0.1)
    assert 2.1 < prediction.offline.seconds < 3.1  # part of the transfer hides behind computing
    assert prediction.online_throughput == pytest.approx(4 / prediction.online_latency)
    assert prediction.pipelined_throughput == pytest.approx(4 / 2.0)  # the link is the narrow place
    assert predict(base, network, speed=10).online.computing == pytest.approx(0.05)


def test_in_suite_stream_directions_take_turns(record: MakeRecord) -> None:
    base = record("stream-bfv", online={"seconds": 0.5, "rounds": 4, "bytes_client": 10**6})
    network = Network("n", 0.1, 8e6)
    online = predict(base, network).online
    assert online.seconds == pytest.approx(0.5 + 1.0005 + 4 * 0.1)
    assert predict(base, network).offline.waiting == pytest.approx((2 * 10 - 2) * 0.05)


def test_a_record_over_a_link_is_no_base_of_a_prediction(record: MakeRecord) -> None:
    with pytest.raises(ValueError, match="over a link"):
        predict(record(link="40000us,400Mbit"), PRESETS["WAN_S"])


@pytest.mark.parametrize("link", ["20us,10000Mbit", "40ms,400Mbit", "70ms,20Mbit"])
def test_the_extension_is_the_one_that_the_parties_choose(link: str) -> None:
    compiled = compile(MODELS / "digits-cnn.onnx")
    (setting,) = settings(["gmw-blocks"])
    network = parse_network(link.replace("Mbit", "mbps"))
    prediction = on_network(
        costed(setting.config.cost(compiled.program), "a", "", setting, 1), network
    )
    plan = Gmw(rounds="blocks").native(compiled.program.to_public_bytes(), Link(link))
    forecast = suites.forecast(plan)
    assert prediction.extension == forecast.extension
    assert prediction.offline.bytes_client == forecast.offline_bytes_client
    assert prediction.offline.bytes_server == forecast.offline_bytes_server
    assert prediction.offline.rounds == forecast.offline_rounds


@pytest.mark.slow
def test_predictions_hold_on_a_link_that_delays(tmp_path: Path, figures: list[str]) -> None:
    candidates = settings(["gmw-blocks", "gmw-dealer-log", "fss", "fss-malicious"])
    networks = [None, parse_network("60ms,100mbps")]
    cases = plan_cases([MODELS / "digits-cnn.onnx"], candidates, [1], networks)
    records, skipped = measure(cases, tmp_path)
    assert skipped == []
    comparisons = compare(records)
    assert len(comparisons) == 2 * len(candidates)
    for record in records:
        if record.link is not None:
            (base,) = (r for r in records if r.setting == record.setting and r.link is None)
            prediction = on_network(base, networks[1] or PRESETS["WAN_S"])
            assert record.extension == prediction.extension
            assert record.offline.bytes == prediction.offline.bytes
            assert record.offline.rounds == prediction.offline.rounds
            assert record.online.bytes == base.online.bytes
            assert record.online.rounds == base.online.rounds
    summary = errors(comparisons)
    assert summary is not None
    figures.append(f"predictions: median error {summary.median:.1%} of {summary.count} runs")
    # Waiting is most of it and never shorter than said; a busy machine takes longer.
    assert all(comparison.measured > 0.8 * comparison.predicted for comparison in comparisons)
    assert summary.median < 0.3


@pytest.mark.slow
@pytest.mark.go
def test_homomorphic_suites_are_slowed_down_as_well(tmp_path: Path) -> None:
    """Suite `ckks` over a relay, with its keys, and suite `stream` over its own shaped link."""
    network = parse_network("60ms,50mbps")
    cases = plan_cases(
        [MODELS / "digits-smooth" / "square.onnx"], settings(["ckks"]), [1], [None, network]
    )
    stream_settings = settings(["stream", "stream-bfv"])
    cases += plan_cases([MODELS / "breast-mlp.onnx"], stream_settings, [1], [None, network])
    records, skipped = measure(cases, tmp_path)
    assert skipped == []
    comparisons = compare(records)
    assert [(comparison.setting, comparison.phase) for comparison in comparisons] == [
        (name, phase) for name in ("ckks", "stream", "stream-bfv") for phase in ("online", "both")
    ]
    for record in records:
        if record.link is not None:
            (base,) = (r for r in records if r.setting == record.setting and r.link is None)
            assert abs(record.online.bytes - base.online.bytes) < 500
            assert record.online.rounds == base.online.rounds
    (keys,) = (
        comparison
        for comparison in comparisons
        if (comparison.setting, comparison.phase) == ("ckks", "both")
    )
    (answer,) = (
        comparison
        for comparison in comparisons
        if (comparison.setting, comparison.phase) == ("ckks", "online")
    )
    assert keys.predicted > answer.predicted + 0.5  # keys of some MB travel, too
    ratios = [
        comparison.measured / comparison.predicted
        for comparison in comparisons
        if comparison.phase == "online"
    ]
    assert min(ratios) > 0.5


def test_errors_are_median_and_95th_percentile(record: MakeRecord) -> None:
    base = record("fss", online={"seconds": 1.0})
    network = parse_network("40ms,400mbps")
    slow = predict(base, network).online_latency
    over = record("fss", link="40ms,400mbps", online={"seconds": slow / 1.25})
    online = [comparison for comparison in compare([base, over]) if comparison.phase == "online"]
    assert [comparison.error for comparison in online] == [pytest.approx(0.25)]
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
    description = machine.describe()
    prices = {"fss online": {"run": 1.0}}
    costs = UnitCosts(prices, prices, description["cpu"], description["cores"])
    monkeypatch.setattr(units, "calibrate", lambda progress: costs)
    assert units.load_or_measure() == costs
    monkeypatch.delattr(units, "calibrate")
    assert units.load_or_measure() == costs
    UnitCosts(prices, prices, "another", 1).write(path)
    assert units.read(path) is None
