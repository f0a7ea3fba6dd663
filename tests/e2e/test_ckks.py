"""Suite `ckks` end to end: two processes of the Go program, over TLS, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import constant, model, node

import privet
from privet import suites, zoo
from privet.cli.all_suites import survey
from privet.cli.run import as_object
from privet.compiler.passes.check_results import MOST_RESULT
from privet.errors import InputError, Misuse, UnsupportedModel
from privet.planner import units
from privet.planner.costing import cost_settings
from privet.planner.setting import settings

pytestmark = pytest.mark.go

DIGITS = Path(__file__).parents[2] / "zoo" / "models" / "digits-smooth" / "square.onnx"
"""A smaller network than those of the zoo whose ciphertexts are flooded statistically."""

UNIT = 2.0**-10
"""What ciphertexts may add to an output's error, times the largest output."""


def within(run: privet.Run, slack: float = UNIT) -> bool:
    """Whether the private outputs are the reference's, up to `slack` times the largest."""
    largest = max(float(np.abs(array).max()) for array in run.reference.values())
    return run.max_abs_error <= slack * max(1.0, largest)


@pytest.mark.parametrize(("name", "flooding"), [("nn5", "statistical"), ("mlp-square", "light")])
def test_models_whose_activations_are_polynomials(name: str, flooding: str, tmp_path: Path) -> None:
    path = zoo.build(name, tmp_path)
    run = privet.run(path, suite=privet.Ckks(flooding=flooding), input_range=(0, 1))
    assert run.argmax_agrees
    assert within(run)
    assert run.plan is not None
    assert (run.plan["statistical_bits"] >= 16) is (flooding == "statistical")
    assert run.offline.bytes_client == pytest.approx(run.plan["offline_bytes_client"], rel=0.01)
    assert run.online.bytes_client == pytest.approx(run.plan["online_bytes_client"], rel=0.01)
    assert run.online.bytes_server == pytest.approx(run.plan["online_bytes_server"], rel=0.01)
    assert as_object(run)["plan"]["log_qp"] <= run.plan["log_qp_limit"]


@pytest.mark.parametrize("batch", [pytest.param(2, marks=pytest.mark.slow), 5])
def test_batches_of_any_size(batch: int, tmp_path: Path) -> None:
    path = zoo.build("nn5", tmp_path)
    x = np.random.default_rng(batch).uniform(0, 1, (batch, 1, 28, 28)).astype(np.float32)
    run = privet.run(path, [x], suite="ckks", input_range=(0, 1), batch=batch)
    assert run.samples == batch
    assert run.argmax_agrees
    assert within(run)


def test_what_is_no_chain(tmp_path: Path) -> None:
    """Residuals, concatenations, gates, pools and two outputs at different depths."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Tanh", ["c"], ["t"]),
        node("Add", ["t", "x"], ["sum"]),
        node("AveragePool", ["sum"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["pooled"], ["flat"]),
        node("MatMul", ["flat", "a"], ["left"]),
        node("MatMul", ["flat", "b"], ["right"]),
        node("Mul", ["left", "right"], ["gated"]),
        node("Concat", ["gated", "left"], ["joined"], axis=1),
        node("MatMul", ["joined", "d"], ["y"]),
        node("Neg", ["left"], ["z"]),
    ]
    for index, entry in enumerate(nodes):
        entry.name = f"{entry.op_type}{index}"
    weights = {
        "w": constant(2, 2, 3, 3, seed=1, spread=0.3),
        "a": constant(18, 4, seed=2, spread=0.3),
        "b": constant(18, 4, seed=3, spread=0.3),
        "d": constant(8, 3, seed=4),
    }
    proto = model(nodes, {"x": (1, 2, 6, 6)}, ["y", "z"], weights)
    run = privet.run(proto, suite=privet.Ckks(flooding="light"), input_range=(-1, 1))
    assert within(run, 8 * UNIT)


def test_a_softmax_is_left_to_the_client() -> None:
    nodes = [node("MatMul", ["x", "w"], ["l"]), node("Softmax", ["l"], ["p"], axis=1)]
    run = privet.run(model(nodes, {"x": (1, 9)}, ["p"], {"w": constant(9, 4)}), suite="ckks")
    assert run.probabilities
    assert run.outputs["p"].sum() == pytest.approx(1)
    assert within(run)


@pytest.mark.parametrize(
    ("scenario", "flooding"),
    [
        ("encrypted-data", "light"),
        pytest.param("encrypted-data", "statistical", marks=pytest.mark.slow),
        pytest.param("collective", "statistical", marks=pytest.mark.slow),
    ],
)
def test_a_relu_is_a_product_with_a_sign(scenario: str, flooding: str) -> None:
    nodes = [
        node("MatMul", ["x", "a"], ["h"]),
        node("Relu", ["h"], ["r"]),
        node("MatMul", ["r", "b"], ["y"]),
    ]
    for index, entry in enumerate(nodes):
        entry.name = f"{entry.op_type}{index}"
    weights = {"a": constant(9, 8, spread=0.3), "b": constant(8, 4, seed=1, spread=0.3)}
    run = privet.run(
        model(nodes, {"x": (1, 9)}, ["y"], weights),
        suite=privet.Ckks(scenario=scenario, flooding=flooding, parties=2),
    )
    # Eight ReLUs, each off by up to 2^-10 of an input's bound.
    assert within(run, 16 * UNIT)


def test_comparisons_are_refused_by_name() -> None:
    pool = node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    with pytest.raises(UnsupportedModel, match=r"max_pool2d\): it compares") as refusal:
        privet.run(model([pool], {"x": (1, 1, 4, 4)}, ["y"], {}), suite="ckks")
    assert len(refusal.value.problems) == 1


@pytest.mark.parametrize("suite", [privet.Gmw(rounds="log"), privet.Fss(security="malicious")])
def test_other_suites_refuse_polynomials_by_name(
    suite: suites.MaterialSuite, tmp_path: Path
) -> None:
    path = zoo.build("nn5", tmp_path)
    compiled = privet.compile(path, suite="ckks", input_range=(0, 1))
    with pytest.raises(UnsupportedModel, match=r'suite="gmw"|not authenticate') as refusal:
        privet.run(compiled, suite=suite)
    assert len(refusal.value.problems) == 2
    with pytest.raises(Misuse, match="runs only in suite ckks"):
        suite.native(compiled.program.to_public_bytes())
    names = [kind.name for kind in suites.all_suites() if kind().runs(compiled.program)]
    assert names == ["ckks"]


def test_noise_that_nothing_can_hide_is_refused_unless_lightly_flooded(tmp_path: Path) -> None:
    """By a run and by what `privet plan` asks, and not for weights that leave more room; `privet
    inspect --all-suites` says so."""
    path, refusal = zoo.build("mlp-square", tmp_path), "protects keys by 15 bits only, not 16"
    with pytest.raises(Misuse, match=refusal):
        privet.run(path, suite="ckks", input_range=(0, 1))
    records = cost_settings(
        path, settings(["ckks"]), 1, units.load_or_measure, {"input_range": (0, 1)}
    )
    assert refusal in str(*records.values())
    verdicts = {row.suite: row for row in survey(path, None, None, input_range=(0, 1))}
    assert verdicts["ckks"].options == {"flooding": "light"}
    assert refusal in verdicts["ckks"].message
    assert verdicts["ckks"].message.endswith("--flooding light")
    suites.Ckks().check_weights(
        privet.compile(zoo.build("nn5", tmp_path), suite="ckks", input_range=(0, 1))
    )


@pytest.mark.parametrize("scenario", ["encrypted-data", "encrypted-model", "collective"])
def test_a_result_that_wraps_is_an_error(scenario: str) -> None:
    """It came as its remainder, for inputs within their bound that calibration had not seen."""
    weights = {"w": 30 * np.eye(3, dtype=np.float32)}
    proto = model([node("MatMul", ["x", "w"], ["y"])], {"x": (1, 3)}, ["y"], weights)
    seen, one, all_beyond = (
        [np.array([row], np.float32)] for row in ([4, -2, 1], [6, -2, 1], [7, 7, 7])
    )
    suite = privet.Ckks(scenario=scenario, parties=2)
    compiled = privet.compile(proto, suite=suite, calibration=seen)
    for inputs in (seen, one):
        assert within(privet.run(compiled, inputs, suite=suite))
    with pytest.raises(InputError, match=r"output y has wrapped around .* beyond 128"):
        privet.run(compiled, all_beyond, suite=suite)


def test_the_compiler_knows_what_a_result_holds(tmp_path: Path) -> None:
    compiled = privet.compile(zoo.build("nn5", tmp_path), suite="ckks", input_range=(0, 1))
    assert suites.Ckks().figures(compiled.program)["most_result"] == MOST_RESULT


def test_what_does_not_fit_is_refused_with_the_figure(tmp_path: Path) -> None:
    path = zoo.build("nn5", tmp_path)
    with pytest.raises(Misuse, match=r"takes about \d+ MB, more than the limit of 50 MB"):
        privet.run(path, suite="ckks", memory="50MB", input_range=(0, 1))


def test_more_levels_than_a_ring_has_take_central_bootstrapping(tmp_path: Path) -> None:
    path = zoo.build("nn50", tmp_path)
    with pytest.raises(Misuse, match=r"takes about \d{4,} MB, more than the limit of 1000 MB"):
        privet.run(path, suite=privet.Ckks(flooding="light"), memory="1GB", input_range=(0, 1))


@pytest.mark.slow
def test_deep_models_by_central_bootstrapping(tmp_path: Path) -> None:
    run = privet.run(
        zoo.build("nn20", tmp_path), suite=privet.Ckks(flooding="light"), input_range=(0, 1)
    )
    assert run.argmax_agrees
    assert within(run, 16 * UNIT)
    assert run.plan is not None
    assert run.plan["refreshes"] > 0
    assert run.offline.bytes_client == pytest.approx(run.plan["offline_bytes_client"], rel=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {"security": "malicious"},
        {"correlations": "dealer"},
        {"rounds": "log"},
    ],
)
def test_options_of_other_suites_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(Misuse):
        suites.from_options("ckks", options)


@pytest.mark.slow
def test_each_link_of_a_cohort_is_shaped(tmp_path: Path) -> None:
    path = zoo.build("nn5", tmp_path)
    suite = privet.Ckks(scenario="collective", parties=2)
    near, far = (
        privet.run(path, suite=suite, input_range=(0, 1), link=link)
        for link in (None, "400ms,1000Mbit")
    )
    assert far.argmax_agrees
    assert far.online.rounds == near.online.rounds
    # A round of a cohort is a whole trip there and back.
    assert far.online.seconds - near.online.seconds > 0.7 * 0.4 * far.online.rounds


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("nn5", 1),
        pytest.param("mlp-square", 1, marks=pytest.mark.slow),
        pytest.param("nn5", 24, marks=pytest.mark.slow),
    ],
)
def test_an_encrypted_model_is_evaluated_by_the_client(
    name: str, batch: int, tmp_path: Path
) -> None:
    path = zoo.build(name, tmp_path)
    run = privet.run(
        path, suite=privet.Ckks(scenario="encrypted-model"), input_range=(0, 1), batch=batch
    )
    assert run.argmax_agrees
    assert within(run, 4 * UNIT)
    assert run.mode.scenario == "encrypted-model"
    assert run.plan is not None
    assert run.plan["statistical_bits"] >= 16
    assert run.offline.bytes_server == pytest.approx(run.plan["offline_bytes_server"], rel=0.01)
    assert run.online.bytes_client == pytest.approx(run.plan["online_bytes_client"], rel=0.01)
    assert run.online.bytes_server < run.online.bytes_client / 10


@pytest.mark.parametrize("scenario", ["encrypted-model", "collective"])
def test_an_encrypted_model_serves_a_batch_in_groups(scenario: str, tmp_path: Path) -> None:
    """Encrypted diagonals are what costs: for one group NN5 had 2050 of them."""
    path = zoo.build("nn5", tmp_path)
    public = privet.compile(path, suite="ckks", batch=83, input_range=(0, 1)).program
    plan = suites.plan_ckks(public.to_public_bytes(), scenario, "statistical", 3)
    assert plan["groups"] > 1
    assert plan["groups"] * plan["batch"] >= 83
    assert sum(layer["products"] for layer in plan["layers"]) < 300
    assert max(plan["memory_bytes_server"], plan["memory_bytes_client"]) < 1e9


def test_an_encrypted_model_that_does_not_fit_its_client_is_refused(tmp_path: Path) -> None:
    path = zoo.build("nn5", tmp_path)
    with pytest.raises(Misuse, match=r"takes about \d+ MB, more than the limit of 250 MB"):
        privet.run(
            path, suite=privet.Ckks(scenario="encrypted-model"), memory="250MB", input_range=(0, 1)
        )


@pytest.mark.slow
def test_the_owner_of_an_encrypted_model_refreshes_deep_ones(tmp_path: Path) -> None:
    run = privet.run(
        zoo.build("nn20", tmp_path),
        suite=privet.Ckks(scenario="encrypted-model"),
        input_range=(0, 1),
    )
    assert run.argmax_agrees
    assert within(run, 16 * UNIT)
    assert run.plan is not None
    assert run.plan["refreshes"] > 0
    assert run.plan["statistical_bits"] >= 16
    assert run.offline.bytes_server == pytest.approx(run.plan["offline_bytes_server"], rel=0.01)
    assert run.online.bytes_client == pytest.approx(run.plan["online_bytes_client"], rel=0.01)
    assert run.online.bytes_server == pytest.approx(run.plan["online_bytes_server"], rel=0.01)


@pytest.mark.parametrize(
    ("name", "parties"),
    [
        ("digits", 2),
        pytest.param("nn5", 2, marks=pytest.mark.slow),
        pytest.param("nn5", 4, marks=pytest.mark.slow),
        pytest.param("mlp-square", 3, marks=pytest.mark.slow),
    ],
)
def test_a_cohort_keeps_model_and_data_encrypted(name: str, parties: int, tmp_path: Path) -> None:
    path = DIGITS if name == "digits" else zoo.build(name, tmp_path)
    run = privet.run(
        path, suite=privet.Ckks(scenario="collective", parties=parties), input_range=(0, 1)
    )
    assert run.argmax_agrees
    assert within(run, 4 * UNIT)
    assert run.config == privet.Ckks(scenario="collective", parties=parties)
    assert run.trust is not None
    assert run.plan is not None
    assert run.plan["statistical_bits"] >= 16
    assert run.plan["refreshes"] == 0
    assert set(run.memory) == {"client", "coordinator", "member"}


@pytest.mark.parametrize(
    "options",
    [
        {"suite": "ckks", "scenario": "encrypted-everything"},
        {"suite": "ckks", "scenario": "collective", "parties": 1},
        {"suite": "ckks", "scenario": "collective", "parties": 21},
        {"suite": "gmw", "scenario": "collective"},
        {"suite": "gmw", "scenario": "encrypted-model"},
        {"suite": "gmw", "flooding": "statistical"},
        {"suite": "ckks", "flooding": "none"},
        {"suite": "ckks", "scenario": "encrypted-model", "flooding": "light"},
    ],
)
def test_scenarios_that_are_none_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(Misuse):
        suites.from_options(str(options.pop("suite")), options)


def deep(layers: int) -> onnx.ModelProto:
    """So many dense layers with a tanh after each: more levels than are left after a few."""
    nodes, weights, name = [], {}, "x"
    for layer in range(layers):
        weights[f"w{layer}"] = constant(8, 8, seed=layer, spread=0.35)
        nodes.append(node("MatMul", [name, f"w{layer}"], [f"m{layer}"]))
        nodes.append(node("Tanh", [f"m{layer}"], [f"t{layer}"]))
        name = f"t{layer}"
    for index, entry in enumerate(nodes):
        entry.name = f"{entry.op_type}{index}"
    return model(nodes, {"x": (1, 8)}, [name], weights)


@pytest.mark.parametrize("flooding", ["light", pytest.param("statistical", marks=pytest.mark.slow)])
def test_a_cohort_refreshes_deep_models(flooding: str) -> None:
    run = privet.run(
        deep(4),
        suite=privet.Ckks(scenario="collective", flooding=flooding, parties=2),
        input_range=(-1, 1),
    )
    assert run.plan is not None
    assert run.plan["refreshes"] > 0
    assert any(layer["refresh"] for layer in run.plan["layers"])
    assert within(run, 8 * UNIT)
    # Shares of keys and the model go offline, those of refreshes and results online.
    late = run.config.facts()["parties"] * run.plan["member_bytes_online"]
    early = (
        run.config.facts()["parties"] * run.plan["member_bytes"] - late + run.plan["model_bytes"]
    )
    assert run.offline.bytes_client == pytest.approx(early, rel=0.01)
    assert run.online.bytes_client == pytest.approx(
        late + run.plan["online_bytes_client"], rel=0.01
    )
    assert run.plan["refresh_bytes"] > 0.5 * run.plan["member_bytes_online"]


def test_plans_differ_by_who_refreshes() -> None:
    public = privet.compile(deep(12), suite="ckks", input_range=(-1, 1)).program
    plan = suites.plan_ckks(public.to_public_bytes(), "collective", "light", 5)
    assert plan["members"] == 5
    assert plan["refreshes"] == sum(
        layer["ciphertexts"] * {"": 0, "both": 2}.get(layer["refresh"], 1)
        for layer in plan["layers"]
    )
    alone = suites.plan_ckks(public.to_public_bytes(), flooding="light")
    assert "members" not in alone
    assert plan["parameters"]["log_n"] < alone["parameters"]["log_n"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parties", "batch"), [("nn20", 3, 128), ("nn20", 10, 1), ("nn50", 3, 1)]
)
def test_deep_models_of_a_cohort(name: str, parties: int, batch: int, tmp_path: Path) -> None:
    run = privet.run(
        zoo.build(name, tmp_path),
        suite=privet.Ckks(scenario="collective", parties=parties),
        batch=batch,
        input_range=(0, 1),
    )
    assert run.argmax_agrees
    assert within(run, 16 * UNIT)
    assert run.memory["coordinator"].peak_mb < 12_000


def test_a_cohort_that_does_not_fit_is_refused_with_the_figure(tmp_path: Path) -> None:
    path = zoo.build("nn20", tmp_path)
    with pytest.raises(Misuse, match=r"takes about \d+ MB, more than the limit of 50 MB"):
        privet.run(
            path,
            suite=privet.Ckks(scenario="collective"),
            memory="50MB",
            input_range=(0, 1),
        )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_residual_network_of_a_cohort(tmp_path: Path) -> None:
    """ResNet-20: 19 ReLUs, products of residuals with signs, about 40 refreshes."""
    run = privet.run(
        zoo.build("resnet20", tmp_path),
        suite=privet.Ckks(scenario="collective", parties=3),
        input_range=(0, 1),
        timeout=1200.0,
    )
    assert run.argmax_agrees
    assert within(run, 8 * UNIT)
    assert run.memory["coordinator"].peak_mb < 20_000
