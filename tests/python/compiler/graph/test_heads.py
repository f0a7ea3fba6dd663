"""Where a model is cut: what the client computes, and what stays private."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import check, constant, model, node, samples

from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.errors import Misuse, UnsupportedModel

W = constant(4, 3)
SCORES = node("MatMul", ["x", "w"], ["scores"])
SOFTMAX = node("Softmax", ["scores"], ["chances"], axis=1)


def classifier(nodes: list[Any], outputs: list[str], **constants: Any) -> Any:
    return model([SCORES, *nodes], {"x": (1, 4)}, outputs, {"w": W, **constants})


def parts(compiled: Compiled) -> tuple[list[str], list[str]]:
    """Operators of the program, and of its head."""
    head = compiled.program.head
    return (
        [operation.op for operation in compiled.program.operations],
        [] if head is None else [step.op for step in head.nodes],
    )


def test_what_the_outputs_tell_is_computed_at_the_client() -> None:
    proto = classifier([SOFTMAX, node("ArgMax", ["chances"], ["y"], axis=1)], ["chances", "y"])
    check(proto)
    assert parts(compile(proto)) == (["dense"], ["Softmax", "ArgMax"])


def test_a_label_alone_tells_no_scores() -> None:
    proto = classifier([SOFTMAX, node("ArgMax", ["chances"], ["y"], axis=1)], ["y"])
    assert parts(compile(proto))[0][-1] == "argmax"


def test_a_head_that_cannot_be_computed_is_refused() -> None:
    proto = classifier([SOFTMAX, node("ArgMax", ["chances"], ["y"], axis=1)], ["chances", "y"])
    proto.graph.node[2].attribute[0].i = 1 << 31
    with pytest.raises(UnsupportedModel, match="axis 2147483648 of 2 axes"):
        compile(proto)


def test_one_last_softmax_is_no_head() -> None:
    program = compile(classifier([SOFTMAX], ["chances"])).program
    assert program.head is None
    assert program.outputs[0].client is not None


def test_layers_behind_a_softmax_go_on_at_the_client() -> None:
    nodes = [
        SOFTMAX,
        node("Mul", ["chances", "hundred"], ["percent"]),
        node("Reshape", ["percent", "shape"], ["y"]),
    ]
    check(classifier(nodes, ["y"], hundred=np.float32(100), shape=np.array([3, 1])))


def test_a_row_of_numbers_behind_the_client_is_not_published() -> None:
    nodes = [SOFTMAX, node("Mul", ["chances", "secret"], ["y"])]
    with pytest.raises(UnsupportedModel, match="would be published"):
        compile(classifier(nodes, ["y"], secret=constant(1, 3)))


@pytest.mark.parametrize("most", [np.inf, -np.inf, np.nan])
def test_a_head_with_a_constant_that_is_not_finite_is_refused(most: float) -> None:
    """JSON, in which the client reads it, has no such number."""
    nodes = [SOFTMAX, node("Add", ["chances", "most"], ["y"])]
    compile(classifier(nodes, ["y"], most=np.float32(1e30)))
    with pytest.raises(UnsupportedModel, match="not finite"):
        compile(classifier(nodes, ["y"], most=np.float32(most)))
    with pytest.raises(UnsupportedModel, match="not finite"):
        compile(classifier([SOFTMAX], ["chances", "most"], most=np.float32(most)))


@pytest.mark.parametrize("shape", [(3,), (3, 5)])
def test_numbers_at_the_place_of_a_class_are_not_published(shape: tuple[int, ...]) -> None:
    """A codebook is looked up privately, unlike labels."""
    nodes = [
        node("ArgMax", ["scores"], ["place"], axis=1),
        node("Gather", ["book", "place"], ["y"]),
    ]
    proto = classifier(nodes, ["y"], book=constant(*shape))
    check(proto)
    assert compile(proto).program.head is None
    assert compile(proto, reveal="scores").program.head is None
    labels = classifier(nodes, ["y"], book=np.array([4, 9, 7]))
    private, head = parts(compile(labels))
    assert (private[-1], head) == ("argmax", ["Gather"])


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([7, -9])])
def test_one_of_two_labels_is_taken_by_a_truth_value(labels: np.ndarray[Any, Any]) -> None:
    nodes = [
        node("Greater", ["x", "half"], ["above"]),
        node("Cast", ["above"], ["place"], to=onnx.TensorProto.INT64),
        node("Gather", ["labels", "place"], ["y"]),
    ]
    constants: dict[str, Any] = {"half": np.float32(0.5), "labels": labels.astype(object)}
    if labels.dtype.kind == "i":
        constants["labels"] = labels
    proto = model(nodes, {"x": (1, 4)}, ["y"], constants)
    compiled = compile(proto)
    assert parts(compiled)[1] == ["Gather"]
    x = np.array([[0.25, 0.75, -1.0, 2.0]], np.float32)
    output = execute(compiled.program, compiled.weights, [x]).outputs["y"]
    assert output.tolist() == [[labels[place] for place in (0, 1, 0, 1)]]
    split = parts(compile(proto, reveal="scores"))
    assert split[1] == ["Greater", "Cast", "Gather"]


def test_a_sum_of_two_softmaxes_tells_neither() -> None:
    nodes = [SOFTMAX, node("Softmax", ["x"], ["b"], axis=1), node("ReduceSum", ["b"], ["c"])]
    proto = classifier([*nodes, node("Add", ["chances", "c"], ["y"])], ["y"])
    assert parts(compile(proto, smooth="piecewise"))[0].count("max_pool2d") == 2


@pytest.mark.parametrize("scores", [False, True])
def test_a_softmax_that_is_an_output_and_read_inside_is_private(scores: bool) -> None:
    """As models that explain themselves give the weights of their attention."""
    nodes = [
        SOFTMAX,
        node("Transpose", ["chances"], ["column"], perm=[1, 0]),
        node("Reshape", ["column", "flat"], ["weights"]),
        node("MatMul", ["chances", "v"], ["y"]),
        node("Softmax", ["y"], ["classes"], axis=1),
        node("ArgMax", ["classes"], ["label"], axis=1),
    ]
    outputs = ["weights", "classes", "label"]
    proto = classifier(nodes, outputs, v=constant(3, 5, seed=4), flat=np.array([3]))
    if not scores:
        check(proto, smooth="piecewise")
    reveal = "scores" if scores else "outputs"
    operations, head = parts(compile(proto, smooth="piecewise", reveal=reveal))
    assert operations.count("piecewise") == 2
    assert head == ["Softmax", "ArgMax"]


def test_the_server_may_reveal_scores() -> None:
    nodes = [SOFTMAX, node("TopK", ["chances", "k"], ["best", "places"], axis=1)]
    proto = classifier(nodes, ["best", "places"], k=np.array([2]))
    assert "matmul" in parts(compile(proto, smooth="piecewise"))[0]
    compiled = compile(proto, reveal="scores")
    assert parts(compiled) == (["dense"], ["Softmax", "TopK"])


@pytest.mark.parametrize("outputs", [["scores"], ["chances"]])
def test_a_label_alone_may_be_revealed(outputs: list[str]) -> None:
    proto = classifier([SOFTMAX], outputs)
    compiled = compile(proto, reveal="label")
    assert parts(compiled)[0][-1] == "argmax"
    inputs = samples(proto)
    (label,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    assert label.ravel()[0] == (inputs["x"] @ W).argmax()


def test_labels_are_the_only_outputs_then() -> None:
    nodes = [SOFTMAX, node("ArgMax", ["chances"], ["y"], axis=1)]
    compiled = compile(classifier(nodes, ["y", "chances"]), reveal="label")
    assert [output.name for output in compiled.program.outputs] == ["y"]
    assert parts(compiled)[0][-1] == "argmax"


def test_two_classes_from_one_sigmoid_are_compared_privately() -> None:
    nodes = [
        node("MatMul", ["scores", "v"], ["z"]),
        node("Sigmoid", ["z"], ["p"]),
        node("Sub", ["one", "p"], ["q"]),
        node("Concat", ["q", "p"], ["both"], axis=1),
        node("ArgMax", ["both"], ["y"], axis=1),
    ]
    proto = classifier(nodes, ["y"], v=constant(3, 1, seed=4), one=np.float32(1))
    operations, head = parts(compile(proto))
    assert "polynomial" not in operations
    assert operations[-1] == "argmax"
    assert not head
    for seed in range(8):
        check(proto, samples(proto, seed=seed))


@pytest.mark.parametrize(
    ("nodes", "outputs"), [([node("Relu", ["scores"], ["y"])], ["scores", "y"]), ([], ["scores"])]
)
def test_models_without_labels(nodes: list[Any], outputs: list[str]) -> None:
    proto = classifier(nodes, outputs)
    if len(outputs) == 1:
        del proto.graph.output[0].type.tensor_type.shape.dim[1]
    with pytest.raises(Misuse, match="reveal is 'label'"):
        compile(proto, reveal="label")
    with pytest.raises(Misuse, match="possible are outputs, scores, label"):
        compile(proto, reveal="everything")


def test_a_batch_is_computed_sample_by_sample() -> None:
    nodes = [SOFTMAX, node("ArgMax", ["chances"], ["label"], axis=1, keepdims=0)]
    proto = classifier(
        [*nodes, node("Reshape", ["label", "flat"], ["y"])], ["y", "chances"], flat=np.array([1])
    )
    compiled = compile(proto, batch=3)
    x = constant(3, 4, seed=5)
    outputs = execute(compiled.program, compiled.weights, {"x": x}).outputs
    assert outputs["y"].tolist() == (x @ W).argmax(axis=1).tolist()
    assert outputs["chances"].shape == (3, 3)
