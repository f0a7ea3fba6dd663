"""A graph of the zoo as a function of its learned weights that jax can differentiate."""

# mypy: disable-error-code="import-not-found,no-any-return"
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from fit import Parameters

from privet.zoo.graph import Fixed, GraphBuilder
from privet.zoo.initial import draw

Attributes = Mapping[str, Any]


def initial(graph: GraphBuilder) -> Parameters:
    """The weights that `privet.zoo.build` would write."""
    return {
        weight.name: jnp.asarray(draw(graph.name, weight))
        for weight in graph.weights
        if weight.learned
    }


def forward(graph: GraphBuilder, parameters: Parameters, inputs: jax.Array) -> jax.Array:
    """The graph's output for each of `inputs`, without the axis of one in front."""
    fixed = {
        weight.name: weight.law.elements
        for weight in graph.weights
        if isinstance(weight.law, Fixed)
    }

    def one(sample: jax.Array) -> jax.Array:
        values = {**fixed, **parameters, graph.input.name: sample[None]}
        for node in graph.nodes:
            attributes = {
                attribute.name: onnx.helper.get_attribute_value(attribute)
                for attribute in node.attribute
            }
            operands = [values[name] for name in node.input]
            values[node.output[0]] = OPERATORS[node.op_type](attributes, *operands)
        return values[graph.output.name][0]

    return jax.vmap(one)(inputs)


def _conv(attributes: Attributes, x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    image = jax.lax.conv_general_dilated(x, weight, attributes["strides"], "VALID")
    return image + bias[:, None, None]


def _layer_norm(
    attributes: Attributes, x: jax.Array, scale: jax.Array, bias: jax.Array
) -> jax.Array:
    deviation = jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + attributes["epsilon"])
    return (x - jnp.mean(x, axis=-1, keepdims=True)) / deviation * scale + bias


OPERATORS: dict[str, Callable[..., jax.Array]] = {
    "Add": lambda _, x, y: x + y,
    "Concat": lambda a, *parts: jnp.concatenate(parts, axis=a["axis"]),
    "Conv": _conv,
    "Div": lambda _, x, y: x / y,
    "Erf": lambda _, x: jax.scipy.special.erf(x),
    "Gather": lambda a, x, places: jnp.take(x, places, axis=a["axis"]),
    "LayerNormalization": _layer_norm,
    "MatMul": lambda _, x, y: x @ y,
    "Mul": lambda _, x, y: x * y,
    "Pow": lambda _, x, y: x ** int(np.asarray(y)),
    "Reshape": lambda _, x, shape: x.reshape([int(size) for size in shape]),
    "Softmax": lambda a, x: jax.nn.softmax(x, axis=a["axis"]),
    "Tanh": lambda _, x: jnp.tanh(x),
    "Transpose": lambda a, x: jnp.transpose(x, a["perm"]),
}
