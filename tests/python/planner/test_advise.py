"""`privet plan`: what is ruled out, what is recommended, and the words for it."""

from __future__ import annotations

import json
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.python.planner.records import MakeRecord
from typer.testing import CliRunner

import privet
from privet import zoo
from privet.cli import app
from privet.compiler.compile import Compiled, compile
from privet.errors import InvalidModel, Misuse
from privet.planner import costing, machine, units
from privet.planner.advise import advise
from privet.planner.choice import Question, ruled_out, service_config
from privet.planner.network import parse_network
from privet.planner.predict import predict
from privet.planner.prices import per_batch, per_month, read_prices
from privet.planner.record import Record, file_sha256
from privet.planner.setting import ALL, Setting, cohort, settings
from privet.planner.units import UnitCosts
from privet.service.repository.config import CONFIG_FILE, read_config
from privet.suites.options import fields_of

MODEL = Path(__file__).resolve().parents[3] / "zoo" / "models" / "breast-mlp.onnx"
NETWORK = parse_network("40ms,400mbps")
PRICES = read_prices()


def costs(*records: Record) -> dict[tuple[Setting, int], Record | str]:
    return {(record.setting, record.batch): record for record in records}


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit costs of a second a run: no test waits for a calibration."""
    prices = {
        f"{setting.kind} {phase}": {"run": 0.1, "rounds": 1e-4}
        for setting in settings([*ALL, "ckks-collective-3"])
        for phase in ("offline", "online")
    }
    description = machine.describe()
    path = tmp_path / "units.json"
    UnitCosts(prices, prices, description["cpu"], description["cores"]).write(path)
    monkeypatch.setenv(units.VARIABLE, str(path))


def test_trust_rules_out(record: MakeRecord) -> None:
    table = costs(record("gmw-log"), record("fss"), record("fss-malicious"))
    alone = advise("a", Question(NETWORK, 0.1, dealer=False), table, PRICES)
    assert alone.recommended is not None
    assert alone.recommended.setting.name == "gmw-log"
    cheats = advise("a", Question(NETWORK, 0.1, malicious=True), table, PRICES)
    assert cheats.recommended is not None
    assert cheats.recommended.setting.name == "fss-malicious"
    neither = advise("a", Question(NETWORK, 0.1, dealer=False, malicious=True), table, PRICES)
    assert neither.recommended is None
    assert "dealer" in " ".join(neither.reasons)


def test_the_weakest_suite_must_be_allowed(record: MakeRecord) -> None:
    table = costs(record("stream"), record("gmw-log", online={"seconds": 9.0, "cpu_seconds": 9.0}))
    plain = advise("a", Question(NETWORK, 0.01, max_latency=5.0), table, PRICES)
    assert plain.recommended is None
    reasons = {choice.setting.name: " ".join(choice.against) for choice in plain.choices}
    assert "all values before each activation, in a random order" in reasons["stream"]
    assert "--allow-order-leak" in reasons["stream"]
    leaky = Question(NETWORK, 0.01, max_latency=5.0, order_leak=True)
    allowed = advise("a", leaky, table, PRICES)
    assert allowed.recommended is not None
    assert allowed.recommended.setting.name == "stream"
    assert any(
        reason.startswith("It leaks: values are revealed up to order") for reason in allowed.reasons
    )
    assert "must be started with `--reveal-values`" in allowed.config()
    # Where another suite costs as much, no leak is advised, however quick.
    near = advise("a", replace(leaky, max_latency=None), table, PRICES)
    assert near.recommended is not None
    assert near.recommended.setting.name == "gmw-log"
    assert any(
        "stream would answer" in reason and "shows the client" in reason for reason in near.reasons
    )


@pytest.mark.parametrize("name", [name for name in ALL if not ALL[name].members])
def test_the_service_reads_what_is_advised(name: str, tmp_path: Path) -> None:
    """What the owner does not choose is said to be the clients' to ask for."""
    setting = ALL[name]
    text = service_config(ruled_out(setting, "whatever"))
    (tmp_path / CONFIG_FILE).write_text(text)
    config = read_config(tmp_path)
    assert tuple(config.suites or ()) == (setting.config.name,)
    for field in fields_of(type(setting.config)):
        value = getattr(setting.config, field.name)
        is_set = value in config.options.get(field.name, ())
        assert value == field.default or is_set or field.flag in text


def test_a_cohort_is_advised_with_its_trust(record: MakeRecord, tmp_path: Path) -> None:
    table = costs(record("ckks-collective-5"), record("gmw-log"))
    assert not any(
        choice.setting.members for choice in advise("a", Question(NETWORK), table, PRICES).choices
    )
    question = Question(NETWORK, 0.01, parties=5)
    advice = advise("a", question, table, PRICES)
    assert advice.recommended is not None
    assert advice.recommended.setting == cohort(5)
    assert advice.recommended.pool == 0
    # Keys are made for each inference, so that both phases come after its arrival.
    assert advice.recommended.latency is not None
    assert advice.recommended.latency > 2.0
    assert any("at most 4 of 5 members collude" in reason for reason in advice.reasons)
    reasons = {choice.setting.name: " ".join(choice.against) for choice in advice.choices}
    assert "5 parties were to share the key" in reasons["gmw-log"]
    five, three = (
        per_month(predict(record(f"ckks-collective-{n}"), NETWORK), PRICES, 0.01) for n in (5, 3)
    )
    assert five.instance > three.instance
    text = advice.config()
    assert "program.json" in text
    (tmp_path / CONFIG_FILE).write_text(text)
    session = read_config(tmp_path).session
    assert session is not None
    assert session.label == "ckks collective 5"
    with pytest.raises(Misuse, match="2 to 20"):
        advise("a", Question(NETWORK, parties=21), table, PRICES)


def test_latency_budget_cores_and_link_rule_out(record: MakeRecord) -> None:
    slow = record("gmw-log", online={"seconds": 9.0, "cpu_seconds": 9.0})
    heavy = record("fss", offline={"dealer_bytes_client": 10**10, "dealer_bytes_server": 10**10})
    question = Question(NETWORK, 0.5, max_latency=5.0, budget=1.0, cores=1)
    advice = advise("a", question, costs(slow, heavy), PRICES)
    reasons = {choice.setting.name: " ".join(choice.against) for choice in advice.choices}
    assert "latency is" in reasons["gmw-log"]
    assert "the budget is $1" in reasons["gmw-log"]
    assert "needs 4 cores" in reasons["gmw-log"]
    assert "link is too narrow: 50,000 Mbit/s" in reasons["fss"]
    assert reasons["ckks"] == "no record of it"
    assert advice.recommended is None
    assert advice.reasons[1].startswith("gmw-log comes nearest")


def test_a_dealer_must_be_worth_it(record: MakeRecord) -> None:
    traffic = {"bytes_server": 10**5}
    alone, with_dealer = record("gmw-log", offline=traffic), record("gmw-dealer-log")
    near = advise("a", Question(NETWORK, 0.01), costs(alone, with_dealer), PRICES)
    assert near.recommended is not None
    assert near.recommended.setting == alone.setting
    far = record("gmw-log", offline={"bytes_server": 10**10})
    advice = advise("a", Question(NETWORK, 0.01), costs(far, with_dealer), PRICES)
    assert advice.recommended is not None
    assert advice.recommended.setting == with_dealer.setting
    assert any("A dealer must be found" in reason for reason in advice.reasons)


def test_a_pool_hides_the_offline_phase(record: MakeRecord) -> None:
    base = record("gmw-log", offline={"seconds": 10.0}, online={"seconds": 0.1, "rounds": 1})
    plan = advise("a", Question(NETWORK, 0.02, max_latency=1.0), costs(base), PRICES)
    assert plan.recommended is not None
    assert plan.recommended.pool is not None
    assert plan.recommended.pool >= 2
    assert plan.recommended.latency is not None
    assert plan.recommended.latency <= 1.0
    assert any(f"Keep {plan.recommended.pool} material entr" in reason for reason in plan.reasons)
    patient = advise("a", Question(NETWORK, 0.02, max_latency=100.0), costs(base), PRICES)
    assert patient.recommended is not None
    assert patient.recommended.pool is not None
    assert patient.recommended.pool < plan.recommended.pool


def test_money_has_the_parts_of_the_paper(record: MakeRecord) -> None:
    base = record("fss", offline={"dealer_bytes_client": 10**9, "seconds": 3.0})
    guess = predict(base, NETWORK)
    paper = read_prices("paper")
    bill = per_batch(guess, paper)
    instances = 3 * guess.offline.seconds + 2 * guess.online.seconds
    assert bill.instance == pytest.approx(0.001 * instances)
    assert bill.offline_transfer == pytest.approx(0.02, rel=1e-4)
    assert bill.port == 0.0
    wide = predict(base, parse_network("WAN_F"))
    assert per_batch(wide, paper).port == pytest.approx(0.0236 * wide.latency)
    month = per_month(guess, PRICES, rate=1.0, pool=10)
    assert month.dollars == pytest.approx(sum(vars(month).values()))
    assert month.offline_transfer == pytest.approx(86400 * 30.4375 * (1e9 + 500) * 9e-11)
    with pytest.raises(Misuse, match=r"\[gone\]"):
        read_prices("gone")


@pytest.mark.parametrize("table", ["cpu", "paper"])
def test_each_price_says_where_it_is_from(table: str) -> None:
    prices = read_prices(table)
    assert set(prices.sources) == {"instance", "storage", "egress", "port"}
    assert prices.port_per_second == pytest.approx(85 / 3600, rel=1e-3)


def test_a_person_gives_their_own_prices(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "[cpu]\n"
        'date = 2030-01-01\nsource = "an offer"\ninstance_per_second = 1e-6\ninstance_cores = 4\n'
        "storage_per_byte_second = 0\negress_per_byte = 0\nport_per_second = 0\n"
        "port_from_bytes_per_second = 1e9\n"
    )
    assert read_prices(path=path).source == "an offer"
    assert read_prices(path=path).sources == {}
    path.write_text('[cpu]\nsource = "half of one"\n')
    with pytest.raises(Misuse, match="no complete table"):
        read_prices(path=path)


@pytest.mark.usefixtures("priced")
def test_a_new_model_is_costed_by_its_layers(tmp_path: Path) -> None:
    advice = privet.plan(MODEL, rate=0.5, max_latency="30s")
    assert advice.recommended is not None
    assert not advice.recommended.measured
    assert "costed by layers" in advice.reasons[-1]
    names = {choice.setting.name for choice in advice.choices if choice.online is not None}
    assert {"gmw-blocks", "gmw-dealer-log", "fss", "fss-malicious"} <= names
    (tmp_path / CONFIG_FILE).write_text(advice.config())
    config = read_config(tmp_path)
    assert tuple(config.suites or ()) == (advice.recommended.setting.config.name,)
    assert config.cores == advice.recommended.cores


@pytest.mark.usefixtures("priced")
def test_one_suite_is_weighed_with_its_options() -> None:
    """A depth that is named is the only one; a weaker mode is told."""
    suite = privet.Gmw(truncation="one-bit")
    advice = privet.plan(MODEL, rate=0.5, suite=suite)
    assert {choice.setting.name for choice in advice.choices} == {
        "gmw-linear",
        "gmw-log",
        "gmw-blocks",
    }
    assert {choice.setting.config.facts()["truncation"] for choice in advice.choices} == {"one-bit"}
    assert any("can learn weights" in reason for reason in advice.reasons)
    assert tomllib.loads(advice.config())["truncation"] == ["one-bit"]
    (single,) = privet.plan(MODEL, rate=0.5, suite=privet.Gmw(rounds="log")).choices
    assert single.setting.name == "gmw-log"
    assert single.setting.config.facts()["truncation"] == "exact"
    exact = privet.plan(MODEL, rate=0.5, suite="gmw")
    assert not any("Weaker" in reason for reason in exact.reasons)


@pytest.mark.usefixtures("priced")
def test_what_has_no_unit_costs_is_not_guessed() -> None:
    advice = privet.plan(MODEL, rate=0.5, suite=privet.Gmw(field="prime"))
    assert advice.recommended is None
    assert "`privet run --field prime` measures them" in advice.reasons[1]


@pytest.mark.usefixtures("priced")
def test_a_plan_compiles_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []

    def tell(*args: Any, **options: Any) -> Compiled:
        calls.append(options)
        return compile(*args, **options)

    monkeypatch.setattr(costing, "compile", tell)
    samples = MODEL.with_name("breast-mlp-samples.npy")
    command = ["plan", str(MODEL), "--suite", "gmw", "--calibration", str(samples)]
    result = CliRunner().invoke(app, [*command, "--reveal", "label", "--json"])
    assert result.exit_code == 0, result.output
    assert len(calls[0]["calibration"]) == len(np.load(samples))
    assert calls[0]["reveal"] == "label"
    choices = json.loads(result.stdout)["choices"]
    assert {choice["setting"].partition("-")[0] for choice in choices} == {"gmw"}
    unnamed = CliRunner().invoke(app, ["plan", str(MODEL), "--truncation", "one-bit"])
    assert isinstance(unnamed.exception, Misuse)
    assert "add --suite gmw" in str(unnamed.exception)


def test_records_take_the_place_of_costing(
    record: MakeRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(units, "load_or_measure")
    record("gmw-log", model="breast-mlp", model_sha256=file_sha256(MODEL)).write(tmp_path)
    command = ["plan", str(MODEL), "--records", str(tmp_path), "--rate", "6/min", "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["recommended"] == "gmw-log"
    assert report["choices"][0]["measured"] is True
    printout = CliRunner().invoke(app, command[:-1])
    assert "99 of 100 requests" in printout.output
    toml = CliRunner().invoke(app, [*command[:-1], "--toml"])
    assert tomllib.loads(toml.stdout)["rounds"] == ["log"]
    none = CliRunner().invoke(app, [*command[:-1], "--budget", "1/month"])
    assert none.exit_code == 2
    assert "Nothing fits" in none.output


@pytest.mark.usefixtures("priced")
def test_records_of_other_batches_are_said_to_be_none(record: MakeRecord, tmp_path: Path) -> None:
    record("gmw-log", 8, model_sha256=file_sha256(MODEL)).write(tmp_path)
    advice = privet.plan(MODEL, rate=0.5, records=tmp_path, suite=privet.Gmw(rounds="log"))
    assert f"No record in {tmp_path} is of this model in batches of 1." in advice.reasons
    found = privet.plan(MODEL, rate=0.5, records=tmp_path, batch=8, suite=privet.Gmw(rounds="log"))
    assert not any("No record" in reason for reason in found.reasons)


@pytest.mark.usefixtures("priced")
def test_plans_take_no_longer_than_promised(record: MakeRecord, tmp_path: Path) -> None:
    """Seconds of this process, since others may keep the machine busy."""
    model = zoo.build("m2", tmp_path)
    start = time.process_time()
    privet.plan(model, rate=0.01)
    assert time.process_time() - start < 60
    for name in ALL:
        record(name, model="m2", model_sha256=file_sha256(model)).write(tmp_path)
    start = time.process_time()
    advice = privet.plan(model, rate=0.01, records=tmp_path)
    assert time.process_time() - start < 2
    assert all(choice.measured for choice in advice.choices if choice.online is not None)


@pytest.mark.parametrize("option", [("--rate", "fast"), ("--budget", "1/day"), ("--rtt", "1")])
def test_nonsense_is_refused(option: tuple[str, str]) -> None:
    result = CliRunner().invoke(app, ["plan", str(MODEL), *option])
    assert isinstance(result.exception, Misuse)


def test_the_quickest_of_those_that_cost_the_same(record: MakeRecord) -> None:
    slow = record("gmw-linear", online={"seconds": 3.0, "bytes_server": 10})
    quick = record("gmw-blocks", online={"seconds": 1.0, "bytes_server": 10**6})
    advice = advise("a", Question(NETWORK, 0.01), costs(slow, quick), PRICES)
    assert advice.choices[0].setting == slow.setting
    assert advice.recommended is not None
    assert advice.recommended.setting == quick.setting
    assert any("gmw-linear would cost a little less" in reason for reason in advice.reasons)
    assert "36 an hour" in advice.reasons[0]


def test_a_batch_is_chosen_too(record: MakeRecord) -> None:
    single = record("gmw-log", online={"seconds": 0.2, "cpu_seconds": 2.0})
    many = record("gmw-log", batch=8, online={"seconds": 0.4, "cpu_seconds": 2.0})
    question = Question(NETWORK, 8.0, batches=(1, 8))
    advice = advise("a", question, costs(single, many), PRICES)
    assert [choice.batch for choice in advice.choices if choice.online is not None] == [8, 1]
    assert advice.recommended is not None
    assert advice.recommended.batch == 8
    assert "batch = 8" in advice.config()
    assert advice.reasons[0].startswith("gmw-log in batches of 8 answers")
    hasty = advise("a", replace(question, max_latency=1.2), costs(single, many), PRICES)
    assert hasty.recommended is not None
    assert hasty.recommended.batch == 1  # filling a batch of 8 takes 7/8 of a second


@pytest.mark.parametrize("setting", ["gmw-blocks", "gmw-dealer-log", "fss-malicious", "ckks"])
def test_the_service_takes_the_answer(setting: str, record: MakeRecord, tmp_path: Path) -> None:
    base = record(setting, batch=4)
    advice = advise("a", Question(NETWORK, 0.01, batches=(4,)), costs(base), PRICES)
    (tmp_path / CONFIG_FILE).write_text(advice.config())
    config = read_config(tmp_path)
    assert config.suites == (base.setting.config.name,)
    suite = base.setting.config
    assert config.offered(type(suite))[0] == suite
    assert config.batch == 4


def test_advice_without_a_fitting_suite_has_no_configuration(record: MakeRecord) -> None:
    advice = advise("a", Question(NETWORK, 1.0, budget=1.0), costs(record("gmw-log")), PRICES)
    with pytest.raises(Misuse, match="nothing fits"):
        advice.config()


def test_a_model_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"none.onnx cannot be read: No such file"):
        privet.plan(tmp_path / "none.onnx")


@pytest.mark.parametrize("words", [["plan"], ["inspect", "--all-suites"]])
def test_a_file_that_is_no_model_is_refused_once(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("no model")
    result = CliRunner().invoke(app, [*words, str(path)])
    assert isinstance(result.exception, InvalidModel)
