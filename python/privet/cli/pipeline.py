"""`privet pipeline`: a model as a pipeline of two organisations, each on its own servers."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

from privet.cli import options, show
from privet.cli.inputs import read_input, read_labels
from privet.cli.suite_options import option_of
from privet.errors import Misuse
from privet.logs import log_to_stderr
from privet.runtime import Credentials, hangup
from privet.runtime.calibration import read_samples
from privet.runtime.quantities import split_address
from privet.suites import KEY_BITS, STREAM, STREAM_TRUST, Stream, make_policy
from privet.suites.policy import accepts_anywhere
from privet.suites.stream.config import BFV

if TYPE_CHECKING:
    from privet.stream.rounds import Ledger

app = typer.Typer(
    help="Run a model as a pipeline over the servers of two organisations.",
    no_args_is_help=True,
)

Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|auto",
        help="This organisation's Ray cluster; processes of this machine by default.",
    ),
]
Servers = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="NAME:CORES",
        help="A server of this organisation, `privet:NAME` among its Ray resources; once for each. "
        "By default this machine.",
    ),
]
Cipher = Annotated[str, option_of(Stream, "cipher")]
KeyBits = Annotated[int, option_of(Stream, "key_bits")]
Ahead = Annotated[
    int,
    typer.Option(min=1, max=64, help="Over BFV: requests that are prepared ahead, at all times."),
]
Window = Annotated[int, typer.Option(min=1, help="Requests of a data provider open at once.")]
PerCore = Annotated[int, typer.Option(min=1, help="Threads for each core.")]


@app.command("provider")
def provider_command(
    model: options.Model,
    keys: options.Keys,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen.")
    ] = "127.0.0.1:7420",
    cluster: Cluster = None,
    server: Servers = None,
    per_core: PerCore = 2,
    window: Window = 16,
    cipher: Cipher = BFV,
    key_bits: KeyBits = KEY_BITS[0],
    prepare_port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Over BFV: where requests are prepared; 0 for any free port."
        ),
    ] = 0,
    bits: options.Bits = None,
    scale: options.Scale = None,
    weight_scale: options.WeightScale = None,
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    reveal_values: Annotated[
        bool,
        typer.Option(
            "--reveal-values",
            help="Accept that data providers see all values before activations, up to their order: "
            "nobody is served without.",
        ),
    ] = False,
    accept: options.Accept = None,
    answers_per_hour: options.AnswersPerHour = None,
    state: options.State = Path("privet-state"),
    revoked: options.Revoked = None,
    timeout: options.Timeout = 300.0,
    as_json: options.AsJson = False,
) -> None:
    """Serve a model's linear stages to data providers.

    SIGHUP reads certificates again; sessions go on. SIGTERM or Ctrl-C stops it.
    """
    from privet.compiler.compile import compile
    from privet.stream.cipher import Cipher as Hiding
    from privet.stream.preprocessing import Rules
    from privet.stream.service import Plan, serve

    hangup.hold()
    log_to_stderr()
    stream_cipher = Hiding(cipher, key_bits)
    policy = make_policy(accept, revealed_values=reveal_values, answers_per_hour=answers_per_hour)
    if not accepts_anywhere(policy, "suite", Stream.name):
        raise Misuse(
            "nobody would be served: --reveal-values accepts that data providers see all values "
            f"before activations, up to their order; so does {Stream.name!r} in a policy's `suite`"
        )
    revocations = None if revoked is None else str(revoked.absolute())
    rules = Rules(policy.text(), str(state / "server" / "answers"), revocations)
    compiled = compile(
        model,
        bits=bits,
        scale=scale,
        weight_scale=weight_scale,
        calibration=read_samples(calibration) if calibration else None,
        input_range=input_range,
        smooth="function",
    )
    show.warn_uncalibrated(compiled.program.calibration)
    plan = Plan(cluster, tuple(server or ()), per_core, timeout)
    console = show.make_console()

    def listening(address: str, threads: tuple[int, ...]) -> None:
        facts = {
            "event": "listening",
            "address": address,
            "program_hash": compiled.program.program_hash,
            "cipher": cipher,
            "threads": threads,
            "policy": json.loads(policy.text()),
        }
        if as_json:
            typer.echo(json.dumps(facts))
        else:
            model = (compiled.program.model, "bold")
            console.print(Text.assemble("Serving ", model, f" at {address}, threads of the"))
            console.print(f"stages {list(threads)}; stop with Ctrl-C. {STREAM_TRUST.capitalize()}.")
            console.print(f"Program {compiled.program.program_hash}")

    asyncio.run(
        _until_stopped(
            serve(
                compiled,
                lambda: Credentials.from_directory(keys, "server"),
                split_address(listen),
                plan,
                cipher=stream_cipher,
                preparing=prepare_port,
                window=window,
                rules=rules,
                listening=listening,
            )
        )
    )


@app.command("data")
def data_command(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The model provider.")],
    keys: options.Keys,
    input: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="A .npy, .npz or image file; once for each request."),
    ],
    repeat: Annotated[int, typer.Option(min=1, help="Ask each so many times.")] = 1,
    cluster: Cluster = None,
    server: Servers = None,
    per_core: PerCore = 2,
    window: Window = 8,
    cipher: Cipher = BFV,
    key_bits: KeyBits = KEY_BITS[0],
    ahead: Ahead = 4,
    program_hash: Annotated[
        str | None, typer.Option(help="The program to insist on, as the other side tells it.")
    ] = None,
    server_name: options.ServerName = None,
    labels: options.Labels = None,
    revoked: options.Revoked = None,
    timeout: options.Timeout = 600.0,
    as_json: options.AsJson = False,
) -> None:
    """Send inputs through the pipeline; they leave this organisation encrypted.

    SIGHUP reads certificates again; requests under way go on.
    """
    from privet.stream.cipher import Cipher as Hiding
    from privet.stream.service import Plan, ask

    hangup.hold()
    log_to_stderr()
    stream_cipher = Hiding(cipher, key_bits)
    host, port = split_address(address)
    plan = Plan(cluster, tuple(server or ()), per_core, timeout)
    classes = read_labels(labels, None)

    async def main() -> tuple[list[dict[str, Any]], float, dict[str, Any]]:
        async with ask(
            host,
            port,
            lambda: Credentials.from_directory(keys, "client"),
            plan,
            cipher=stream_cipher,
            ahead=ahead,
            window=window,
            program_hash=program_hash,
            server_name=server_name,
            revoked=revoked,
        ) as provider:
            program = provider.stages.program
            shapes = {entry.name: entry.shape for entry in program.given}
            samples = [read_input(path, shapes) for path in input for _ in range(repeat)]
            began = time.monotonic()
            replies = await asyncio.gather(*(provider.infer(sample) for sample in samples))
            seconds = time.monotonic() - began
            facts = _facts(cipher, provider.ledger) | {"calibration": program.calibration}
            return replies, seconds, facts

    replies, seconds, facts = asyncio.run(main())
    if as_json:
        outputs = [{name: array.tolist() for name, array in reply.items()} for reply in replies]
        fields = {"outputs": outputs, "seconds": seconds, "trust": STREAM_TRUST}
        fields |= show.weaknesses_fields(STREAM)
        typer.echo(json.dumps({**fields, **facts}))
        return
    console = show.make_console()
    for number, reply in enumerate(replies):
        for name, array in reply.items():
            best = int(np.argmax(array))
            label = classes[best] if best < len(classes) else str(best)
            console.print(f"Request {number}: {name}, largest {label} ({float(array.max()):.4f})")
    rate = len(replies) / seconds
    console.print(f"{len(replies)} requests in {seconds:.2f} s, {rate:.2f} a second.")
    offline = facts["offline"]
    console.print(
        f"Ahead of them: {offline['entries']} material entries in {offline['seconds']:.2f} s, "
        f"{offline['bytes'] / 1e6:.2f} MB."
        if stream_cipher.masked
        else f"Ahead of them: a key in {offline['seconds']:.2f} s."
    )
    show.calibration(console, facts["calibration"])
    show.trust(console, STREAM_TRUST)
    show.weaknesses(console, STREAM)


@app.command("stages")
def stages_command(
    model: options.Model,
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:CORES:model|data",
            help="A server and whose it is; once for each. By default one of two cores each.",
        ),
    ] = None,
    per_core: PerCore = 2,
    cipher: Cipher = BFV,
    key_bits: KeyBits = KEY_BITS[0],
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure a model's stages and allocate servers and threads to them, in both ways."""
    from privet.research.stream.survey import survey
    from privet.stream.cipher import Cipher as Hiding

    stream_cipher = Hiding(cipher, key_bits)
    samples = read_samples(calibration) if calibration else None
    words = server or ["model-0:2:model", "data-0:2:data"]
    stages, allocations, material = survey(
        model, words, per_core, stream_cipher, samples, input_range
    )
    if as_json:
        rows = [{**asdict(stage), "seconds": stage.seconds[1]} for stage in stages]
        plans = {name: asdict(allocation) for name, allocation in allocations.items()}
        offline = asdict(material) if material else None
        fields = {"stages": rows, "allocations": plans, "offline": offline}
        typer.echo(json.dumps({**fields, "trust": STREAM_TRUST}))
        return
    numbers = ("CPU s", "reads", "sends", *(f"{name}: threads" for name in allocations))
    table = show.table(("stage", "provider"), numbers)
    for index, stage in enumerate(stages):
        threads = [str(plan.threads[index]) for plan in allocations.values()]
        figures = (
            f"{stage.seconds[1]:.{6 if stream_cipher.masked else 3}f}",
            str(stage.whole),
            str(stage.sent),
        )
        table.add_row(stage.name, stage.side, *figures, *threads)
    console = show.make_console()
    console.print(table)
    for name, plan in allocations.items():
        slowest = max(plan.times([stage.stage for stage in stages]))
        optimality = "proved best" if plan.gap == 0 else f"within {plan.gap:.0%} of the best"
        console.print(
            f"{name}: slowest stage {slowest:.6f} s, in {plan.solved:.2f} s, {optimality}."
        )
    if material is not None:
        console.print(
            f"Ahead of each request: {material.seconds:.3f} s here, "
            f"{material.cpu_seconds:.3f} CPU s, "
            f"{(material.bytes_data + material.bytes_model) / 1e6:.2f} MB of both sides; of the "
            f"first {material.first_seconds:.3f} s."
        )
    show.trust(console, STREAM_TRUST)


@app.command("scale")
def scale_command(
    model: options.Model,
    calibration: Annotated[
        Path,
        typer.Option(help="Samples: .npy, or .npz with `inputs` and `labels`.", dir_okay=False),
    ],
    as_json: options.AsJson = False,
) -> None:
    """Pick the scaling factor of a model's parameters from calibration data."""
    from privet.research.stream.survey import scaling_of

    scaling = scaling_of(model, calibration)
    facts = {"factor": scaling.factor, "bits": scaling.bits, "original": scaling.original}
    if as_json:
        typer.echo(json.dumps({**facts, "accuracies": scaling.accuracies}))
        return
    powers = [f"10^{decimals}" for decimals in range(len(scaling.accuracies))]
    table = show.table((), (*powers, "original"))
    cells = [Text(f"{100 * accuracy:.2f}") for accuracy in scaling.accuracies]
    cells[-1].stylize("bold")
    table.add_row(*cells, f"{100 * scaling.original:.2f}")
    console = show.make_console()
    console.print(table)
    console.print(
        f"Accuracy in %; factor 10^{scaling.decimals}: serve with --weight-scale {scaling.bits}."
    )


def _facts(cipher: str, ledger: Ledger) -> dict[str, Any]:
    """What a data provider counted, for programs."""
    offline = {
        "entries": ledger.entries,
        "spoiled": ledger.spoiled,
        "seconds": ledger.offline_seconds,
        "bytes": ledger.offline_bytes,
    }
    return {"cipher": cipher, "redone": ledger.redone, "offline": offline}


async def _until_stopped(work: Any) -> None:
    """Runs until a signal."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
