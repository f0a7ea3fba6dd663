"""ai.onnx.ml: support vector machines.

A kernel is a linear layer, whose weights are the support vectors, and a function of each of its
results: a power, a hyperbolic tangent, or an exponential, for which the layer also reads the
squares of the features. Another linear layer makes decision values. Labels and probabilities are
nodes of their own (`privet.compiler.graph.onnx_svm`).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.function import Function, Step, chain
from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.operations import Array
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.operators.comparison import is_above
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

KERNELS = "kernels other than LINEAR not with `--security malicious`"
MOST_DEGREE = 16
SQUARE = Function((Step("mul", (0, 0)),))
BELL = Function((Step("relu", (0,)), Step("scale", (1,), -1.0), Step("exp", (2,))))
"""`exp(-d)` of a distance, which rounding may take below 0."""


@operator("SVMClassifier", domain=ML, since=1, restrictions=f"post_transform NONE; {KERNELS}")
def svm_classifier(site: Site) -> Operand:
    """Its decision values: for each pair of classes, or of a linear machine for each class."""
    _refuse_transform(site)
    counts = site.ints("vectors_per_class") or []
    coefficients, rho = site.floats("coefficients"), site.floats("rho")
    if not counts:
        labels = site.ints("classlabels_ints") or site.attribute("classlabels_strings", [])
        return _dense(site, site.rows(), coefficients.reshape(len(labels), -1).T, rho)
    if min(counts) < 0 or sum(counts) > site.floats("support_vectors").size:
        site.refuse(f"{counts} support vectors are not there", "Check the model")
    by_class = np.repeat(np.arange(len(counts)), counts)
    coefficients = coefficients.reshape(len(counts) - 1, len(by_class))
    pairs = list(combinations(range(len(counts)), 2))
    weight = np.zeros((len(by_class), len(pairs)))
    for column, (i, j) in enumerate(pairs):
        weight[by_class == i, column] = coefficients[j - 1, by_class == i]
        weight[by_class == j, column] = coefficients[i, by_class == j]
    return _decision_values(site, weight, rho)


@operator("SVMRegressor", domain=ML, since=1, restrictions=f"post_transform NONE; {KERNELS}")
def svm_regressor(site: Site) -> Operand:
    """One decision value, or with `one_class` its sign."""
    _refuse_transform(site)
    weight, rho = site.floats("coefficients").reshape(-1, 1), site.floats("rho")[:1]
    if not site.attribute("n_supports", 0):
        value = _dense(site, site.rows(), weight, rho)
    else:
        value = _decision_values(site, weight, rho)
    if not site.attribute("one_class", 0):
        return value
    twice = times_constant(site, is_above(site, value, 0.0), np.asarray(2.0))
    return plus_constant(site, twice, np.asarray(-1.0))


def _refuse_transform(site: Site) -> None:
    transform = site.attribute("post_transform", "NONE")
    if transform != "NONE":
        site.refuse(f"its post_transform is {transform}", "Export it with post_transform NONE")


def _decision_values(site: Site, weight: Array, rho: Array) -> Private:
    """Decision values: kernels of the support vectors, `weight` `[S, D]` and `rho` `[D]`."""
    x = site.rows()
    vectors = site.floats("support_vectors").reshape(len(weight), x.shape[1]).T
    gamma, offset, degree = (*site.floats("kernel_params"), 0.0, 0.0, 3.0)[:3]
    kernel = site.attribute("kernel_type", "LINEAR")
    if kernel == "LINEAR":
        return _dense(site, x, vectors @ weight, rho)
    if kernel == "RBF":
        # The square root of gamma is on both sides, so that weights need few bits.
        vectors, root_gamma = np.sqrt(gamma) * vectors, np.full(x.shape, np.sqrt(gamma))
        scaled = site.emit(op.Scale(root_gamma), x)
        squares = site.emit(op.Elementwise(SQUARE), scaled)
        layer_weight = np.concatenate([-2 * vectors, np.ones_like(vectors)])
        features = site.emit(op.Concat(1), scaled, squares)
        kernels = site.emit(
            op.Elementwise(BELL), _dense(site, features, layer_weight, (vectors**2).sum(axis=0))
        )
    else:
        products = _dense(site, x, gamma * vectors, np.full(len(weight), offset))
        kernels = site.emit(op.Elementwise(_kernel_function(site, kernel, degree)), products)
    return _dense(site, kernels, weight, rho)


def _kernel_function(site: Site, kernel: str, degree: float) -> Function:
    """What a kernel makes of `gamma x . v + coef0`."""
    if kernel == "SIGMOID":
        return chain("tanh")
    if kernel != "POLY" or degree != int(degree) or not 1 <= degree <= MOST_DEGREE:
        site.refuse(
            f"its kernel is {kernel} of degree {degree:g}",
            f"Use LINEAR, RBF, SIGMOID, or POLY of degree 1 to {MOST_DEGREE}",
        )
    return Function(tuple(Step("mul", (0, step)) for step in range(int(degree) - 1)))


def _dense(site: Site, x: Private, weight: Array, bias: Array) -> Private:
    if bias.size not in (1, weight.shape[1]):
        site.refuse(f"{bias.size} rho for {weight.shape[1]} results", "Check the model")
    return site.emit(op.Dense(weight, np.broadcast_to(bias, weight.shape[1]).copy()), x)
