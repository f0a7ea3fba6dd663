"""How large each value of a real graph becomes on calibration inputs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from privet.compiler.executor.codec import in_order, run_front, with_sample_axis
from privet.compiler.executor.real import run
from privet.compiler.executor.reference import draw_given
from privet.compiler.graph import Graph, Input
from privet.compiler.graph.front import Front
from privet.compiler.graph.one_hot import one_hot
from privet.compiler.graph.operations import Array
from privet.compiler.graph.order import may_be_missing
from privet.errors import InputError, InvalidModel

Sample = npt.ArrayLike | Mapping[str, npt.ArrayLike]
Calibration = Sequence[Sample] | Array | Mapping[str, Array]
"""Samples one by one, or along the first axis of an array, or of one for each input by name."""

RANDOM_SAMPLES = 4
RANDOM_STEPS = 8
"""Steps of each session of random inputs."""
STEPS_REPORTED = 4
"""Steps of a session, far apart, that values are measured at."""
RANDOM_SEED = 20260101
"""The random inputs are the same on every run, so that a model always compiles alike."""


def as_samples(calibration: Calibration | None) -> list[Sample] | None:
    """Calibration samples one by one. Raises `InputError` if they are a path, or arrays with
    different numbers of samples."""
    if isinstance(calibration, str | bytes | os.PathLike):
        raise InputError("calibration is samples, not a path: read the file by numpy.load")
    if not isinstance(calibration, Mapping):
        return None if calibration is None else list(calibration)
    arrays = {name: np.asarray(array) for name, array in calibration.items()}
    counts = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(counts) != 1:
        raise InputError("calibration holds different numbers of samples of its inputs")
    return [{name: array[i] for name, array in arrays.items()} for i in range(*counts)]


def calibration_batches(
    graph: Graph, calibration: Sequence[Sample] | None, input_range: tuple[float, float] | None
) -> Iterator[list[Array]]:
    """Inputs in the graph's order, one batch at a time.

    Of a graph with state a sample is a session: arrays with an axis of steps in front. A few of its
    steps are reported, each with the state that it begins with.

    Raises `InputError` if a calibration sample does not fit the graph's inputs.
    """
    if graph.state:
        yield from _session_batches(graph, calibration, input_range)
        return
    if calibration is not None:
        if not len(calibration):
            raise InputError("calibration is empty: give at least one sample, or none at all")
        for sample in calibration:
            yield _encode_sample(graph, sample)
        return
    generator = np.random.default_rng(RANDOM_SEED)
    for _ in range(RANDOM_SAMPLES):
        yield _random_batch(graph, generator, input_range)
    if input_range is not None:
        for bound in input_range:
            yield [
                _encode(graph, entry, np.zeros(graph.input_shape(entry)))
                if entry.one_hot
                else np.full(graph.values[entry.value].shape, bound, np.float32)
                for entry in graph.inputs
            ]


def _random_batch(
    graph: Graph, generator: np.random.Generator, input_range: tuple[float, float] | None
) -> list[Array]:
    batch: list[Array] = []
    for entry in graph.given:
        shape = graph.values[entry.value].shape
        if entry.one_hot:
            ids = generator.integers(0, shape[-1], shape[:-1])
            batch.append(_encode(graph, entry, ids))
        elif input_range is None and entry.whole:
            # Masks and flags; other whole numbers take calibration inputs, or a range.
            batch.append(generator.integers(0, 2, shape).astype(np.float32))
        elif input_range is None:
            batch.append(generator.standard_normal(shape, dtype=np.float32))
        else:
            batch.append(generator.uniform(*input_range, shape).astype(np.float32))
    return batch


def _session_batches(
    graph: Graph, calibration: Sequence[Sample] | None, input_range: tuple[float, float] | None
) -> Iterator[list[Array]]:
    if calibration is None:
        generator = np.random.default_rng(RANDOM_SEED)
        for _ in range(RANDOM_SAMPLES):
            batches = [_random_batch(graph, generator, input_range) for _ in range(RANDOM_STEPS)]
            yield from _reported_steps(graph, batches)
    for sample in calibration or ():
        arrays = arrays_by_input([entry.name for entry in graph.given], sample)
        lengths = {len(array) if array.ndim else 0 for array in arrays.values()}
        if len(lengths) != 1 or lengths == {0}:
            raise InputError("a calibration session needs as many steps of every input, at least 1")
        session = [
            _encode_sample(graph, {name: array[step] for name, array in arrays.items()})
            for step in range(*lengths)
        ]
        yield from _reported_steps(graph, session)


def _reported_steps(graph: Graph, session: Sequence[Sequence[Array]]) -> Iterator[list[Array]]:
    """Some inferences of a session, the last one among them: inputs in the graph's order."""
    reported_steps = set(
        np.linspace(len(session) - 1, 0, STEPS_REPORTED).round().astype(int).tolist()
    )
    names = {entry.name: entry.state for entry in graph.inputs if entry.state is not None}
    state = {
        entry.name: np.zeros(graph.values[entry.value].shape, np.float32)
        for entry in graph.inputs
        if entry.state is not None
    }
    for step, inputs in enumerate(session):
        remaining_inputs = iter(inputs)
        batch = [
            state[entry.name] if entry.state is not None else next(remaining_inputs)
            for entry in graph.inputs
        ]
        if step in reported_steps:
            yield batch
        results = run(graph, batch, lambda *_: None)
        outputs = {output.name: array for output, array in zip(graph.outputs, results, strict=True)}
        state = {name: outputs[output] for name, output in names.items()}


def front_samples(
    front: Front, calibration: Sequence[Sample] | None, input_range: tuple[float, float] | None
) -> list[Sample]:
    """What a front makes of calibration samples, or of a few random inputs. Raises `InputError` if
    a sample does not fit."""
    shapes = {entry.name: entry.shape for entry in front.given}
    names = list(shapes)
    samples: list[Mapping[str, Array]] = []
    for sample in calibration or ():
        arrays = arrays_by_input(names, sample)
        samples.append(
            {name: with_sample_axis(array, shapes[name]) for name, array in arrays.items()}
        )
    if calibration is None:
        generator = np.random.default_rng(RANDOM_SEED)
        samples = [
            {entry.name: draw_given(front, entry, generator, input_range) for entry in front.given}
            for _ in range(RANDOM_SAMPLES)
        ]
    return [run_front(front, sample) for sample in samples]


def measure(graph: Graph, batches: Iterator[list[Array]]) -> dict[int, tuple[float, float]]:
    """The smallest and the largest element of every value over all batches. Raises `InvalidModel`
    if a value is not finite."""
    extremes = dict.fromkeys(graph.values, (math.inf, -math.inf))
    missing = may_be_missing(graph)

    def observe(id: int, array: Array) -> None:
        if id in missing:
            array = np.nan_to_num(array, nan=0.0, posinf=np.inf)
        low, high = float(array.min()), float(array.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidModel(
                f"layer {graph.values[id].name} gives NaN, infinity or numbers beyond float32 on "
                "calibration inputs: check the weights and the samples; where minus infinity masks "
                "scores, take a number such as -10000"
            )
        extremes[id] = min(extremes[id][0], low), max(extremes[id][1], high)

    for batch in batches:
        run(graph, batch, observe)
    return extremes


def _encode_sample(graph: Graph, sample: Sample) -> list[Array]:
    arrays = arrays_by_input([entry.name for entry in graph.given], sample)
    batch, missing = [], may_be_missing(graph)
    for entry in graph.given:
        shape = graph.input_shape(entry)
        array = with_sample_axis(arrays[entry.name], shape)
        is_valid = array.dtype.kind in "fiub"
        if is_valid and entry.value in missing:
            is_valid = not np.isinf(array).any()
        elif is_valid:
            is_valid = bool(np.isfinite(array).all())
        if not is_valid:
            raise InputError(
                f"the calibration of {entry.name} is not made of finite numbers: leave out samples "
                "with NaN, infinity or text"
            )
        if array.shape != shape:
            raise InputError(
                f"the calibration of {entry.name} has a sample of shape {list(array.shape)}, not "
                f"{list(shape)}: stack such samples along a new first axis"
            )
        batch.append(_encode(graph, entry, array))
    return batch


def arrays_by_input(names: Sequence[str], sample: Sample) -> dict[str, Array]:
    """The arrays of a sample by the names of the inputs, and in their order."""
    if not isinstance(sample, Mapping):
        if len(names) != 1:
            raise InputError(
                f"the model has {len(names)} inputs, {', '.join(names)}: a calibration sample maps "
                "their names to arrays; a file of samples is an .npz with an array for each"
            )
        sample = {names[0]: sample}
    keys = in_order("a calibration sample", list(sample), names)
    return {name: np.asarray(sample[key]) for name, key in zip(names, keys, strict=True)}


def _encode(graph: Graph, entry: Input, array: Array) -> Array:
    """What an input's value holds, in floating point."""
    if entry.one_hot:
        count = graph.values[entry.value].shape[-1]
        return one_hot(entry.name, array, count).astype(np.float32)
    return array if array.dtype == np.float64 else array.astype(np.float32)
