"""`privet.compile`: a model compiled for the suite that is to run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privet.compiler.compile import Compiled
from privet.compiler.compile import compile as compile_as
from privet.suites.base import Suite
from privet.suites.registry import DEFAULT, as_suite

if TYPE_CHECKING:
    from privet.compiler.executor.ranges import Calibration
    from privet.compiler.graph import ModelSource
    from privet.compiler.graph.input_shapes import InputShapes


def compile(
    model: ModelSource,
    *,
    suite: Suite | str = DEFAULT,
    bits: int | None = None,
    scale: int | None = None,
    weight_scale: int | None = None,
    calibration: Calibration | None = None,
    input_shapes: InputShapes | None = None,
    input_range: tuple[float, float] | None = None,
    ranges: Mapping[str, float] | None = None,
    margin: float = 2.0,
    activation_error: float = 2.0**-10,
    batch: int = 1,
    headroom: int | None = None,
    sound: bool = False,
    reveal: str = "outputs",
    client_side: bool = False,
    name: str | None = None,
) -> Compiled:
    """Compiles an ONNX model, given by path, bytes or `ModelProto`, for `suite`: a suite with its
    options, or the name of one. What suites have in common runs in others, too; smooth activations
    and, for suite `ckks`, ReLU have a form of their own in each.

    `bits` is the width of the ring, `scale` the fractional bits of inputs and activations, and
    `weight_scale` those of weights (by default the same). What is left out the suite fixes, or it
    is chosen on calibration inputs, so that values have room and outputs are accurate: a ring of up
    to 42 bits, or as wide as the suite carries where none of these holds the model
    (`Compiled.widened`). With `headroom` nothing is chosen.

    How large values become is measured on `calibration`: samples along the first axis of an array
    (of a mapping from input names to arrays, if there are several), or a list of samples. Without
    it, a few random inputs serve: uniform within
    `input_range`, or standard normal, and every result says so. `ranges` states the largest
    magnitude of tensors by their ONNX names instead. Everything is multiplied by `margin`. `sound`
    asks instead for a proof that no input within the public bound leaves the ring.

    Smooth activations are off by up to `activation_error` times the largest magnitude that they
    reach.

    `batch` samples go through the program at once, each as if it were alone: in as many rounds as
    one. The model must be exported for one sample, or with a symbolic batch axis; samples of
    `calibration` stay single. `input_shapes` are shapes of inputs whose axes the model leaves open.

    What follows the last value that the outputs tell anyway (softmax, labels, maps) is the model's
    head, which the client computes in the clear. With `reveal="scores"` the head is as long as it
    can be, and the client sees what it reads; with `reveal="label"` the client learns labels alone:
    other outputs are left out, and a model that gives scores gets an argmax.

    With `client_side` the client computes what precedes the first private operation and reads
    inputs and constants alone: scaling, imputing, encoding of categories, texts, too. These
    constants become public; `Program.front` has them.

    Outputs `present.X` of a decoder are the state of its inputs `past_key_values.X`
    (`Program.state`): they stay shared between the parties from one inference of a session to the
    next. A sample of `calibration` is then a session: arrays with an axis of steps in front.

    # Errors
    `UnsupportedModel` with every problem at once; `InvalidModel`; `OverflowRisk` if a value could
    leave the ring as measured or, with `sound`, at all; `InputError` on unfit calibration inputs;
    `Misuse` on options out of range. Whether the suite computes every operation of the program is
    asked when it is run or served (`Suite.check_supports`).
    """
    config = as_suite(suite)
    return compile_as(
        model,
        **vars(config.as_compiled(bits, scale, weight_scale)),
        calibration=calibration,
        input_shapes=input_shapes,
        input_range=input_range,
        ranges=ranges,
        margin=margin,
        activation_error=activation_error,
        batch=batch,
        headroom=headroom,
        sound=sound,
        reveal=reveal,
        client_side=client_side,
        name=name,
    )
