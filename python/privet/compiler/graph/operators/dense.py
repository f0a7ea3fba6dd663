"""Gemm and MatMul: products of a private tensor with a constant one, or of two private ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Shape, real
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site


@operator("Gemm")
def gemm(site: Site) -> Operand:
    """`alpha * A' * B' + beta * C`; C may be constant, private or absent."""
    a, b = site.operand(0), site.operand(1)
    alpha, beta = site.attribute("alpha", 1.0), site.attribute("beta", 1.0)
    if isinstance(a, Private) and isinstance(b, Private):
        a = site.emit(op.Transpose((1, 0)), a) if site.attribute("transA", 0) else a
        b = site.emit(op.Transpose((1, 0)), b) if site.attribute("transB", 0) else b
        result = private_product(site, a, b)
        if alpha != 1.0:
            result = site.emit(op.Scale(np.full(result.shape, alpha), uniform=True), result)
        return _add_c(site, result, beta)
    if not isinstance(a, Private) and not isinstance(b, Private):
        constant = (a.T if site.attribute("transA", 0) else a) @ (
            b.T if site.attribute("transB", 0) else b
        )
        return _add_c(site, _scale(constant, alpha), beta)
    if not isinstance(b, Private):
        assert isinstance(a, Private)
        weight = _scale(b.T if site.attribute("transB", 0) else b, alpha)
        x = site.emit(op.Transpose((1, 0)), a) if site.attribute("transA", 0) else a
        return _product_plus_c(site, x, weight, beta)
    assert not isinstance(a, Private)
    # (A * B)^T = B^T * A^T puts the constant on the right.
    weight = _scale(a if site.attribute("transA", 0) else a.T, alpha)
    x = b if site.attribute("transB", 0) else site.emit(op.Transpose((1, 0)), b)
    product = site.emit(op.Transpose((1, 0)), site.emit(op.Dense(weight, None), x))
    return _add_c(site, product, beta)


def _product_plus_c(site: Site, x: Private, weight: Array, beta: float) -> Operand:
    """The product, with C as the bias where it is one row of constants."""
    if site.has_input(2) and beta:
        c = site.operand(2)
        columns = weight.shape[-1]
        if not isinstance(c, Private) and c.size in (1, columns) and math.prod(c.shape[:-1]) == 1:
            bias = np.broadcast_to(_scale(c, beta).reshape(-1), (columns,))
            return site.emit(op.Dense(weight, bias), x)
    return _add_c(site, site.emit(op.Dense(weight, None), x), beta)


def _add_c(site: Site, product: Operand, beta: float) -> Operand:
    if not site.has_input(2) or not beta:
        return product
    c = site.operand(2)
    if not isinstance(c, Private):
        assert isinstance(product, Private)
        return site.emit(op.AddConstant(_scale(c, beta)), product)
    c = site.broadcast(c, product.shape)
    if beta != 1.0:
        c = site.emit(op.Scale(np.full(c.shape, beta), uniform=True), c)
    if not isinstance(product, Private):
        return site.emit(op.AddConstant(product), c)
    return site.emit(op.Add(), product, c)


def _scale(array: Array, factor: float) -> Array:
    """The array as floats, times a factor; float32 stays float32, large weights are not copied."""
    floats = real(array)
    return floats if factor == 1.0 else floats * floats.dtype.type(factor)


@operator("MatMul")
def matmul(site: Site) -> Operand:
    """Any rank and numpy's broadcasting, with a constant on either side or on none."""
    a, b = site.operand(0), site.operand(1)
    if not a.shape or not b.shape:
        site.refuse("an operand is a single number", "Use Mul")
    if not isinstance(a, Private) and len(b.shape) == 1:
        # A vector on the right is one on the left of the constant turned round.
        transposed = a if a.ndim == 1 else np.swapaxes(a, -1, -2)
        a, b = b, transposed
    rows = a if len(a.shape) > 1 else _reshape(site, a, (1, *a.shape))
    columns = b if len(b.shape) > 1 else _reshape(site, b, (*b.shape, 1))
    product = _product(site, rows, columns)
    shape = list(product.shape)
    if len(b.shape) == 1:
        del shape[-1]
    if len(a.shape) == 1:
        del shape[-1 if len(b.shape) == 1 else -2]
    return site.reshape(product, shape)


def _reshape(site: Site, x: Operand, shape: Shape) -> Operand:
    return site.reshape(x, shape) if isinstance(x, Private) else x.reshape(shape)


def _product(site: Site, a: Operand, b: Operand) -> Private:
    """`[.., M, K] @ [.., K, N]`, of which one at least is private."""
    if isinstance(a, Private) and isinstance(b, Private):
        return private_product(site, a, b)
    if isinstance(a, Private):
        assert not isinstance(b, Private)
        return _times_matrix(site, a, real(b))
    assert isinstance(b, Private)
    # (A B)^T = B^T A^T puts the constant on the right.
    transposed = _times_matrix(site, _swap_last_axes(site, b), np.swapaxes(real(a), -1, -2))
    return _swap_last_axes(site, transposed)


def private_product(site: Site, a: Private, b: Private) -> Private:
    """`[.., M, K] @ [.., K, N]` of two private tensors, with broadcasting of the axes in front.

    The last of these that only `a` has, such as the queries' heads of one group, become rows.
    """
    rows, inner = a.shape[-2:]
    columns = b.shape[-1]
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        batch = ()
    if inner != b.shape[-2] or (not batch and max(len(a.shape), len(b.shape)) > 2):
        site.refuse(f"{list(a.shape)} times {list(b.shape)}", "Check the model's shapes")
    leading = (1,) * (len(batch) + 2 - len(b.shape)) + b.shape[:-2]
    shared = len(batch)
    while shared and leading[shared - 1] == 1:
        shared -= 1
    a = site.broadcast(a, (*batch, rows, inner))
    b = site.broadcast(b, (*batch[:shared], *leading[shared:], inner, columns))
    count = math.prod(batch[:shared])
    a = site.reshape(a, (count, math.prod(batch[shared:]) * rows, inner))
    b = site.reshape(b, (count, inner, columns))
    return site.reshape(site.emit(op.MatMul(), a, b), (*batch, rows, columns))


def _swap_last_axes(site: Site, x: Private) -> Private:
    axes = list(range(len(x.shape)))
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return site.emit(op.Transpose(tuple(axes)), x)


def _times_matrix(site: Site, x: Private, weight: Array) -> Private:
    """`[.., M, K] @ [.., K, N]` with at least two axes each."""
    if x.shape[-1] != weight.shape[-2]:
        site.refuse(f"{list(x.shape)} times {list(weight.shape)}", "Check the model's shapes")
    rows, inner = x.shape[-2:]
    columns = weight.shape[-1]
    try:
        batch = np.broadcast_shapes(x.shape[:-2], weight.shape[:-2])
    except ValueError:
        site.refuse(f"{list(x.shape)} times {list(weight.shape)}", "Check the model's shapes")
    if math.prod(weight.shape[:-2]) == 1:
        flat = site.reshape(x, (math.prod(x.shape[:-1]), inner))
        product = site.emit(op.Dense(weight.reshape(inner, columns), None), flat)
        return site.reshape(product, (*batch, rows, columns))
    return _batched_product(site, x, weight, batch)


def _batched_product(site: Site, x: Private, weight: Array, batch: Shape) -> Private:
    """A different constant per batch entry: a grouped 1x1 convolution over the rows."""
    rows, inner = x.shape[-2:]
    columns, groups = weight.shape[-1], math.prod(batch)
    if x.shape[:-2] != batch:
        x = site.emit(op.Broadcast((*batch, rows, inner)), x)
    weight = np.broadcast_to(weight, (*batch, inner, columns)).reshape(groups, inner, columns)
    image = site.emit(op.Transpose((0, 2, 1)), site.reshape(x, (groups, rows, inner)))
    image = site.reshape(image, (1, groups * inner, rows, 1))
    kernel = np.swapaxes(weight, 1, 2).reshape(groups * columns, inner, 1, 1)
    image = site.emit(op.Conv2d(kernel, None, groups=groups), image)
    product = site.emit(op.Transpose((0, 2, 1)), site.reshape(image, (groups, columns, rows)))
    return site.reshape(product, (*batch, rows, columns))


@operator("Einsum", since=12, restrictions="each index at most once in each tensor")
def einsum(site: Site) -> Operand:
    """Products of matrices: the first private tensor times each constant, then each private one."""
    operands = site.operands()
    terms, result = _einsum_indices(site, operands)
    pairs = list(zip(operands, terms, strict=True))
    private = [pair for pair in pairs if isinstance(pair[0], Private)]
    constants = [pair for pair in pairs if not isinstance(pair[0], Private)]
    (product, term), *others = private[0], *constants, *private[1:]
    while len(others) > 1:
        (other, right), *others = others
        later_indices = {*result, *(i for _, t in others for i in t)}
        left, term = term, "".join(i for i in dict.fromkeys(term + right) if i in later_indices)
        product = _contract(site, [product, other], [left, right], term)
    last_operands, last_terms = [x for x, _ in others], [t for _, t in others]
    return _contract(site, [product, *last_operands], [term, *last_terms], result)


def _contract(site: Site, operands: list[Operand], terms: list[str], result: str) -> Operand:
    """One tensor, or a product of two over the indices that both have and the result has not."""
    for k, x in enumerate(operands):
        letters = {*result, *(i for other in terms[:k] + terms[k + 1 :] for i in other)}
        if summed_axes := [axis for axis, i in enumerate(terms[k]) if i not in letters]:
            if isinstance(x, Private):
                operands[k] = site.apply("ReduceSum", x, np.array(summed_axes), keepdims=0)
            else:
                operands[k] = real(x).sum(axis=tuple(summed_axes))
            terms[k] = "".join(i for i in terms[k] if i in letters)
    size = {
        i: n for t, x in zip(terms, operands, strict=True) for i, n in zip(t, x.shape, strict=True)
    }
    if len(operands) == 1:
        return _reorder_axes(
            site, operands[0], terms[0], list(result), tuple(size[i] for i in result)
        )
    (a, b), (left, right) = operands, terms
    index_sets = [set(left), set(right), set(result)]
    batch = [i for i in result if i in index_sets[0] and i in index_sets[1]]
    inner = [i for i in left if i in index_sets[1] and i not in index_sets[2]]
    rows, columns = ([i for i in t if i in index_sets[2] and i not in batch] for t in (left, right))
    counts = [math.prod(size[i] for i in group) for group in (batch, rows, inner, columns)]
    a = _reorder_axes(site, a, left, [*batch, *rows, *inner], (counts[0], counts[1], counts[2]))
    b = _reorder_axes(site, b, right, [*batch, *inner, *columns], (counts[0], counts[2], counts[3]))
    order = [*batch, *rows, *columns]
    product = site.reshape(_product(site, a, b), [size[i] for i in order])
    return site.transpose(product, [order.index(i) for i in result])


def _einsum_indices(site: Site, operands: Sequence[Operand]) -> tuple[list[str], str]:
    """The indices of each operand and of the result, with digits for what an ellipsis stands for
    and with the result written out."""
    equation = str(site.attribute("equation", "")).replace(" ", "")
    inputs, has_output, output = equation.partition("->")
    terms = inputs.split(",")
    if not len(operands) == len(terms) > 0:
        site.refuse(f"its equation is {equation!r}", "Write it as MatMul and Transpose")
    shapes = [x.shape for x in operands]
    ellipsis_ranks = [
        len(s) - len(t.replace("...", "")) for t, s in zip(terms, shapes, strict=True)
    ]
    ellipsis = "0123456789"[
        : max(n if "..." in t else 0 for n, t in zip(ellipsis_ranks, terms, strict=True))
    ]
    terms = [
        t.replace("...", ellipsis[len(ellipsis) - n :])
        for t, n in zip(terms, ellipsis_ranks, strict=True)
    ]
    letters = "".join(terms)
    if has_output:
        output = output.replace("...", ellipsis)
    else:
        output = ellipsis + "".join(
            i for i in sorted(set(letters) - set(ellipsis)) if letters.count(i) == 1
        )
    size: dict[str, int] = {}
    is_valid = set(output) <= set(letters) and all(len(set(t)) == len(t) for t in (*terms, output))
    for term, shape in zip(terms, shapes, strict=True):
        is_valid &= len(term) == len(shape)
        is_valid &= all(size.setdefault(i, n) == n for i, n in zip(term, shape, strict=False))
    if not is_valid:
        site.refuse(f"its equation is {equation!r}", "Write it as MatMul and Transpose")
    return terms, output


def _reorder_axes(
    site: Site, x: Operand, labels: str, order: list[str], shape: tuple[int, ...]
) -> Operand:
    """A tensor with its axes in another order, as three axes."""
    perm = tuple(labels.index(i) for i in order)
    return _reshape(
        site, site.transpose(x, perm) if isinstance(x, Private) else x.transpose(perm), shape
    )
