"""State: what a program leaves to its next inference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.python.zoo.decoders import (
    CONTEXT,
    TEXTS,
    compiled,
    of_whole_texts,
    token_by_token,
    written,
)

import privet
from privet.compiler.executor import execute
from privet.compiler.graph.state import last_rows, state_pairs
from privet.compiler.program import Program
from privet.errors import InvalidProgram, Misuse, UnsupportedModel
from privet.service.repository.config import ModelConfig
from privet.service.repository.version import load_version


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("decoders")


def test_a_cache_gives_what_the_whole_text_gives(folder: Path) -> None:
    step, whole = compiled(token_by_token, folder), compiled(of_whole_texts, folder)
    session = onnxruntime.InferenceSession(str(written(of_whole_texts(), folder)))
    for text in TEXTS[:3]:
        state = None
        for place, token in enumerate(text):
            inputs = {"input_ids": [[token]], "position_ids": [[place]]}
            result = execute(step.program, step.weights, inputs, state=state)
            state = result.state
        scores = result.outputs["logits"].ravel()
        fixed = execute(whole.program, whole.weights, [text[None]]).outputs["logits"].ravel()
        (real,) = session.run(None, {"input": text[None]})
        # Scores have a deviation near 1; each form rounds by itself.
        assert np.abs(scores - fixed).max() < 0.04
        assert np.abs(scores - real.ravel()).max() < 0.04
        # The control: without the state the scores are others.
        alone = execute(step.program, step.weights, inputs).outputs["logits"].ravel()
        assert np.abs(alone - real.ravel()).max() > 0.2


def test_state_has_one_shape_and_scale_and_is_no_input_or_output(folder: Path) -> None:
    program = compiled(token_by_token, folder).program
    assert [entry.name for entry in program.inputs] == ["input_ids", "position_ids"]
    assert [output.name for output in program.outputs] == ["logits"]
    assert [entry.name for entry in program.state] == [
        "past_key_values.0.key",
        "past_key_values.0.value",
    ]
    for entry in program.state:
        assert program.values[entry.input] == program.values[entry.output]
        assert program.values[entry.input].shape == (1, 2, CONTEXT - 1, 8)
    assert Program.from_public_bytes(program.to_public_bytes()) == program


@pytest.mark.parametrize("change", ["form", "missing", "taken"])
def test_a_public_half_whose_state_does_not_fit_is_refused(folder: Path, change: str) -> None:
    document = json.loads(compiled(token_by_token, folder).program.to_public_bytes())
    state = document["state"][0]
    if change == "form":
        state["output"] = document["outputs"][0]["value"]
    elif change == "missing":
        state["output"] = len(document["values"])
    else:
        state["input"] = document["inputs"][0]["value"]
    data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(InvalidProgram, match="past_key_values"):
        Program.from_public_bytes(data)


def test_other_ways_to_compile_and_run_are_refused(folder: Path) -> None:
    model = written(token_by_token(), folder)
    for options in ({"batch": 2}, {"sound": True}, {"client_side": True}):
        with pytest.raises(Misuse, match="model with state"):
            privet.compile(model, **options)
    # A label beside the state: without the state the cache would be an input of the client.
    labels = onnx.load(model)
    labels.graph.node.append(onnx.helper.make_node("ArgMax", ["logits"], ["label"], axis=-1))
    del labels.graph.output[0]
    whole = onnx.helper.make_tensor_value_info("label", onnx.TensorProto.INT64, (1, 1))
    labels.graph.output.append(whole)
    with pytest.raises(Misuse, match="model with state is not compiled with reveal"):
        privet.compile(labels, reveal="label")
    step = compiled(token_by_token, folder)
    with pytest.raises(Misuse, match="privet generate"):
        privet.run(step)
    for suite in (privet.Ckks(), privet.Fss(security="malicious")):
        with pytest.raises(UnsupportedModel, match="past_key_values"):
            suite.check_supports(step.program)


def test_names_pair_inputs_with_outputs() -> None:
    inputs = ["x", "past_key_values.0.key", "past_key_values.1.key"]
    pairs = {"past_key_values.0.key": "present.0.key"}
    assert state_pairs(inputs, ["y", "present.0.key", "present.2.key"]) == pairs


def test_an_output_may_have_more_rows_than_its_input() -> None:
    assert last_rows((1, 2, 5, 8), (1, 2, 5, 8)) is None
    change = last_rows((1, 2, 5, 8), (1, 2, 6, 8))
    assert change is not None
    assert (change.starts, change.ends) == ((0, 0, 1, 0), (1, 2, 6, 8))
    for after in ((1, 2, 4, 8), (1, 3, 6, 8), (2, 5, 8)):
        with pytest.raises(ValueError, match="belongs"):
            last_rows((1, 2, 5, 8), after)


def test_state_that_nothing_private_makes_is_refused() -> None:
    shape, kind = [1, 4], onnx.TensorProto.FLOAT
    value = onnx.helper.make_tensor_value_info
    nodes = [
        onnx.helper.make_node("Add", ["x", "past_key_values.s"], ["y"]),
        onnx.helper.make_node("Softmax", ["y"], ["present.s"], axis=1),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "probabilities",
        [value("x", kind, shape), value("past_key_values.s", kind, shape)],
        [value("y", kind, shape), value("present.s", kind, shape)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    with pytest.raises(UnsupportedModel, match=r"present\.s"):
        privet.compile(model)


def test_a_service_serves_no_state(folder: Path, tmp_path: Path) -> None:
    compiled(token_by_token, folder).save(tmp_path)
    with pytest.raises(Misuse, match="state"):
        load_version("decoder", 1, tmp_path, ModelConfig(), dealer=True)
