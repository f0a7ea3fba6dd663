"""Ensembles of decision trees against ONNX Runtime: those of real exporters, and odd ones."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.python.compiler.graph.ensembles import random_trees, split_trees
from tests.python.compiler.graph.single import Array

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph.ensemble import Branch, Leaf, walk
from privet.compiler.graph.ensemble import Test as Comparison
from privet.compiler.graph.order import places
from privet.errors import InputError, OverflowRisk, UnsupportedModel

HERE = Path(__file__).parent / "exported_trees"
EXPORTED = sorted(path.stem for path in HERE.glob("*.onnx"))


def reference(model: onnx.ModelProto, x: Array) -> list[Array]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    outputs: list[Array] = session.run(None, {session.get_inputs()[0].name: x})
    return outputs


def computed(model: onnx.ModelProto, x: Array, **options: Any) -> Array:
    compiled = compile(model, **options)
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    return output


@pytest.mark.parametrize("name", EXPORTED)
def test_exported_models_agree_on_every_row(name: str) -> None:
    model = onnx.load(HERE / f"{name}.onnx")
    x = np.load(HERE / "rows.npz")[f"x_{name.split('_')[1]}"]
    compiled = compile(model, batch=len(x))
    outputs = execute(compiled.program, compiled.weights, [x]).outputs
    assert list(outputs) == [output.name for output in model.graph.output]
    for result, expected in zip(outputs.values(), reference(model, x), strict=True):
        if isinstance(expected, list):  # a map for each row
            assert [sorted(row) for row in result] == [sorted(row) for row in expected]
            pairs = zip(result, expected, strict=True)
            gaps = [abs(row[label] - other[label]) for row, other in pairs for label in other]
            assert max(gaps) < 1e-5
        elif expected.dtype.kind == "f":
            spread = max(float(np.std(expected)), 1.0)
            assert np.allclose(result.ravel(), expected.ravel(), rtol=0, atol=1e-5 * spread)
        else:
            assert np.array_equal(result, expected)


@pytest.mark.parametrize("kind", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
@pytest.mark.parametrize("complete", [True, False])
def test_every_comparison(kind: str, complete: bool) -> None:
    model = random_trees(9, 5, 4, complete=complete, targets=3, modes=[kind], rows=40)
    x = np.random.default_rng(5).normal(size=(40, 4)).astype(np.float32)
    # Values that equal a threshold, zeros of both signs, and the largest and least of all numbers.
    thresholds: list[float] = [
        v for a in model.graph.node[0].attribute if a.name == "nodes_values" for v in a.floats
    ]
    x[:20] = np.random.default_rng(6).choice(np.array(thresholds, dtype=np.float32), size=(20, 4))
    x[20, :] = [0.0, -0.0, 3e38, -3e38]
    x[21, :] = [1e-45, -1e-45, 1e-38, 65504.0]
    assert np.allclose(computed(model, x), reference(model, x)[0], rtol=0, atol=1e-5)


def test_trees_that_are_deep_and_thin() -> None:
    model = random_trees(3, 14, 4, complete=False, stop=0.6, rows=30)
    x = np.random.default_rng(5).normal(size=(30, 4)).astype(np.float32)
    compiled = compile(model)
    assert [o.op for o in compiled.program.operations].count("step") == 2
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    assert np.allclose(output, reference(model, x)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("aggregate", [0, 1])
def test_the_newest_form_with_sets(aggregate: int) -> None:
    model = split_trees(aggregate, rows=24)
    x = np.tile(np.arange(8, dtype=np.float32)[:, None], (3, 2))
    assert np.allclose(computed(model, x), reference(model, x)[0], rtol=0, atol=1e-5)


def test_behind_a_layer_trees_compare_at_a_scale() -> None:
    model = random_trees(5, 4, 4, rows=16)
    model.graph.node[0].input[0] = "z"
    model.graph.node.insert(0, onnx.helper.make_node("Add", ["x", "x"], ["z"], name="twice"))
    x = (np.rint(np.random.default_rng(5).normal(size=(16, 4)) * 64) / 64).astype(np.float32)
    assert np.allclose(computed(model, x), reference(model, x)[0], rtol=0, atol=1e-5)


def test_nothing_public_depends_on_shape_or_thresholds() -> None:
    shapes = set()
    for seed in range(3):
        program = compile(random_trees(4, 5, 6, seed=seed, complete=False, least=5)).program
        shapes.add(str([(o.op, o.attributes) for o in program.operations]))
        assert program.inputs[0].order
        assert program.calibration == "sound"
    assert len(shapes) == 1


def test_which_side_missing_values_take_is_private() -> None:
    shapes = set()
    for seed in range(3):
        model = random_trees(4, 5, 6)
        count = next(len(a.ints) for a in model.graph.node[0].attribute if a.name == "target_ids")
        tracks = [1, *np.random.default_rng(seed).integers(0, 2, 2 * count - 5).tolist()]
        name = "nodes_missing_value_tracks_true"
        model.graph.node[0].attribute.append(onnx.helper.make_attribute(name, tracks))
        program = compile(model).program
        shapes.add(str([(o.op, o.attributes) for o in program.operations]))
        assert program.inputs[0].missing
    assert len(shapes) == 1


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=2))
def test_places_are_in_the_order_of_numbers(pair: list[float]) -> None:
    a, b = places(np.array(pair, dtype=np.float32)).tolist()
    assert ((a < b), (a == b)) == ((pair[0] < pair[1]), (pair[0] == pair[1]))
    assert max(abs(a), abs(b)) <= 0x7F800000


@pytest.mark.parametrize("kind", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
@pytest.mark.parametrize("complete", [True, False])
def test_missing_values_go_where_nodes_send_them(kind: str, complete: bool) -> None:
    rng = np.random.default_rng(7)
    model = random_trees(9, 5, 4, complete=complete, targets=3, modes=[kind], rows=40)
    count = next(len(a.ints) for a in model.graph.node[0].attribute if a.name == "nodes_featureids")
    tracks = rng.integers(0, 2, count).tolist()
    tracked = onnx.helper.make_attribute("nodes_missing_value_tracks_true", tracks)
    model.graph.node[0].attribute.append(tracked)
    x = rng.normal(size=(40, 4)).astype(np.float32)
    x[rng.random(x.shape) < 0.3] = np.nan
    expected = reference(model, x)[0]
    assert np.allclose(computed(model, x), expected, rtol=0, atol=1e-5)
    assert np.allclose(computed(model, x, calibration=[x]), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        *("lightgbm_many", "xgboost_many", "forest_two", "boosting_many"),
        *("hist_two", "hist_many", "catboost_two"),
    ],
)
def test_missing_values_of_exported_models(name: str) -> None:
    model = onnx.load(HERE / f"{name}.onnx")
    x = np.array(np.load(HERE / "rows.npz")[f"x_{name.split('_')[1]}"])
    x[np.random.default_rng(8).random(x.shape) < 0.3] = np.nan
    compiled = compile(model, batch=len(x))
    label, _ = execute(compiled.program, compiled.weights, [x]).outputs.values()
    assert np.array_equal(label, reference(model, x)[0])


@pytest.mark.parametrize("aggregate", ["MIN", "MAX"])
def test_the_least_and_the_largest_of_all_trees(aggregate: str) -> None:
    options: dict[str, Any] = {"aggregate_function": aggregate, "base_values": [0.5, -1.0]}
    model = random_trees(5, 3, 4, targets=2, rows=20, **options)
    x = np.random.default_rng(5).normal(size=(20, 4)).astype(np.float32)
    assert np.allclose(computed(model, x), reference(model, x)[0], rtol=0, atol=1e-3)


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_transforms_of_sums(transform: str) -> None:
    model = random_trees(5, 3, 4, targets=3, rows=20, post_transform=transform)
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "target_weights":
            attribute.floats[:] = [0.01 + 0.02 * abs(weight) for weight in attribute.floats]
    x = np.random.default_rng(5).normal(size=(20, 4)).astype(np.float32)
    assert np.allclose(computed(model, x), reference(model, x)[0], rtol=0, atol=1e-3)


IMPUTED: dict[str, Any] = {"imputed_value_floats": [0.5], "replaced_value_float": float("nan")}


@pytest.mark.parametrize("kind", ["Imputer", "IsNaN"])
def test_missing_values_are_refused_where_something_else_handles_them(kind: str) -> None:
    model = random_trees(2, 2, 2)
    node = onnx.helper.make_node
    if kind == "Imputer":  # what multiplies columns of its result does not become part of trees
        constant = onnx.numpy_helper.from_array(np.eye(2, dtype=np.float32), "one")
        model.graph.initializer.append(constant)
        steps = [
            node("Imputer", ["x"], ["m"], domain="ai.onnx.ml", **IMPUTED),
            node("MatMul", ["m", "one"], ["z"]),
        ]
    else:
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(np.array([0.5], np.float32), "half")
        )
        steps = [node("IsNaN", ["x"], ["m"]), node("Where", ["m", "half", "x"], ["z"])]
    model.graph.node[0].input[0] = "z"
    for entry in reversed(steps):
        model.graph.node.insert(0, entry)
    x = np.array([[1.0, 0.5]], np.float32)
    assert np.allclose(computed(model, x), reference(model, x)[0], rtol=0, atol=1e-5)
    with pytest.raises(InputError, match="NaN"):
        computed(model, np.array([[1.0, np.nan]], np.float32))


def shared(true: list[int], false: list[int]) -> onnx.ModelProto:
    """A tree whose nodes 0 and 1 test for 1 and 2, as LightGBM's exporter writes sets of values."""
    tree = onnx.helper.make_node(
        *("TreeEnsembleRegressor", ["x"], ["y"]),
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * 4,
        nodes_nodeids=[0, 1, 2, 3],
        nodes_featureids=[0] * 4,
        nodes_values=[1.0, 2.0, 0.0, 0.0],
        nodes_modes=["BRANCH_EQ", "BRANCH_EQ", "LEAF", "LEAF"],
        nodes_truenodeids=true,
        nodes_falsenodeids=false,
        target_treeids=[0, 0],
        target_nodeids=[2, 3],
        target_ids=[0, 0],
        target_weights=[5.0, -1.0],
    )
    entry = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([tree], "g", [entry("x", 1, [4, 1])], [entry("y", 1, [4, 1])])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_a_leaf_that_several_ways_lead_to() -> None:
    model = shared([2, 2, 0, 0], [1, 3, 0, 0])
    x = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
    expected = reference(model, x)[0]
    assert expected.ravel().tolist() == [-1.0, 5.0, 5.0, -1.0]
    assert np.allclose(computed(model, x), expected, rtol=0, atol=1e-3)


def test_a_way_that_leads_back_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"leads back|are no trees"):
        compile(shared([2, 2, 0, 0], [1, 1, 0, 0]))


@pytest.mark.parametrize("depth", [20, 1500])
def test_a_chain_of_shared_nodes_is_refused_before_it_fills_the_memory(depth: int) -> None:
    """A few nodes of which 2^`depth` leaves would become."""
    test = Comparison(0, 0.0)

    def node(key: object) -> Branch | Leaf:
        assert isinstance(key, int)
        return Leaf({}) if key == depth else Branch([test], key + 1, key + 1)

    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="too many ways"):
            walk(0, node)
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


def test_what_is_refused() -> None:
    row = np.array([[1.0, np.nan]], np.float32)
    with pytest.raises(InputError, match="NaN"):
        computed(random_trees(2, 2, 2, modes=["GT"]), row)
    with pytest.raises(InputError, match="infinity"):
        computed(random_trees(2, 2, 2), np.array([[1.0, np.inf]], np.float32))
    with pytest.raises(UnsupportedModel, match="without a value for each target"):
        compile(split_trees(2, rows=1))
    with pytest.raises(UnsupportedModel, match="post_transform is SOFTMAX"):
        compile(random_trees(2, 2, 2, post_transform="SOFTMAX"))
    with pytest.raises(OverflowRisk):
        compile(random_trees(2, 2, 2), bits=32)
    with pytest.raises(UnsupportedModel, match="1048576 rows at once"):
        compile(random_trees(2, 2, 2, rows=1 << 20))
    loop = random_trees(1, 2, 2)
    for attribute in loop.graph.node[0].attribute:
        if attribute.name == "nodes_truenodeids":
            attribute.ints[1] = 0
    with pytest.raises(UnsupportedModel):
        compile(loop)


@pytest.mark.parametrize(
    ("targets", "base", "is_refused"),
    [([0, 0], [0.5, 0.25], False), ([0, 1], [0.0, 0.0], False), ([0, 1], [0.5, 0.0], True)],
)
@pytest.mark.parametrize("kind", ["floats", "doubles"])
def test_base_values_count_where_a_leaf_has_their_target(
    targets: list[int], base: list[float], is_refused: bool, kind: str
) -> None:
    """XGBoost's exporter gives several targets' trees to the first; ONNX Runtime makes others 0."""
    attributes: dict[str, Any] = {"nodes_values": [0.0] * 3, "target_weights": [1.0, 2.0]}
    attributes["base_values"] = base
    if kind == "doubles":
        tensors = {name: np.array(values) for name, values in attributes.items()}
        attributes = {
            f"{name}_as_tensor": onnx.numpy_helper.from_array(t) for name, t in tensors.items()
        }
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=2,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=targets,
        **attributes,
    )
    entry, kinds = onnx.helper.make_tensor_value_info, onnx.TensorProto
    x_kind, dtype = (kinds.FLOAT, np.float32) if kind == "floats" else (kinds.DOUBLE, np.float64)
    ends = [entry("x", x_kind, [1, 1])], [entry("y", kinds.FLOAT, [1, 2])]
    graph = onnx.helper.make_graph([node], "trees", *ends)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    if is_refused:
        with pytest.raises(UnsupportedModel, match="a base value counts for those rows alone"):
            compile(proto)
        return
    compiled = compile(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for x in ([[-1.0]], [[1.0]]):
        row = np.array(x, dtype)
        (target,) = session.run(None, {"x": row})
        output = execute(compiled.program, compiled.weights, [row]).outputs["y"]
        np.testing.assert_allclose(output, target, atol=1e-3)
