"""`privet.run`: both parties on this machine, as two processes over loopback TLS."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import keys, suites
from privet.compile import Compiled, compile
from privet.errors import Misuse
from privet.executor import decode_output, execute
from privet.executor.codec import Inputs, encode_input
from privet.executor.ranges import Calibration
from privet.executor.reference import random_inputs, run_plaintext
from privet.executor.samples import fill, split, trim
from privet.graph import ModelSource
from privet.parties.client import Link, Progress
from privet.parties.costs import NOTHING, DealerCost, LayerCost, MemoryUse, PhaseCost
from privet.parties.encrypted import run_encrypted
from privet.parties.memory import parse_size
from privet.parties.spawned import event, party
from privet.parties.streamed import run_streamed

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Run:
    """A private inference beside its two references.

    `rounds` is the depth of comparisons, as it was given or chosen (None in a suite without the
    choice), `extension` the OT extension
    that suited the link (None with a dealer); `link` what the connection was
    shaped to. `correlations` tells who made the material; if a dealer did, `dealer` is its cost and
    `trust` what the result rests on beyond the two parties.

    `batch` is how many samples the program takes at once, `samples` how many were given; costs are
    those of the whole batch. `memory` has what each party's process took.

    `max_abs_error` is the largest distance to ONNX Runtime's outputs, `max_fixed_point_error` that
    to the plaintext fixed-point executor in units of the last place. `argmax_agrees` compares the
    place of the largest element of the first output with ONNX Runtime's, for each sample.
    `field` is what linear layers were shared in, `linear` tells when they ran. `probabilities` says
    that the model ends in a softmax, which the client computes. `plan` is how suite `ckks` ran it
    (`privet.suites.plan_ckks`) or `stream` (`privet.suites.plan_stream`). `scenario` is what was
    encrypted in suite `ckks`, `calibration` what the program's ranges rest on (`Result`) and
    `parties` how many held secrets; there `truncation` and `correlations` are `none`, in suite
    `stream` the latter. `mode` is all of it that a server may forbid.
    """

    model: str
    suite: str
    security: str
    rounds: str | None
    extension: str | None
    truncation: str
    correlations: str
    trust: str | None
    link: Link | None
    program_hash: str
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
    dealer: DealerCost | None
    memory: dict[str, MemoryUse]
    layers: tuple[LayerCost, ...]
    mode: suites.Mode
    plan: Mapping[str, Any] | None = None
    scenario: str | None = None
    parties: int = 2
    linear: str = "offline"
    field: str = "ring"
    calibration: str = "random"

    @property
    def weaknesses(self) -> tuple[suites.Weakness, ...]:
        """In which ways it was made with less than what the default mode promises."""
        return self.mode.weaknesses


def run(
    model: ModelSource | Compiled,
    inputs: Inputs | None = None,
    *,
    suite: str = "gmw",
    security: str = "semi-honest",
    bits: int | None = None,
    scale: int | None = None,
    rounds: str = suites.AUTO,
    truncation: str = "exact",
    field: str = "ring",
    linear: str = "offline",
    prepared: bool = True,
    weights: str | None = None,
    correlations: str = "parties",
    link: Link | str | None = None,
    memory: int | str | None = None,
    calibration: Calibration | None = None,
    input_range: tuple[float, float] | None = None,
    batch: int = 1,
    scenario: str = suites.ENCRYPTED_DATA,
    parties: int = 3,
    flooding: str | None = None,
    cipher: str = suites.CIPHERS[0],
    key_bits: int = suites.KEY_BITS[0],
    packed: bool = False,
    timeout: float = 600.0,
    progress: Progress | None = None,
) -> Run:
    """Runs a model privately between two local processes and compares with plaintext.

    `inputs` are real arrays by name or in order; without them, random ones. The fixed-point ranges
    are measured on `calibration`, or on random inputs, and on `inputs` as well, so that this call
    works on the model at hand; a real server has only its own calibration inputs. `suite` is `gmw`,
    `fss`, `ckks` or `stream` and `security` what a party may do, as `Client` says. `bits` and
    `scale` are those of `privet.compile`; each suite has its own if they are None.

    `truncation` and `field` are as `Client` says; this server accepts what is asked for, and
    `Run.mode` names what is weaker than the default.

    With `linear="online"` linear layers run online, as `Client` says, and unless `prepared` nothing
    is made before; `offline` then is zero. `weights` is their form at the server, as `Server` says.

    `batch` compiles the model for that many samples at once, as `privet.compile` says; `inputs`
    then hold up to that many along their first axis.

    In suite `ckks`, `scenario` is `encrypted-data`, between client and server; `encrypted-model`,
    between the same, the model encrypted and the client evaluating it; or `collective`: data and
    model are encrypted under a key that a cohort of `parties` members shares. `flooding` is the
    noise on results: `statistical`, or less of it, `light`, in the first and the third.

    In suite `stream`, `cipher` hides values from the server: `paillier`, under keys of `key_bits`,
    2048 or 3072, or `bfv`, which pays ahead and is much faster. With `packed` the samples of a
    `batch` share Paillier's plaintexts; the client then sees which of their values belong together.

    `link` delays both directions and limits their bandwidth for real, as `Client` says; with
    `rounds="auto"` the depth of comparisons follows from it. With `suite="fss"` or
    `correlations="dealer"` a third process deals the material. `memory` limits each
    party's process, as `Server` and `Client` say.

    # Errors
    Those of `privet.compile`; `UnsupportedModel` if the suite has no protocol for a layer;
    `InputError`; `PeerError` if a party fails.
    """
    suites.check_suite(suite)
    suites.check_scenario(suite, scenario, parties)
    noise = suites.flooding_of(suite, scenario, flooding)
    source = suites.in_field(field, suite, correlations)
    truncation = suites.truncation_of(suite, field, truncation)
    suites.check_linear(suite, source, linear)
    if not prepared and linear == "offline":
        raise Misuse("without preparation linear layers must run online")
    link = Link(link) if isinstance(link, str) else link
    if not isinstance(model, Compiled):
        widths = suites.precision(suite, bits, scale)
        compiled = compile_for(model, inputs, widths, calibration, input_range, batch)
    else:
        compiled = model
    suites.check_supported(compiled.program, suite)
    if inputs is None:
        inputs = random_inputs(compiled.program, input_range)
    named, samples = fill(compiled.program, inputs)
    encode_input(compiled.program, named)
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        options: dict[str, Any] = {
            "suite": suite,
            "security": security,
            "rounds": rounds,
            "truncation": truncation,
            "correlations": correlations,
            "link": link,
            "linear": linear,
            "field": field,
        }
        if suite == "ckks":
            secret_holders = parties if scenario == suites.COLLECTIVE else 2
            options |= {"scenario": scenario, "parties": secret_holders, "flooding": noise}
        limits: dict[str, Any] = {"memory": parse_size(memory), "timeout": timeout}
        if suite in suites.PREPARED:
            limits |= {"weights": weights, "prepared": prepared}
        if suite == "stream":
            options |= {"cipher": cipher, "key_bits": key_bits, "alone": None}
            if packed:
                if isinstance(model, Compiled) or cipher != "paillier":
                    raise Misuse("packed takes a model as ONNX, and cipher paillier")
                each = suites.precision(suite, bits, scale)
                options["alone"] = compile_for(
                    model, inputs, each, calibration, input_range, batch, alone=True
                )
        elif packed:
            raise Misuse("packed is for suite stream: the others pack without being asked")
        starts = {"ckks": run_encrypted, "stream": run_streamed}
        start = starts.get(suite, _processes)
        integers, found = start(Path(folder), compiled, named, options, limits, progress)
    for option in ("flooding", "cipher", "key_bits", "alone"):
        options.pop(option, None)
    return _compare(compiled, named, samples, integers, {**options, **found})


def compile_for(
    model: ModelSource,
    inputs: Inputs | None,
    widths: suites.Precision,
    calibration: Calibration | None,
    input_range: tuple[float, float] | None,
    batch: int,
    alone: bool = False,
) -> Compiled:
    """Compiles a model that takes `inputs`: ranges are measured on them, too, if need be.

    With `alone` the same for one sample of the batch that `inputs` are.
    """
    given = list(calibration) if calibration is not None else None
    build = partial(compile, model, **vars(widths), input_range=input_range)
    compiled = build(calibration=given, batch=batch)
    samples = _covering(compiled, given, inputs, input_range)
    if samples is given and not alone:
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
    given, count = fill(compiled.program, inputs)
    # What is no array of real numbers is refused by `encode_input`, with a better message.
    arrays = list(given.values())
    if any(array.dtype.kind not in "fiu" for array in arrays):
        return samples
    largest = max(float(np.abs(array).max(initial=0)) for array in arrays)
    covered = largest <= min(entry.magnitude for entry in compiled.program.inputs)
    if covered or not np.isfinite(largest):
        return samples
    known = samples or split(random_inputs(compiled.program, input_range), 1)
    seen = [given] if compiled.program.batch == 1 else split(given, count)
    return [*known, *seen]


def _compare(
    compiled: Compiled,
    inputs: Mapping[str, Array],
    samples: int,
    integers: list[Array],
    found: dict[str, Any],
) -> Run:
    program = compiled.program
    decoded = decode_output(program, integers)
    outputs = dict(zip(decoded, trim(program, list(decoded.values()), samples), strict=True))
    fixed = execute(program, compiled.weights, inputs)
    single = [inputs] if program.batch == 1 else split(inputs, samples)
    reference = run_plaintext(compiled.source, single, list(outputs))
    first = next(iter(outputs))
    agrees = all(
        int(np.argmax(private)) == int(np.argmax(plain))
        for private, plain in zip(
            *(np.reshape(each[first], (samples, -1)) for each in (outputs, reference)), strict=True
        )
    )
    if np.issubdtype(reference[first].dtype, np.integer):
        agrees = bool(np.array_equal(outputs[first], reference[first]))
    return Run(
        model=program.model,
        program_hash=program.program_hash,
        calibration=program.calibration,
        batch=program.batch,
        samples=samples,
        outputs=outputs,
        reference=reference,
        probabilities=program.outputs[0].client is not None,
        argmax_agrees=agrees,
        max_abs_error=max(
            float(np.abs(outputs[name] - reference[name]).max(initial=0)) for name in outputs
        ),
        max_fixed_point_error=max(
            int(np.abs(private - exact).max(initial=0))
            for private, exact in zip(
                *(trim(program, each, samples) for each in (integers, fixed.integers)), strict=True
            )
        ),
        **found,
    )


def _processes(
    folder: Path,
    compiled: Compiled,
    inputs: Mapping[str, Array],
    options: dict[str, Any],
    limits: dict[str, Any],
    progress: Progress | None,
) -> tuple[list[Array], dict[str, Any]]:
    """Client's revealed integers, and what else the processes found out as fields of `Run`."""
    compiled.save(folder / "program")
    keys.make(folder / "keys", ())
    np.savez(folder / "inputs.npz", *inputs.values())
    common: dict[str, Any] = {"keys": str(folder / "keys"), **limits}
    with ExitStack() as running:
        dealer = None
        if suites.is_dealt(options["suite"], options["correlations"]):
            dealer = running.enter_context(party(folder, {"role": "dealer", **common}))
            common["dealer"] = f"127.0.0.1:{event(dealer, 'listening')['port']}"
        job = {
            "role": "server",
            "policy": suites.make_policy(
                dealer=dealer is not None, truncation=options["truncation"]
            ).text(),
            "state": str(folder / "s"),
            "program": str(folder / "program"),
            **common,
        }
        server = running.enter_context(party(folder, job))
        listening = event(server, "listening")
        job = {
            "role": "client",
            "state": str(folder / "c"),
            "port": listening["port"],
            "inputs": str(folder / "inputs.npz"),
            "result": str(folder / "result.npz"),
            **options,
            "link": str(options["link"]) if options["link"] else None,
            **common,
        }
        client = running.enter_context(party(folder, job))
        result = event(client, "result", progress)
        kinds = ("prepared", "inferred") if limits["prepared"] else ("inferred",)
        theirs = [event(server, kind)["cost"] for kind in kinds]
        dealt = DealerCost(**event(dealer, "dealt")["cost"]) if dealer else None
    with np.load(folder / "result.npz") as revealed:
        integers = [revealed[name] for name in revealed.files]
    nothing = [] if limits["prepared"] else [NOTHING]
    measured = ("offline", "online")[len(nothing) :]
    phases = nothing + [
        _merge(result[phase], cost) for phase, cost in zip(measured, theirs, strict=True)
    ]
    layers = tuple(LayerCost(**layer) for layer in result["layers"])
    starts = {"client": result["memory"], "server": listening["memory"]}
    peaks = {
        "client": [result[phase]["peak_rss_mb"] for phase in measured],
        "server": [cost["peak_rss_mb"] for cost in theirs],
    }
    limited = {"server"} if limits["memory"] else set()
    if limits["weights"] is not None:
        chosen = {key: options[key] for key in ("truncation", "linear")}
        public = compiled.program.to_public_bytes()
        planned = suites.plan(
            public,
            options["suite"],
            result["rounds"],
            correlations=result["correlations"],
            security=options["security"],
            **chosen,
        )
        result["needs"][1] = planned.server_memory(limits["weights"])
    memory = {
        party: MemoryUse(
            None if party in limited else (starts[party] + needs) / 1e6, max(peaks[party])
        )
        for party, needs in zip(starts, result["needs"], strict=True)
    }
    found = {key: result[key] for key in ("rounds", "extension", "correlations", "trust")}
    found |= {"dealer": dealt, "memory": memory, "mode": suites.Mode.labelled(result["label"])}
    return integers, {**found, "offline": phases[0], "online": phases[1], "layers": layers}


def _merge(client: dict[str, Any], server: dict[str, Any]) -> PhaseCost:
    """The client's view; processors of both parties, memory of whichever had more."""
    mine, theirs = PhaseCost(**client), PhaseCost(**server)
    return replace(
        mine,
        peak_rss_mb=max(mine.peak_rss_mb, theirs.peak_rss_mb),
        cpu_seconds=(mine.cpu_seconds or 0.0) + (theirs.cpu_seconds or 0.0),
    )


__all__ = ["Run", "run"]
