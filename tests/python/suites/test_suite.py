"""What every suite is: options that are checked, JSON both ways, labels, trust and jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.python.compiler.graph.single import model, node

import privet
from privet import suites
from privet.compiler.compile import compile
from privet.errors import Misuse
from privet.suites import MaterialSuite, Suite
from privet.suites.options import fields_of

DIGITS = Path(__file__).parents[3] / "zoo" / "models" / "digits-cnn.onnx"

ALL = [suite for suite_type in suites.all_suites() for suite in suite_type.labelled()]


@pytest.fixture(scope="module")
def public() -> bytes:
    return compile(DIGITS, input_range=(0, 1)).program.to_public_bytes()


@pytest.mark.parametrize("suite", ALL, ids=lambda suite: suite.label)
def test_a_suite_is_found_again_by_its_label_and_its_json(suite: Suite) -> None:
    assert suites.from_label(suite.label) == suite
    assert suites.from_json(json.loads(json.dumps(suite.to_json()))) == suite


def test_no_two_suites_have_one_label() -> None:
    assert len({suite.label for suite in ALL}) == len(ALL)


@pytest.mark.parametrize(
    "suite",
    [suite for suite in ALL if isinstance(suite, MaterialSuite)],
    ids=lambda suite: suite.label,
)
def test_labels_and_modes_are_those_of_the_native_plan(suite: MaterialSuite, public: bytes) -> None:
    assert suite.native(public).suite == suite.label
    assert suite.mode.suite == suite.name
    assert suite.mode.truncation == suite.truncation
    assert (suite.mode.correlations == "dealer") == suite.dealt


@pytest.mark.parametrize("suite_type", suites.all_suites(), ids=lambda suite_type: suite_type.name)
def test_every_option_says_what_it_takes(suite_type: type[Suite]) -> None:
    assert suites.as_suite(suite_type.name) == suite_type()
    for field in fields_of(suite_type):
        assert len(field.option.about) > 20
        assert field.default is None or field.option.fault(field.default) is None
        with pytest.raises(Misuse, match=field.option.what):
            suite_type.from_options({field.name: "nothing of the kind"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gm", {}, "the suite is 'gm'; possible are gmw, fss, ckks, stream"),
        ("fss", {"rounds": "log"}, "rounds is an option of suite gmw, not of fss"),
        ("ckks", {"truncation": "exact"}, "an option of suite gmw and fss, not of ckks"),
        ("stream", {"colour": "red"}, "has no option colour: it has cipher, key_bits, packed"),
        ("stream", {"packed": True}, "packed is for cipher paillier"),
        ("stream", {"key_bits": 3072}, "key_bits is for cipher paillier"),
        ("ckks", {"parties": 21}, "the number of parties is 21; possible are 2 to 20"),
        ("ckks", {"parties": True}, "the number of parties is True"),
        ("gmw", {"unprepared": 1}, "unprepared is 1, not on or off"),
    ],
)
def test_unknown_suites_and_options_are_refused(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(Misuse, match=message):
        suites.from_options(name, options)


@pytest.mark.parametrize("value", [privet.Gmw, None, {"name": "gmw"}], ids=["type", "none", "dict"])
def test_what_is_no_suite_is_refused(value: Any) -> None:
    with pytest.raises(Misuse, match=r"give one with its options, such as privet.Gmw\(\), or the"):
        suites.as_suite(value)


@pytest.mark.parametrize(
    "document", [None, "gmw", {}, {"suite": 1}, {"suite": "gmw", "round": "log"}, {"suite": "no"}]
)
def test_json_of_no_suite_is_refused(document: Any) -> None:
    with pytest.raises(Misuse):
        suites.from_json(document)


def test_a_label_of_no_suite_is_refused() -> None:
    with pytest.raises(Misuse, match="there is no suite 'gmw log'"):
        suites.from_label("gmw log")


def test_what_is_left_open_has_no_label() -> None:
    with pytest.raises(Misuse, match="rounds are left open"):
        _ = privet.Gmw().label
    assert [alternative.rounds for alternative in privet.Gmw().alternatives()] == [
        "linear",
        "log",
        "blocks",
    ]


def test_newcomers_get_the_quicker_cipher() -> None:
    assert privet.Stream().cipher == "bfv"
    assert privet.Stream(cipher="paillier").bits == 2048


@pytest.mark.parametrize("suite", ALL, ids=lambda suite: suite.label)
def test_trust_is_told_beside_what_is_weaker(suite: Suite) -> None:
    trust = suite.trust
    assert all((trust.collusion, trust.adversary, trust.revealed))
    assert suite.mode.security in trust.adversary
    weaker = {weakness.name for weakness in suite.weaknesses}
    if {"dealer", "revealed-values"} & weaker:
        assert trust.caution is not None


@pytest.mark.parametrize("suite", ALL, ids=lambda suite: suite.label)
def test_the_last_job_makes_the_prediction(suite: Suite) -> None:
    *first, last = suite.jobs
    assert first
    assert last.makes == "prediction"
    assert ("dealer" in first[0].parties) == (suite.mode.correlations == "dealer")


def test_every_refusal_is_told_at_once() -> None:
    pools = [
        node("MaxPool", ["x"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    program = compile(model(pools, {"x": (1, 1, 8, 8)}, ["y"], {})).program
    assert len(privet.Ckks().supports(program)) >= 2
    assert privet.Gmw().supports(program) == []
    assert privet.Gmw().runs(program)
    assert not privet.Ckks().runs(program)


def test_a_price_of_bytes_takes_the_extension_that_sends_fewest(public: bytes) -> None:
    def taken_and_least(price: int) -> tuple[int, float, int]:
        plan = privet.Gmw(rounds="linear", byte_price=price).native(public)
        report = json.loads(plan.forecast())
        traffic = {
            extension["name"]: extension["bytes_client"] + extension["bytes_server"]
            for extension in report["extensions"]
        }
        seconds = {
            extension["name"]: extension["core_seconds"] for extension in report["extensions"]
        }
        return traffic[report["extension"]], seconds[report["extension"]], min(traffic.values())

    (many, quick, _), (few, slow, least) = taken_and_least(0), taken_and_least(1_000_000)
    assert few == least < many / 2
    assert slow > quick
