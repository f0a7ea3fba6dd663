"""`privet.run`: every party on this machine, as processes over loopback TLS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import suites
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import decode_output, execute
from privet.compiler.executor.codec import Inputs, as_tensor, encode_input
from privet.compiler.executor.ranges import Calibration, as_samples
from privet.compiler.executor.reference import run_plaintext, trial_inputs
from privet.compiler.executor.samples import by_name, fill, pad, split, trim
from privet.compiler.executor.widths import Accuracy
from privet.compiler.graph import ModelSource
from privet.compiler.graph.input_shapes import InputShapes
from privet.errors import Misuse
from privet.runtime.client import Link
from privet.runtime.quantities import check_seconds, parse_size
from privet.runtime.result import Promised
from privet.suites import LocalJob, LocalResult, Progress, Suite
from privet.suites.costs import DealerCost, LayerCost, MemoryUse, PhaseCost

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Run(Promised):
    """A private inference beside its two references.

    `config` is the suite with every choice made, as it was given or as it suited the link, and
    `extension` the OT extension that suited it (None where none makes correlations); `link` what
    the connection was shaped to. If a dealer made the material, `dealer` is its cost.

    `batch` is how many samples the program takes at once, `samples` how many were given; costs are
    those of the whole batch. `memory` has what each party's process took.

    `max_abs_error` is the largest distance to ONNX Runtime's outputs that are numbers,
    `max_fixed_point_error` that to the plaintext fixed-point executor in units of the last place.
    `argmax_agrees` compares the place of the largest element of the first output with ONNX
    Runtime's, for each sample, or the labels that it is. `probabilities` says that the client
    computes a softmax or the like of it. `calibration` is what the program's ranges rest on
    (`Result`). `plan` has the figures of the suite's plan, if it has one, and `account` is what
    there is to say of how it ran. `accuracy()` has the errors of layers on calibration inputs,
    and `widened` tells why the ring is wider than usual, if it is.
    """

    model: str
    config: Suite
    link: Link | None
    program_hash: str
    calibration: str
    batch: int
    samples: int
    outputs: dict[str, Array]
    reference: dict[str, Array]
    probabilities: bool
    argmax_agrees: bool
    max_abs_error: float
    max_fixed_point_error: int
    offline: PhaseCost
    online: PhaseCost
    layers: tuple[LayerCost, ...]
    memory: dict[str, MemoryUse]
    dealer: DealerCost | None
    extension: str | None
    plan: Mapping[str, Any] | None
    account: tuple[str, ...]
    accuracy: Callable[[], Accuracy]
    widened: str | None

    @property
    def agrees(self) -> bool:
        """Whether `argmax_agrees`, and no output that is of numbers is off by more than a hundredth
        and a tenth of its largest number."""
        return self.argmax_agrees and all(
            _distance(self.outputs[name], plain) <= max(0.01, 0.1 * _largest(plain))
            for name, plain in self.reference.items()
        )

    def __repr__(self) -> str:
        verdict = "agrees" if self.agrees else "DISAGREES"
        error = f"largest difference of an output {self.max_abs_error:.2g}"
        return self._summary(f"Run of {self.model}", f"ONNX Runtime {verdict}, {error}")


def run(
    model: ModelSource | Compiled,
    inputs: Inputs | None = None,
    *,
    suite: Suite | str = suites.DEFAULT,
    bits: int | None = None,
    scale: int | None = None,
    weight_scale: int | None = None,
    batch: int = 1,
    link: Link | str | None = None,
    memory: int | str | None = None,
    calibration: Calibration | None = None,
    input_range: tuple[float, float] | None = None,
    input_shapes: InputShapes | None = None,
    reveal: str = "outputs",
    client_side: bool = False,
    timeout: float = 600.0,
    progress: Progress | None = None,
) -> Run:
    """Runs a model privately between local processes and compares with plaintext.

    `inputs` are arrays by name or in order, or the only one; without them, random ones. The
    fixed-point ranges are measured on `calibration`, or on random inputs, and on `inputs` as well,
    so that this call works on the model at hand; a real server has only its own calibration inputs.

    `suite` is a suite with its options, such as `privet.Gmw(rounds="log")`, or the name of one for
    its defaults. The server here accepts what is asked for; `Run.weaknesses` names what is weaker
    than the default. `bits`, `scale` and `weight_scale` are those of `privet.compile`; each suite
    has its own. `input_shapes`, `reveal` and `client_side` are those of `privet.compile`, too. A
    model that is compiled already takes none of these.

    `batch` compiles the model for that many samples at once, as `privet.compile` says; `inputs`
    then hold up to that many along their first axis. `link` delays both directions and limits their
    bandwidth for real, as `Client` says; what a suite leaves open follows from it. `memory` limits
    each party's process, as `Server` and `Client` say.

    # Errors
    Those of `privet.compile`; `Misuse` on its options beside a compiled model; `UnsupportedModel`
    if the suite has no protocol for a layer; `InputError`; `PeerError` if a party fails.
    """
    check_seconds(timeout)
    config = suites.as_suite(suite)
    link = Link(link) if isinstance(link, str) else link
    arguments = {
        **vars(config.as_compiled(bits, scale, weight_scale)),
        "input_shapes": input_shapes,
        "reveal": reveal,
        "client_side": client_side,
    }
    if isinstance(model, Compiled):
        _check_no_options(
            calibration=calibration,
            batch=batch,
            bits=bits,
            scale=scale,
            weight_scale=weight_scale,
            input_shapes=input_shapes,
            reveal=reveal,
            client_side=client_side,
        )
        compiled = model
    else:
        build = partial(
            compile_for, model, inputs, calibration, input_range, batch=batch, **arguments
        )
        compiled = build()
    config.check_supports(compiled.program)
    if compiled.program.state:
        raise Misuse(
            "a model with state takes many inferences: privet generate, or Server and Client"
        )
    if inputs is None:
        inputs = trial_inputs(compiled.source, compiled.program, input_range)
    arrays, samples = pad(compiled.program, inputs)
    inputs_by_name, _ = fill(compiled.program, arrays)
    encode_input(compiled.program, inputs_by_name)
    alone = None
    if not isinstance(model, Compiled) and config.compiled_batch(batch) < batch:
        alone = build(alone=True)
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        limit = parse_size(memory)
        job = LocalJob(
            Path(folder), compiled, arrays, inputs_by_name, timeout, link, limit, progress, alone
        )
        return _compare(compiled, arrays, inputs_by_name, samples, link, config.run_local(job))


def _check_no_options(**options: Any) -> None:
    """Raises `Misuse` on options of `privet.compile` that a compiled model can no longer take."""
    left_out = {"batch": 1, "reveal": "outputs", "client_side": False}
    names = [
        name
        for name, value in options.items()
        if (value != left_out[name] if name in left_out else value is not None)
    ]
    if names:
        raise Misuse(f"the model is compiled already: give {', '.join(names)} to privet.compile")


def compile_for(
    model: ModelSource,
    inputs: Inputs | None,
    calibration: Calibration | None,
    input_range: tuple[float, float] | None,
    *,
    batch: int = 1,
    alone: bool = False,
    **options: Any,
) -> Compiled:
    """Compiles a model that takes `inputs`: ranges are measured on them, too, if need be.

    With `alone` the same for one sample of the batch that `inputs` are. `options` are those of
    `privet.compile`.
    """
    calibration_samples = as_samples(calibration)
    build = partial(compile, model, input_range=input_range, **options)
    compiled = build(calibration=calibration_samples, batch=batch)
    samples = _covering(compiled, calibration_samples, inputs, input_range)
    if samples is calibration_samples and not alone:
        return compiled
    return build(calibration=samples, batch=1 if alone else batch)


def _covering(
    compiled: Compiled,
    samples: list[Any] | None,
    inputs: Inputs | None,
    input_range: tuple[float, float] | None,
) -> list[Any] | None:
    """The calibration, with `inputs` added if they are larger than what it covers."""
    if inputs is None:
        return samples
    by_input, count = fill(compiled.program, inputs)
    # What is no array of real numbers, or of another shape, is refused by `encode_input`, with a
    # better message.
    arrays = list(by_input.values())
    if any(array.dtype.kind not in "fiub" for array in arrays):
        return samples
    entries = [entry for entry in compiled.program.inputs if not entry.one_hot]
    largest = [float(np.abs(by_input[entry.name]).max(initial=0)) for entry in entries]
    fits = all(
        by_input[entry.name].shape == compiled.program.input_shape(entry) for entry in entries
    )
    covered = all(size <= entry.magnitude for size, entry in zip(largest, entries, strict=True))
    if covered or not fits or not np.isfinite(largest).all():
        return samples
    base = samples or split(trial_inputs(compiled.source, compiled.program, input_range), 1)
    inputs_by_name = by_name(compiled.program, inputs)
    portions = [inputs_by_name] if compiled.program.batch == 1 else split(inputs_by_name, count)
    return [*base, *portions]


def _compare(
    compiled: Compiled,
    arrays: Mapping[str, Array],
    inputs: Mapping[str, Array],
    samples: int,
    link: Link | None,
    result: LocalResult,
) -> Run:
    program = compiled.program
    decoded = decode_output(program, result.integers)
    outputs = dict(zip(decoded, trim(program, list(decoded.values()), samples), strict=True))
    fixed = execute(program, compiled.weights, inputs)
    single = [arrays] if program.batch == 1 else split(arrays, samples)
    reference = run_plaintext(compiled.source, single, list(outputs))
    return Run(
        model=program.model,
        config=result.suite,
        link=link,
        program_hash=program.program_hash,
        calibration=program.calibration,
        batch=program.batch,
        samples=samples,
        outputs=outputs,
        reference=reference,
        probabilities=program.head is not None or program.outputs[0].client is not None,
        argmax_agrees=_agrees(outputs, reference, samples),
        max_abs_error=max(_distance(outputs[name], reference[name]) for name in outputs),
        max_fixed_point_error=max(
            int(np.abs(private - exact).max(initial=0))
            for private, exact in zip(
                *(
                    trim(program, integers, samples)
                    for integers in (result.integers, fixed.integers)
                ),
                strict=True,
            )
        ),
        offline=result.offline,
        online=result.online,
        layers=result.layers,
        memory=result.memory,
        dealer=result.dealer,
        extension=result.extension,
        plan=result.plan,
        account=result.account,
        accuracy=compiled.accuracy,
        widened=compiled.widened,
    )


def _agrees(outputs: Mapping[str, Array], reference: Mapping[str, Array], samples: int) -> bool:
    """Whether the first output says the same as in the clear: labels, or the largest number."""
    first = next(iter(outputs))
    private, plain = (as_tensor(group[first]) for group in (outputs, reference))
    if plain.dtype.kind != "f":
        return bool(np.array_equal(private, plain))
    rows = (np.reshape(scores, (samples, -1)).argmax(axis=1) for scores in (private, plain))
    return bool(np.array_equal(*rows))


def _largest(plain: Array) -> float:
    """The largest magnitude; of labels none."""
    plain = as_tensor(plain)
    return float(np.abs(plain).max(initial=0)) if plain.dtype.kind in "fiu" else 0.0


def _distance(private: Array, plain: Array) -> float:
    """Between numbers; texts have none."""
    private, plain = as_tensor(private), as_tensor(plain)
    if "U" in (private.dtype.kind, plain.dtype.kind):
        return 0.0
    return float(np.abs(private.astype(np.float64) - plain.astype(np.float64)).max(initial=0))
