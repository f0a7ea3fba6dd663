"""Suite `stream` between two real processes: the fixed-point executor's integers, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.python.compiler.graph.single import single
from typer.testing import CliRunner

import privet
from privet import suites, zoo
from privet.cli import app
from privet.errors import Misuse, UnsupportedModel


def model(
    nodes: list[onnx.NodeProto],
    shape: list[int],
    weights: dict[str, npt.NDArray[np.float32]],
) -> onnx.ModelProto:
    """A model from `x` of this shape to `y`."""
    graph = helper.make_graph(
        nodes,
        "toy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def pooling(kernel: int) -> onnx.ModelProto:
    """A convolution, a ReLU, a max pooling with stride 2 and a dense layer."""
    rng = np.random.default_rng(5)
    weights = {
        "k": rng.uniform(-0.5, 0.5, (3, 1, 3, 3)).astype(np.float32),
        "w": rng.uniform(-0.5, 0.5, (12, 4)).astype(np.float32),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "k"], ["c"], "conv"),
        node("Relu", ["c"], ["r"], "relu"),
        node("MaxPool", ["r"], ["m"], "pool", kernel_shape=[kernel] * 2, strides=[2, 2]),
        node("Flatten", ["m"], ["f"], "flatten"),
        node("MatMul", ["f", "w"], ["y"], "dense"),
    ]
    return model(nodes, [1, 1, 5 + kernel, 5 + kernel], weights)


PAILLIER = privet.Stream(cipher="paillier")

MOSTLY_BFV = pytest.mark.parametrize(
    "cipher", [pytest.param("paillier", marks=pytest.mark.slow), "bfv"]
)
"""What holds under both: under Paillier, slow without IFMA, in the slow tests."""

SMALL = ["breast", "heart", "cardio", "mnist-1", "mnist-2", "mnist-3"]
VGGS = ["vgg13-cifar", "vgg16-cifar", "vgg19-cifar"]


def check(run: privet.Run) -> None:
    """The executor's integers, for the bytes that were planned."""
    assert run.max_fixed_point_error == 0
    assert (run.trust or "").startswith(suites.STREAM_TRUST)
    assert run.plan is not None
    for phase, cost in (("offline", run.offline), ("online", run.online)):
        for figure in ("bytes_client", "bytes_server", "rounds"):
            assert getattr(cost, figure) == run.plan[f"{phase}_{figure}"]


@pytest.mark.parametrize("name", SMALL)
def test_models_of_the_paper_give_the_executors_integers(name: str, tmp_path: Path) -> None:
    run = privet.run(zoo.build(name, tmp_path), suite="stream", input_range=(0, 1))
    check(run)
    assert run.max_abs_error < 0.01


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name",
    [name if name == "breast" else pytest.param(name, marks=pytest.mark.slow) for name in SMALL],
)
def test_paillier_gives_the_same(name: str, tmp_path: Path) -> None:
    check(privet.run(zoo.build(name, tmp_path), suite=PAILLIER, input_range=(0, 1)))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", VGGS)
def test_vggs_of_the_paper_give_the_executors_integers(name: str, tmp_path: Path) -> None:
    path = zoo.build(name, tmp_path)
    check(privet.run(path, suite="stream", input_range=(0, 1)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", VGGS)
def test_vggs_with_paillier(name: str, tmp_path: Path) -> None:
    path = zoo.build(name, tmp_path)
    check(privet.run(path, suite=PAILLIER, input_range=(0, 1), timeout=7200.0))


@MOSTLY_BFV
def test_breast_keeps_its_accuracy_on_real_data(cipher: str) -> None:
    models = Path(__file__).parents[2] / "zoo" / "models"
    with np.load(models / "breast-mlp.npz") as data:
        inputs, labels = data["inputs"][:20], data["labels"][:20]
    run = privet.run(
        models / "breast-mlp.onnx",
        [inputs],
        suite=privet.Stream(cipher=cipher, packed=cipher == "paillier"),
        batch=20,
        calibration=[inputs[:1]],
    )
    check(run)
    (output,) = run.outputs.values()
    (reference,) = run.reference.values()
    assert np.array_equal(output.argmax(axis=1), reference.argmax(axis=1))
    assert (output.argmax(axis=1) == labels).mean() >= 0.9


@pytest.mark.parametrize(
    "proto", [single("ReduceSum", [(2, 3)], keepdims=0), single("Relu", [()])], ids=["sum", "relu"]
)
def test_tensors_without_axes(proto: onnx.ModelProto) -> None:
    check(privet.run(proto, suite="stream"))


@MOSTLY_BFV
def test_windows_are_pooled_and_a_batch_is_wider(cipher: str) -> None:
    run = privet.run(pooling(2), suite=privet.Stream(cipher=cipher), input_range=(-1, 1), batch=2)
    assert run.max_fixed_point_error == 0
    assert run.samples == 2


def test_packed_samples_take_the_ciphertexts_of_one() -> None:
    compiled = privet.compile(pooling(2), suite="stream", input_range=(-1, 1))
    estimate = PAILLIER.figures(compiled.program)
    run = privet.run(
        pooling(2),
        suite=privet.Stream(cipher="paillier", packed=True),
        input_range=(-1, 1),
        batch=5,
    )
    assert run.max_fixed_point_error == 0
    assert run.samples == 5
    assert run.plan is not None
    assert run.plan["samples"] == 5
    assert run.plan["online_bytes_client"] == estimate["online_bytes_client"]
    with pytest.raises(Misuse):
        privet.run(
            pooling(2),
            suite=privet.Stream(cipher="paillier", packed=True),
            input_range=(-1, 1),
            batch=54,
        )


@pytest.mark.parametrize(
    ("suite", "options"), [("gmw", {}), ("stream", {}), ("stream", {"cipher": "bfv"})]
)
def test_packing_is_for_paillier(suite: str, options: dict[str, str]) -> None:
    with pytest.raises(Misuse):
        suites.from_options(suite, {**options, "packed": True})


def test_overlapping_windows_are_refused_by_name() -> None:
    with pytest.raises(Misuse, match=r"\(max_pool2d\) does not run in suite stream: its windows"):
        privet.run(pooling(3), suite="stream", input_range=(-1, 1))


def smooth(seed: int = 11) -> onnx.ModelProto:
    """A convolution, SiLU, a dense layer, Tanh, and one output layer with Sigmoid."""
    rng = np.random.default_rng(seed)
    weights = {
        "k": rng.uniform(-0.8, 0.8, (3, 1, 3, 3)).astype(np.float32),
        "w": rng.uniform(-0.5, 0.5, (48, 6)).astype(np.float32),
        "v": rng.uniform(-2, 2, (6, 4)).astype(np.float32),
        "b": rng.uniform(-1, 1, 4).astype(np.float32),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "k"], ["c"], "conv"),
        node("Sigmoid", ["c"], ["gate"], "gate"),
        node("Mul", ["c", "gate"], ["s"], "silu"),
        node("Flatten", ["s"], ["f"], "flatten"),
        node("MatMul", ["f", "w"], ["h"], "hidden"),
        node("Tanh", ["h"], ["t"], "tanh"),
        node("MatMul", ["t", "v"], ["o"], "out"),
        node("Add", ["o", "b"], ["p"], "bias"),
        node("Sigmoid", ["p"], ["y"], "sigmoid"),
    ]
    return model(nodes, [1, 1, 6, 6], weights)


@MOSTLY_BFV
def test_smooth_activations_are_computed_in_the_clear(cipher: str) -> None:
    run = privet.run(smooth(), suite=privet.Stream(cipher=cipher), input_range=(-1, 1))
    check(run)
    assert run.max_abs_error < 4 * 2.0**-12
    assert run.plan is not None
    assert run.plan["exchanges"] == 2
    assert run.plan["encryptions"] == 36 + 48 + 6


def test_smooth_activations_of_packed_samples() -> None:
    run = privet.run(
        smooth(), suite=privet.Stream(cipher="paillier", packed=True), input_range=(-1, 1), batch=3
    )
    assert run.max_fixed_point_error == 0
    assert run.samples == 3


@pytest.mark.parametrize(
    ("activation", "cipher"),
    [
        pytest.param("sigmoid", "paillier", marks=pytest.mark.slow),
        *(
            (activation, "bfv")
            for activation in ("sigmoid", "tanh", "softplus", "erf", "gelu", "silu")
        ),
    ],
)
def test_trained_models_keep_their_labels(activation: str, cipher: str) -> None:
    folder = Path(__file__).parents[2] / "zoo" / "models" / "digits-smooth"
    with np.load(folder / "held-out.npz") as data:
        inputs = (data["raw"][:4, None] / 16).astype(np.float32)
    run = privet.run(
        folder / f"{activation}.onnx",
        [inputs],
        suite=privet.Stream(cipher=cipher),
        batch=4,
        input_range=(0, 1),
    )
    check(run)
    assert run.max_abs_error < 0.05
    (output,) = run.outputs.values()
    (reference,) = run.reference.values()
    assert np.array_equal(output.argmax(axis=1), reference.argmax(axis=1))


def test_polynomials_are_refused_by_name(tmp_path: Path) -> None:
    compiled = privet.compile(zoo.build("nn5", tmp_path), suite="ckks", input_range=(0, 1))
    with pytest.raises(UnsupportedModel, match='suite="stream"'):
        privet.run(compiled, suite="stream")
    with pytest.raises(Misuse, match="runs only in suite ckks"):
        privet.Stream().plan(compiled.program)


@pytest.mark.parametrize("suite", ["gmw", "fss", "ckks"])
def test_functions_are_for_this_suite(suite: str) -> None:
    compiled = privet.compile(smooth(), suite="stream", input_range=(-1, 1))
    with pytest.raises(UnsupportedModel, match=r"\(function\)") as refusal:
        privet.run(compiled, suite=suite)
    assert len(refusal.value.problems) == 3
    if suite != "ckks":
        config = suites.material_suite(suites.as_suite(suite))
        with pytest.raises(Misuse, match="runs only in suite stream"):
            config.plans(compiled.program.to_public_bytes())


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("security", "malicious"),
        ("correlations", "dealer"),
        ("rounds", "log"),
        ("key_bits", 1024),
        ("cipher", "rsa"),
    ],
)
def test_options_of_other_suites_are_refused(option: str, value: str | int) -> None:
    with pytest.raises(Misuse):
        suites.from_options("stream", {option: value})


def test_memory_is_not_limited() -> None:
    with pytest.raises(Misuse, match="cannot limit its memory"):
        privet.run(pooling(2), suite="stream", input_range=(-1, 1), memory="2GB")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """The file of two dense layers with a ReLU between them."""
    weights = {"v": np.ones((3, 2), np.float32), "w": np.ones((2, 4), np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"], "hidden"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w"], ["y"], "out"),
    ]
    path = tmp_path / "dense.onnx"
    onnx.save(model(nodes, [1, 3], weights), path)
    return path


def test_both_commands_say_that_the_suite_is_weaker(dense: Path) -> None:
    run = CliRunner().invoke(app, ["inspect", str(dense), "--suite", "stream", "--json"])
    inspected = json.loads(run.stdout)
    assert inspected["trust"] == suites.STREAM_TRUST
    assert inspected["supported"]["stream"]
    command = ["run", str(dense), "--suite", "stream"]
    fast = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert fast["suite"] == "stream"
    assert fast["plan"]["cipher"] == "bfv"
    stdout = CliRunner().invoke(app, command).stdout
    assert "Weaker trust: values are revealed up to order" in " ".join(stdout.split())


@pytest.mark.slow
def test_a_larger_key_is_an_option(dense: Path) -> None:
    command = ["run", str(dense), "--suite", "stream", "--cipher", "paillier", "--json"]
    report = json.loads(CliRunner().invoke(app, [*command, "--key-bits", "3072"]).stdout)
    assert report["plan"]["key_bits"] == 3072
