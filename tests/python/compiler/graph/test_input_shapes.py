"""Dynamic axes: the batch is 1, everything else must be given."""

from __future__ import annotations

import pytest
from tests.python.compiler.graph.single import private, single

from privet.compiler.graph import import_model
from privet.compiler.graph.input_shapes import resolve
from privet.errors import InvalidModel


def test_a_dynamic_batch_is_one() -> None:
    graph = import_model(single("Relu", [private("batch", 3)]), name="m")
    assert graph.values[0].shape == (1, 3)


def test_a_given_shape_wins() -> None:
    proto = single("Relu", [private("batch", 3, None)])
    graph = import_model(proto, name="m", input_shapes={"x0": [4, 3, 7]})
    assert graph.values[0].shape == (4, 3, 7)


def test_other_dynamic_axes_must_be_given() -> None:
    with pytest.raises(InvalidModel, match="--shape x0=1,3,LENGTH,N; in Python input_shapes"):
        import_model(single("Relu", [private("batch", 3, "length", None)]), name="m")


def test_axes_of_one_name_have_one_length() -> None:
    """As exporters name the batch axis of states, and the tokens of a mask."""
    first, second = private("batch", "tokens"), private(1, "tokens", "batch")
    proto = single("Add", [first, second])
    assert resolve(proto, {"x0": [1, 7]}) == {"x0": (1, 7), "x1": (1, 7, 1)}
    assert resolve(proto, {"x1": [1, 7, 3]}) == {"x0": (3, 7), "x1": (1, 7, 3)}
    with pytest.raises(InvalidModel, match="x0=1,TOKENS;"):
        resolve(proto, None)


def test_axes_without_a_name_have_lengths_of_their_own() -> None:
    proto = single("Add", [private(None, 3), private(1, None)])
    with pytest.raises(InvalidModel, match="x1=1,N;"):
        import_model(proto, name="m", input_shapes={"x0": [1, 3]})


@pytest.mark.parametrize("shape", [[4, 2], [4], [4, 3, 1], [0, 3]])
def test_a_shape_that_does_not_fit(shape: list[int]) -> None:
    with pytest.raises(InvalidModel, match="does not fit"):
        import_model(single("Relu", [private("b", 3)]), name="m", input_shapes={"x0": shape})


def test_a_shape_for_no_input() -> None:
    with pytest.raises(InvalidModel, match="no input 'z'; its inputs: x0"):
        import_model(single("Relu", [private("b", 3)]), name="m", input_shapes={"z": [1, 3]})
