"""Gemm and MatMul against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import pytest
from tests.python.compiler.graph.single import check, constant, single

from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("c", [None, constant(4), constant(1, 4), constant(3, 4), constant(1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_gemm(trans_a: int, trans_b: int, c: Any, swapped: bool) -> None:
    a = (5, 3) if trans_a else (3, 5)
    b = (4, 5) if trans_b else (5, 4)
    operands: list[Any] = [constant(*a), b] if swapped else [a, constant(*b)]
    if c is not None:
        operands.append(c)
    check(single("Gemm", operands, transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0))


@pytest.mark.parametrize("beta", [1.0, 0.5, 0.0])
def test_gemm_with_a_private_c(beta: float) -> None:
    check(single("Gemm", [(3, 5), constant(5, 4), (4,)], beta=beta))


def test_gemm_of_constants_with_a_private_c() -> None:
    check(single("Gemm", [constant(3, 5), constant(5, 4), (3, 4)], alpha=0.5, beta=2.0))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 5), (5, 4)),
        ((5,), (5, 4)),
        ((3, 5), (5,)),
        ((5,), (5,)),
        ((2, 3, 5), (5, 4)),
        ((2, 2, 3, 5), (5, 4)),
        ((2, 3, 5), (2, 5, 4)),
        ((2, 3, 5), (1, 5, 4)),
        ((3, 5), (2, 5, 4)),
        ((2, 1, 3, 5), (1, 2, 5, 4)),
        ((5,), (2, 5, 4)),
        ((2, 3, 5), (5,)),
        ((3, 2, 3, 5), (2, 5, 4)),
    ],
)
@pytest.mark.parametrize("constant_on_the_left", [False, True])
def test_matmul(a: tuple[int, ...], b: tuple[int, ...], constant_on_the_left: bool) -> None:
    operands = [constant(*a), b] if constant_on_the_left else [a, constant(*b)]
    check(single("MatMul", operands))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 5), (5, 4)),
        ((5,), (5, 4)),
        ((3, 5), (5,)),
        ((5,), (5,)),
        ((2, 3, 5), (2, 5, 4)),
        ((2, 3, 5), (5, 4)),
        ((3, 5), (2, 5, 4)),
        ((2, 1, 3, 5), (1, 2, 5, 4)),
        ((2, 3, 4, 5), (2, 1, 5, 6)),
        ((5,), (2, 5, 4)),
        ((2, 3, 5), (5,)),
    ],
)
def test_matmul_of_two_private_tensors(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(single("MatMul", [a, b]))


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm_of_two_private_tensors(trans_a: int, trans_b: int) -> None:
    a = (5, 3) if trans_a else (3, 5)
    b = (4, 5) if trans_b else (5, 4)
    check(single("Gemm", [a, b, constant(4)], transA=trans_a, transB=trans_b, alpha=0.5))


def test_products_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="times"):
        import_model(single("MatMul", [(3, 5), (4, 4)]), name="m")
