"""What cannot be imported is said all at once, and before anything runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import check, constant, model, node, single

from privet.compiler.compile import compile
from privet.compiler.graph import import_model, load_model, operators_table, supported_operators
from privet.errors import InvalidModel, UnsupportedModel


def test_all_problems_are_reported_together() -> None:
    nodes = [
        node("Asin", ["x"], ["a"]),
        node("Conv", ["a", "w"], ["b"]),
        node("Acos", ["b"], ["c"]),
        node("Reshape", ["c", "shape"], ["d"]),
        node("Tan", ["d"], ["y"]),
    ]
    constants = {"w": constant(3, 2, 1, 1), "shape": np.array([1, 48])}
    proto = model(nodes, {"x": (1, 2, 4, 4)}, ["y"], constants)
    with pytest.raises(UnsupportedModel) as excinfo:
        import_model(proto, name="m")
    problems = [(problem.node, problem.operator) for problem in excinfo.value.problems]
    assert problems == [("the_asin", "Asin"), ("the_acos", "Acos"), ("the_tan", "Tan")]
    assert all(problem.why and problem.instead for problem in excinfo.value.problems)
    assert str(excinfo.value).startswith("3 parts of the model")
    assert "the_acos (Acos): Acos is not supported. Replace" in str(excinfo.value)


def test_unknown_shapes_do_not_hide_later_problems() -> None:
    nodes = [node("NonZero", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Asin", ["b"], ["y"])]
    with pytest.raises(UnsupportedModel) as excinfo:
        import_model(model(nodes, {"x": (2, 2)}, ["y"]), name="m")
    assert [problem.operator for problem in excinfo.value.problems] == ["NonZero", "Asin"]


def test_what_no_output_needs_is_not_looked_at() -> None:
    nodes = [node("Asin", ["x"], ["unused"]), node("Relu", ["x"], ["y"])]
    assert len(import_model(model(nodes, {"x": (2,)}, ["y"]), name="m").nodes) == 1


def test_an_input_of_text_is_refused() -> None:
    proto = single("Relu", [(2, 3)])
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(UnsupportedModel, match="x0 \\(graph input\\): its type is string"):
        import_model(proto, name="m")


def test_nothing_but_constant_outputs_is_refused() -> None:
    proto = model([node("Add", ["c", "c"], ["y"])], {"x": (2,)}, ["y"], {"c": constant(2)})
    with pytest.raises(UnsupportedModel, match="no output depends on the private input"):
        import_model(proto, name="m")


def test_a_constant_output_is_told_as_it_is() -> None:
    nodes = [node("Add", ["c", "c"], ["y"]), node("Relu", ["x"], ["z"])]
    check(model(nodes, {"x": (2,)}, ["y", "z"], {"c": constant(2)}))


def test_a_random_constant_is_refused() -> None:
    proto = model(
        [node("RandomNormal", [], ["r"], shape=[2]), node("Add", ["x", "r"], ["y"])],
        {"x": (2,)},
        ["y"],
    )
    with pytest.raises(UnsupportedModel, match="RandomNormal is not supported"):
        import_model(proto, name="m")


def test_a_custom_operator_is_refused() -> None:
    proto = single("Relu", [(2,)])
    proto.graph.node[0].domain = "com.example"
    proto.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    with pytest.raises(UnsupportedModel, match="a custom operator"):
        import_model(proto, name="m")


def test_an_opset_that_is_too_old_or_too_new_is_refused() -> None:
    for opset in (5, onnx.defs.onnx_opset_version() + 1):
        proto = single("Relu", [(2,)])
        proto.opset_import[0].version = opset
        with pytest.raises(InvalidModel, match="opsets 6 to"):
            import_model(proto, name="m")


@pytest.mark.parametrize("source", [b"", b"no model at all", b"\x08\x07"])
def test_bytes_that_are_no_model(source: bytes) -> None:
    with pytest.raises(InvalidModel):
        load_model(source)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="cannot be read"):
        load_model(tmp_path / "none.onnx")


def test_path_bytes_and_proto_are_alike(tmp_path: Path) -> None:
    proto = single("Relu", [(2, 3)])
    onnx.save(proto, tmp_path / "some.onnx")
    models = [load_model(s) for s in (proto, proto.SerializeToString(), tmp_path / "some.onnx")]
    assert models[0] == models[1] == models[2]
    assert compile(tmp_path / "some.onnx").program.model == "some"


def test_functions_of_the_model_are_inlined() -> None:
    body = [
        onnx.helper.make_node("Relu", ["a"], ["r"]),
        onnx.helper.make_node("Neg", ["r"], ["b"]),
    ]
    opsets = [onnx.helper.make_opsetid("", 21)]
    function = onnx.helper.make_function("local", "Twist", ["a"], ["b"], body, opsets)
    proto = model([node("Relu", ["x"], ["y"])], {"x": (2, 3)}, ["y"])
    proto.graph.node[0].CopyFrom(onnx.helper.make_node("Twist", ["x"], ["y"], domain="local"))
    proto.functions.append(function)
    proto.opset_import.append(onnx.helper.make_opsetid("local", 1))
    check(proto)


def test_the_table_of_operators_is_complete() -> None:
    rows = supported_operators()
    assert [row.name for row in rows] == sorted({row.name for row in rows})
    for row in rows:
        assert row.domain in ("ai.onnx", "ai.onnx.ml")
        assert onnx.defs.has(row.name, "" if row.domain == "ai.onnx" else row.domain)
        assert row.since >= (6 if row.domain == "ai.onnx" else 1)


def test_the_page_on_operators_shows_the_table_of_today() -> None:
    page = Path(__file__).resolve().parents[4] / "docs" / "reference" / "operators.md"
    assert operators_table() in page.read_text(encoding="utf-8")


def test_attributes_that_do_not_fit_are_a_problem_of_their_node() -> None:
    proto = single("Flatten", [(2, 3)])
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("axis", 1))
    proto.graph.node[0].op_type = "DepthToSpace"
    with pytest.raises(UnsupportedModel, match="the_flatten"):
        import_model(proto, name="m")
