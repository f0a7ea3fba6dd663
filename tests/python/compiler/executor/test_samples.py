"""Single samples in, single results out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.python.compiler.graph.single import model, node, private

from privet.compiler.compile import compile
from privet.compiler.executor.samples import fill, portions, split, trim
from privet.compiler.program import Program
from privet.errors import InputError


def program(batch: int) -> Program:
    proto = model(
        [node("Add", ["a", "b"], ["y"])], {"a": private("n", 3), "b": private(1, 3)}, ["y"]
    )
    return compile(proto, batch=batch).program


def test_the_last_sample_fills_up_and_is_dropped_again() -> None:
    inputs = {"a": np.arange(6).reshape(2, 3), "b": np.full((2, 3), 2.0)}
    arrays, count = fill(program(5), inputs)
    assert count == 2
    assert {name: array.shape for name, array in arrays.items()} == {"a": (5, 3), "b": (5, 3)}
    assert arrays["a"].tolist() == [[0, 1, 2], *[[3, 4, 5]] * 4]
    assert [sample["b"].tolist() for sample in split(arrays, count)] == [[[2.0] * 3]] * 2
    (output,) = trim(program(5), [np.arange(15).reshape(5, 3)], count)
    assert output.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("a", "b", "problem"),
    [
        (2, 3, "different numbers"),
        (0, 0, "0 samples given; the program takes 1 to 5"),
        (6, 6, "6 samples given; the program takes 1 to 5"),
    ],
)
def test_numbers_of_samples_that_do_not_fit(a: int, b: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        fill(program(5), [np.zeros((a, 3)), np.zeros((b, 3))])


@pytest.mark.parametrize(
    ("a", "problem"),
    [
        (np.zeros(3), r"input a has shape \[3\], not \[5, 3\]: give it the axis of samples"),
        (np.zeros((2, 4)), r"input a has shape \[2, 4\], not \[5, 3\]$"),
        ([[1.0, 2.0], [3.0]], "input a cannot be read as an array"),
    ],
)
def test_samples_that_do_not_fit(a: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        fill(program(5), [a, np.zeros((2, 3))])


def test_a_program_for_one_sample_takes_its_inputs_as_they_are() -> None:
    arrays, count = fill(program(1), [np.zeros((4, 3)), np.zeros(3)])
    assert count == 1
    assert [array.shape for array in arrays.values()] == [(4, 3), (3,)]


def test_portions_hold_what_one_inference_takes() -> None:
    inputs = {"a": np.arange(15).reshape(5, 3), "b": np.zeros((5, 3))}
    assert [len(part["a"]) for part in portions(program(2), inputs)] == [2, 2, 1]
    assert [part["a"].tolist() for part in portions(program(2), inputs)][2] == [[12, 13, 14]]
    assert len(portions(program(5), inputs)) == 1


def test_a_program_for_one_sample_takes_several_in_portions() -> None:
    proto = model([node("Add", ["a", "a"], ["y"])], {"a": private(1, 3)}, ["y"])
    single = compile(proto).program
    assert [part["a"].tolist() for part in portions(single, [[[1, 2, 3], [4, 5, 6]]])] == [
        [[1, 2, 3]],
        [[4, 5, 6]],
    ]
    assert len(portions(single, [np.zeros((1, 3))])) == 1
    assert len(portions(single, [np.float64(0)])) == 1


def test_portions_of_inputs_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="different numbers"):
        portions(program(2), [np.zeros((3, 3)), np.zeros((4, 3))])
    with pytest.raises(InputError, match="no samples"):
        portions(program(2), [np.zeros((0, 3)), np.zeros((0, 3))])
