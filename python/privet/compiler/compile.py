"""From a model to a program: `compile` runs the whole front end.

The libraries that it needs are loaded when it is called: `import privet` loads this module, and
stays light.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import isfinite, nan
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from privet.errors import (
    InputError,
    InvalidProgram,
    Misuse,
    OverflowRisk,
    Problem,
    UnsupportedModel,
)

if TYPE_CHECKING:
    import onnx

    from privet.compiler.executor.layer_ranges import Ranges
    from privet.compiler.executor.ranges import Calibration, Sample
    from privet.compiler.executor.widths import Accuracy, Widths
    from privet.compiler.graph import Graph, ModelSource
    from privet.compiler.graph.front import Front
    from privet.compiler.graph.input_shapes import InputShapes
    from privet.compiler.graph.operations import Array
    from privet.compiler.program import Program, Weights

PUBLIC_FILE = "program.json"
PRIVATE_FILE = "weights.safetensors"
RELUS = ("exact", "sign")
"""What becomes of ReLU: a comparison, or a product with an approximate sign."""
REVEALS = ("outputs", "scores", "label")
"""What the client learns: what the outputs tell anyway, the scores before them, or labels alone."""
SMOOTH = ("polynomial", "function", "piecewise")
"""What becomes of smooth activations: polynomials, or public functions that a party computes, or
that both compute privately by lines."""


def unknown_accuracy() -> Accuracy:
    """Of a program that was not compiled here."""
    from privet.compiler.executor.widths import Accuracy

    return Accuracy((), ())


@dataclass(frozen=True)
class Compiled:
    """A model ready to run privately.

    `program` may be shown to anyone who uses the service; `weights`, `magnitudes` (the bound on
    each value of the model, by name) and `measured` (what calibration reached in each value of the
    program) stay with the server; so does `accuracy()`, how far each layer is off on calibration
    inputs. `source` is the ONNX model. Of a quantised one, `quantized` counts the values that the
    program keeps in the range of their integers, and all that have one. `widened` says why its
    ring is wider than all choices of suites carry, if it is.
    """

    program: Program
    weights: Weights
    magnitudes: Mapping[str, float]
    source: onnx.ModelProto
    measured: tuple[float, ...] = ()
    accuracy: Callable[[], Accuracy] = field(default=unknown_accuracy, compare=False)
    quantized: tuple[int, int] | None = None
    widened: str | None = None

    def __repr__(self) -> str:
        program = self.program
        inputs = (f"{entry.name} {list(entry.shape)}" for entry in program.given)
        outputs = (
            f"{output.name} {list(program.values[output.value].shape)}"
            for output in program.outputs
        )
        return (
            f"<Compiled {program.model}: {', '.join(inputs)} -> {', '.join(outputs)}; "
            f"{len(program.operations)} operations, ring of {program.ring_bits} bits, scale "
            f"{program.scale_bits}, calibration {program.calibration}, program "
            f"{program.program_hash[:16]}>"
        )

    def ranges(self, *, narrow: bool = True) -> Ranges:
        """What each layer's values can reach, were measured to reach, and fit in; for the owner.

        `narrow` counts rings as suites `gmw` and `fss` have them, not narrowed as `stream` has.
        """
        from privet.compiler.executor.layer_ranges import Ranges

        return Ranges(self.program, self.weights, self.measured, narrow=narrow)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes `program.json` and `weights.safetensors` into a folder, made if need be."""
        save(folder, self.program, self.weights)


def compile(
    model: ModelSource,
    *,
    bits: int | None = None,
    scale: int | None = None,
    weight_scale: int | None = None,
    calibration: Calibration | None = None,
    input_shapes: InputShapes | None = None,
    input_range: tuple[float, float] | None = None,
    ranges: Mapping[str, float] | None = None,
    margin: float = 2.0,
    activation_error: float = 2.0**-10,
    relu: str = "exact",
    smooth: str = "polynomial",
    batch: int = 1,
    headroom: int | None = None,
    sound: bool = False,
    reveal: str = "outputs",
    client_side: bool = False,
    widest: int = 0,
    name: str | None = None,
) -> Compiled:
    """Compiles an ONNX model, as `privet.compile` does for a suite: options that both have mean the
    same, and `privet.suites.compiling` tells of them.

    Of widths that are left out, a ring of 37 bits and scales of 12 are chosen where values have
    room and, on calibration inputs, outputs lie within a thousandth of their spread (4 of a large
    model); else the first of some wider and finer ones that is accurate, and at last a scale for
    each value. A small model with calibration inputs gets rings for all that its bound on inputs
    allows, too, where that takes few bits. A ring of up to `widest` bits is chosen for what none of
    42 bits holds, with calibration inputs and without `sound`; `Compiled.widened` says so. With
    `headroom` nothing is chosen but 37 and 12: truncations are placed so that so many bits are left
    above the point. By default those are as many as the largest magnitude measured takes, a number
    that the places of truncations then tell.

    Smooth activations become polynomials on the ranges measured, with errors up to
    `activation_error` times the largest magnitude that the activation reaches there. With
    `smooth="function"`, for suite `stream`, they stay what they are, rounded to `scale` bits, and
    are part of the public half with their constants. With `smooth="piecewise"`, for `gmw` and
    `fss`, they are part of it likewise, and are computed by lines: to a unit of `2^-scale`, or to
    `2^-16` of the largest value if that is more, and at worst to `activation_error` times that.
    Arguments outside of the table's range count as its ends, or the function goes on as it does
    there where it is constant or rises like its argument.

    ReLU stays exact, or with `relu="sign"` becomes polynomials, for suite `ckks`: a product with an
    approximate sign, off by up to `activation_error` times the largest magnitude of its input.

    Raises what `privet.compile` does.
    """
    from privet.compiler.client_side import part
    from privet.compiler.executor.codec import by_client, describe_outputs
    from privet.compiler.executor.ranges import (
        as_samples,
        calibration_batches,
        front_samples,
        measure,
    )
    from privet.compiler.executor.widths import (
        KEPT,
        LARGE,
        MOST_BEYOND,
        MOST_SPARE,
        TOLERANCE,
        WIDEST,
        Choice,
        candidates,
        choose,
        elements,
        measure_accuracy,
        wider,
    )
    from privet.compiler.graph import import_model, load_model
    from privet.compiler.graph.heads import labels_alone
    from privet.compiler.graph.onnx_model import model_name, opset_of
    from privet.compiler.graph.order import only_compares
    from privet.compiler.graph.state import state_pairs
    from privet.compiler.passes import (
        approximate_relus,
        check_masks,
        check_results,
        fit_polynomials,
        function_scale,
        has_private_masks,
        keep_saturations,
        lower,
        masks_hold,
        saturations,
        simplify,
        tabulate_functions,
    )
    from privet.compiler.passes import batch as widen
    from privet.compiler.passes.check_ranges import RING_BITS
    from privet.compiler.program import build_program
    from privet.compiler.program.check import check_size

    calibration = as_samples(calibration)
    _check_options(bits, scale, weight_scale, margin, activation_error, input_range, batch)
    trial_widths = candidates(bits, scale, weight_scale, headroom)
    if headroom is not None and not 0 <= headroom <= trial_widths[0].bits:
        raise Misuse(f"headroom is {headroom}; 0 to {trial_widths[0].bits} bits are possible")
    choices = (("relu", relu, RELUS), ("smooth", smooth, SMOOTH), ("reveal", reveal, REVEALS))
    for option, choice, allowed in choices:
        if choice not in allowed:
            raise Misuse(f"{option} is {choice!r}; possible are {', '.join(allowed)}")
    if relu == "sign" and smooth != "polynomial":
        raise Misuse(
            f"relu is 'sign', a polynomial, and smooth is {smooth!r}: give one or the other"
        )
    source = load_model(model)
    wider_trials = [widths for widths in wider(bits, trial_widths) if widths.bits <= widest]
    may_widen = bool(wider_trials) and calibration is not None and headroom is None and not sound
    inputs, outputs = (
        [info.name for info in entries] for entries in (source.graph.input, source.graph.output)
    )
    if state_pairs(inputs, outputs):
        _check_state(batch=batch, sound=sound, client_side=client_side, reveal=reveal)
    if reveal == "label":
        source = labels_alone(source)
    title = name or model_name(model, source)
    front, private_model = part(source, input_shapes) if client_side else (None, source)
    import_graph = partial(
        import_model,
        private_model,
        name=title,
        input_shapes=input_shapes if front is None else None,
        scores=reveal == "scores",
        functions=smooth == "function",
    )
    imported = import_graph()
    samples = calibration if front is None else front_samples(front, calibration, input_range)
    batches = list(calibration_batches(imported, samples, input_range))
    if has_private_masks(imported):
        lows_and_highs = measure(imported, iter(batches))
        if not masks_hold(imported, lows_and_highs, margin):
            imported = import_graph(masks=False)

    def build(
        imported: Graph, batches: list[list[Array]], front: Front | None, use_wider: bool = False
    ) -> Compiled:
        quantized = None
        if saturation_total := saturations(imported):
            imported, kept_saturations = keep_saturations(
                imported, measure(imported, iter(batches))
            )
            quantized = (kept_saturations, saturation_total)
        graph = simplify(
            imported, public_functions=smooth != "polynomial", products=smooth == "piecewise"
        )
        extremes = measure(graph, iter(batches))
        for pair in graph.state.values():
            lows_and_highs = [extremes[id] for id in pair]
            state_extremes = (
                min(low for low, _ in lows_and_highs),
                max(high for _, high in lows_and_highs),
            )
            extremes |= dict.fromkeys(pair, state_extremes)
        measured = {id: max(-low, high, 0.0) for id, (low, high) in extremes.items()}
        graph = exact_graph = check_masks(_with_magnitudes(graph, measured, ranges or {}, margin))
        known_extremes = extremes | {
            id: (-ranges[value.name], ranges[value.name])
            for id, value in graph.values.items()
            if ranges and value.name in ranges
        }
        if smooth == "polynomial":
            graph = fit_polynomials(graph, known_extremes, margin=margin, error=activation_error)
        if relu == "sign":
            graph = approximate_relus(graph, error=activation_error)
            check_results(graph, margin=margin)
        lows = {id: low / margin for id, (low, _) in extremes.items()}

        def lower_for(widths: Widths, samples: int, spare: int) -> tuple[Graph, Graph]:
            tabulated = graph
            if smooth == "piecewise":
                table_scale = function_scale(widths.scale, widths.weight_scale, each=widths.each)
                tabulated = tabulate_functions(
                    graph,
                    lows,
                    known_extremes,
                    scale_bits=table_scale,
                    error=activation_error,
                )
            return lower(
                widen(tabulated, samples),
                ring_bits=widths.bits,
                scale_bits=widths.scale,
                weight_scale=widths.weight_scale,
                margin=margin,
                headroom=headroom,
                each=widths.each,
                narrow=not sound,
                spare=spare,
            )

        is_proved = only_compares(graph)
        sound_basis = sound or (is_proved and calibration is None)
        calibration_kind = (
            "sound" if sound_basis else "random" if calibration is None else "samples"
        )

        def attempt(widths: Widths, spare: int = 0) -> Choice[tuple[Compiled, Widths]]:
            _, integers = graphs = lower_for(widths, batch, spare)
            program, weights = build_program(
                integers,
                ring_bits=widths.bits,
                scale_bits=widths.scale,
                batch=batch,
                calibration=calibration_kind,
                front=front,
            )
            check_size(program)
            try:
                describe_outputs(program)
            except InvalidProgram as error:
                instead = "Check the model: ONNX Runtime may not run it, either"
                raise UnsupportedModel([Problem(title, "head", str(error), instead)]) from error
            for value in integers.values.values():
                if (value.scale or 0) < 0:
                    raise OverflowRisk(
                        f"value {value.name} reaches {value.magnitude:.4g}: no ring holds it with "
                        "the scale of the program. Rescale the model's weights, or its inputs",
                        layer=value.name,
                        magnitude=value.magnitude or 0.0,
                        bits_needed=RING_BITS[-1] + 1,
                    )
            reached_magnitudes = tuple(
                (value.magnitude or 0.0) / margin for value in integers.values.values()
            )

            @cache
            def accuracy() -> Accuracy:
                single_graphs = graphs if batch == 1 else lower_for(widths, 1, spare)
                original = None if graph is exact_graph else exact_graph
                head = partial(by_client, program)
                return measure_accuracy(
                    *single_graphs, batches, widths.bits, head=head, original=original
                )

            compiled = Compiled(
                program, weights, magnitudes, source, reached_magnitudes, accuracy, quantized
            )
            if sound and not is_proved:
                compiled.ranges().check()
            return Choice((compiled, widths), accuracy)

        def with_spare_bits(compiled: Compiled, widths: Widths) -> Compiled:
            """The same in rings for whatever inputs within their bounds bring about, so far as that
            takes few bits more."""
            spare = min(max(compiled.ranges().bits_beyond_narrow, 0), MOST_SPARE)
            try:
                if spare:
                    compiled, _ = attempt(widths, spare).value
                needed_bits = compiled.ranges().bits_needed or RING_BITS[-1]
                if bits is None and widths.bits < needed_bits <= WIDEST + MOST_BEYOND:
                    compiled, _ = attempt(
                        replace(widths, bits=min(needed_bits, WIDEST)), spare
                    ).value
            except OverflowRisk:
                pass
            return compiled

        magnitudes = {value.name: value.magnitude or 0.0 for value in graph.values.values()}
        is_large = elements(graph) >= LARGE
        compiled, widths = choose(
            wider_trials if use_wider else trial_widths,
            attempt,
            trust_first=calibration is None,
            first_tolerance=KEPT if is_large or use_wider else TOLERANCE,
            wider_trials=[] if may_widen else wider(bits, trial_widths),
        )
        is_free = calibration is not None and headroom is None and not sound and not is_large
        return with_spare_bits(compiled, widths) if is_free else compiled

    may_scale_columns = calibration is not None and front is None and headroom is None and not sound

    def compile_best(*, use_wider: bool) -> Compiled:
        compiled, build_with_widths = None, partial(build, use_wider=use_wider)
        try:
            compiled = build_with_widths(imported, batches, front)
        except OverflowRisk:
            if not may_scale_columns:
                raise
        if may_scale_columns and (compiled is None or compiled.accuracy().relative > TOLERANCE):
            compiled = _build_in_column_units(
                imported, batches, opset_of(source), build_with_widths, compiled
            )
        assert compiled is not None, "it is refused, or there is one"
        return compiled

    try:
        compiled = compile_best(use_wider=False)
    except OverflowRisk as refusal:
        if not may_widen:
            raise
        compiled = _with_wider_ring(partial(compile_best, use_wider=True), refusal)
    return compiled if calibration is None else _with_comparison(compiled, calibration)


def _with_wider_ring(compile_wider: Callable[[], Compiled], refusal: OverflowRisk) -> Compiled:
    """The program in a ring that some choices of suites do not carry, which says so. Raises the
    `refusal` of narrower rings if this one holds the model neither."""
    from privet.compiler.executor.widths import USUAL, WIDEST

    try:
        compiled_wide = compile_wider()
    except OverflowRisk:
        raise refusal from None
    ring = compiled_wide.program.ring_bits
    why = (
        f"its ring has {ring} bits, as layer {refusal.layer} has no room in one of up to {WIDEST}. "
        f"So parties send up to {100 * (ring - USUAL.bits) // USUAL.bits} % more than in the usual "
        f"ring of {USUAL.bits}, and some choices do not take it, such as a prime field. "
        "Bring weights and inputs to similar sizes to avoid it"
    )
    return replace(compiled_wide, widened=why)


def _with_comparison(compiled: Compiled, samples: Sequence[Sample]) -> Compiled:
    """The same, of which `accuracy()` compares outputs with ONNX Runtime's, too."""

    @cache
    def accuracy() -> Accuracy:
        from privet.compiler.executor.beside import beside

        errors = beside(compiled.source, compiled.program, compiled.weights, samples)
        return replace(compiled.accuracy(), beside=errors)

    return replace(compiled, accuracy=accuracy)


def _build_in_column_units(
    imported: Graph,
    batches: list[list[Array]],
    opset: int,
    build: Callable[[Graph, list[list[Array]], Front | None], Compiled],
    baseline: Compiled | None,
) -> Compiled:
    """The program with columns in units of their own, where that is more accurate than `baseline`,
    or where values have room in it alone. Raises `OverflowRisk` if values have room in neither."""
    from privet.compiler.passes.column_units import column_units, in_units

    units = column_units(imported, batches)
    if not units and baseline is not None:
        return baseline
    front, graph = in_units(imported, units, opset) if units else (None, imported)
    factors = [units.get(entry.value) for entry in imported.inputs]
    scaled_batches = [
        [x if factor is None else x * factor for x, factor in zip(batch, factors, strict=True)]
        for batch in batches
    ]
    try:
        alternative = build(graph, scaled_batches, front)
    except (OverflowRisk, UnsupportedModel):
        if baseline is None:
            raise
        return baseline
    is_better = (
        baseline is None or 2 * alternative.accuracy().relative < baseline.accuracy().relative
    )
    return alternative if is_better or baseline is None else baseline


def save(folder: str | os.PathLike[str], program: Program, weights: Weights) -> None:
    """Writes the two halves of a program into a folder, made if need be."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / PUBLIC_FILE).write_bytes(program.to_public_bytes())
    weights.save(target / PRIVATE_FILE)


def load(folder: str | os.PathLike[str]) -> tuple[Program, Weights]:
    """Reads what `save` wrote.

    # Errors
    `InvalidProgram` if a file is missing or malformed, or the halves do not belong together.
    """
    from privet.compiler.program import Program, Weights

    path = Path(folder) / PUBLIC_FILE
    try:
        program = Program.from_public_bytes(path.read_bytes())
    except OSError as error:
        raise InvalidProgram(f"{path} cannot be read: {error.strerror}") from error
    weights = Weights.load(Path(folder) / PRIVATE_FILE)
    if weights.commitment != program.weights_commitment:
        raise InvalidProgram(f"the two files in {folder!s} belong to different programs")
    return program, weights


def _check_options(
    bits: int | None,
    scale: int | None,
    weight_scale: int | None,
    margin: float,
    activation_error: float,
    input_range: tuple[float, float] | None,
    batch: int,
) -> None:
    from privet.compiler.passes.check_ranges import RING_BITS, SCALE_BITS

    integer_options = {"bits": bits, "scale": scale, "weight_scale": weight_scale, "batch": batch}
    for option, value in integer_options.items():
        if value is not None and not isinstance(value, Integral):
            raise Misuse(f"{option} is {value!r}; a whole number is needed")
    if bits is not None and bits not in RING_BITS:
        raise Misuse(f"bits is {bits}; {RING_BITS[0]} to {RING_BITS[-1]} are possible")
    for option, value in (("scale", scale), ("weight_scale", weight_scale)):
        if value is not None and value not in SCALE_BITS:
            raise Misuse(f"{option} is {value}; {SCALE_BITS[0]} to {SCALE_BITS[-1]} are possible")
    if not 1.0 <= margin < float("inf"):
        raise Misuse(f"margin is {margin}; at least 1 is possible")
    if not 0.0 < activation_error < 1.0:
        raise Misuse(f"activation_error is {activation_error}; between 0 and 1 is possible")
    if batch < 1:
        raise Misuse(f"batch is {batch}; at least 1 is possible")
    if input_range is not None:
        try:
            low, high = map(float, input_range)
        except (TypeError, ValueError):
            low, high = nan, nan
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise Misuse(f"input_range is {input_range}; give the lowest and the highest number")


def _check_state(*, batch: int, sound: bool, client_side: bool, reveal: str) -> None:
    """Raises `Misuse` on what a model with state cannot be compiled with."""
    conflicts = {
        "a batch": batch > 1,
        "sound, as any number of steps may add up": sound,
        "client_side": client_side,
        "reveal='label'": reveal == "label",
    }
    for option, is_asked in conflicts.items():
        if is_asked:
            raise Misuse(f"a model with state is not compiled with {option}")


def _with_magnitudes(
    graph: Graph, measured: Mapping[int, float], ranges: Mapping[str, float], margin: float
) -> Graph:
    names = {value.name for value in graph.values.values()}
    unknown = [name for name in ranges if name not in names]
    if unknown:
        raise InputError(
            f"ranges names {', '.join(unknown)}; the compiled model has {', '.join(sorted(names))}"
        )
    magnitudes = {
        id: ranges.get(value.name, measured[id]) * margin for id, value in graph.values.items()
    }
    return graph.with_values(lambda id, value: replace(value, magnitude=magnitudes[id]))
