"""ai.onnx.ml: linear models, and what scales and selects features.

A linear classifier is taken apart before (`privet.compiler.graph.onnx_ml`); labels and maps are
what the client makes of scores (`privet.compiler.graph.heads`).
"""

from __future__ import annotations

import math

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.onnx_model import ML
from privet.compiler.graph.operations import Array
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.operators.selection import look_up, number_of
from privet.compiler.graph.public_maps import pick
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

AT_CLIENT = "only on what the outputs tell: the client computes it"


@operator("LinearClassifier", domain=ML, since=1)
def linear_classifier(site: Site) -> Operand:
    """What could not be taken apart."""
    site.refuse(
        f"its post_transform is {site.attribute('post_transform', 'NONE')}",
        "Check the model",
    )


@operator("LinearRegressor", domain=ML, since=1, restrictions="post_transform NONE")
def linear_regressor(site: Site) -> Operand:
    """`x * coefficients + intercepts`, a column for each target."""
    targets = site.attribute("targets", 1)
    return _linear(site, site.floats("coefficients").reshape(targets, -1))


def _linear(site: Site, weight: Array, offsets: str = "intercepts") -> Private:
    """`[N, F] * weight.T`; a vector counts as one row."""
    if site.attribute("post_transform", "NONE") != "NONE":
        site.refuse("it transforms its result", "Export it with post_transform NONE")
    bias = site.floats(offsets)
    if bias.size not in (0, len(weight)):
        site.refuse(f"{bias.size} {offsets} for {len(weight)} targets", "Check the model")
    return site.emit(op.Dense(weight.T, bias if bias.size else None), site.rows())


@operator("Scaler", domain=ML, since=1)
def scaler(site: Site) -> Operand:
    """`(x - offset) * scale`, a number for all features or one for each."""
    x = site.private(0)
    offset, scale = site.floats("offset"), site.floats("scale")
    shifted = plus_constant(site, x, -offset) if offset.size else x
    return times_constant(site, shifted, scale) if scale.size else shifted


@operator(
    "Imputer", domain=ML, since=1, restrictions="of NaN or infinity, which no private input is"
)
def imputer(site: Site) -> Operand:
    """Nothing: inputs are finite, and so is what the suite computes."""
    if math.isfinite(site.attribute("replaced_value_float", 0.0)):
        site.refuse(
            "it replaces a number, and whether a private input has it is not known",
            "Replace it before, at the client, and let the model begin behind",
        )
    site.assume_present()
    return site.private(0)


@operator("Binarizer", domain=ML, since=1)
def binarizer(site: Site) -> Operand:
    """1 above the threshold and 0 up to it: the place of the larger of 0 and `x - threshold`."""
    x = site.private(0)
    excess = plus_constant(site, x, np.asarray(-float(site.attribute("threshold", 0.0))))
    column = site.reshape(excess, (*x.shape, 1))
    zero = site.emit(op.Sub(), column, column)
    axis = len(x.shape)
    place = site.emit(op.ArgMax(axis, False, False), site.emit(op.Concat(axis), zero, column))
    return Private(place.id, place.shape)


@operator("FeatureVectorizer", domain=ML, since=1)
def feature_vectorizer(site: Site) -> Operand:
    """Its inputs side by side."""
    rows = [site.private(index) for index in range(len(site.inputs))]
    return site.concat(len(rows[0].shape) - 1, rows)


@operator(
    "ArrayFeatureExtractor",
    domain=ML,
    since=1,
    restrictions="indices constant, or places of classes or rows in a constant",
)
def array_feature_extractor(site: Site) -> Operand:
    """Elements of the last axis."""
    ids = site.operand(1)
    if isinstance(ids, Private):
        table = np.atleast_2d(site.constant(0, "table"))
        # Unlike Gather, ONNX Runtime counts no place from behind, and refuses those outside.
        looked_up = look_up(site, np.moveaxis(table, -1, 0), ids, within=True)
        count = math.prod(looked_up.shape) * table.shape[-1] // table.size
        rank = table.ndim - 1
        rows = site.reshape(looked_up, (count, *table.shape[:-1]))
        return site.apply("Transpose", rows, perm=(*range(1, rank + 1), 0))
    x = site.private(0)
    x = number_of(site, x) if x.one_hot else x
    x = x if len(x.shape) > 1 else site.reshape(x, (1, *x.shape))
    indices = np.ravel(site.constant(1, "indices")).astype(np.int64)
    return pick(site, x, len(x.shape) - 1, indices.tolist())


def _at_client(site: Site) -> Operand:
    site.refuse(
        "its result tells less than what it reads, which stays private",
        "Make what it reads an output, too",
    )


operator("ZipMap", domain=ML, since=1, restrictions=AT_CLIENT)(_at_client)
