"""`privet server`: offer a model to clients."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from privet.cli import homomorphic, options, show
from privet.logs import log_to_stderr
from privet.parties import Credentials, Finished, Server
from privet.parties.address import split_address
from privet.parties.calibration import read_samples
from privet.parties.catalog import compile_once
from privet.parties.homomorphic import Endpoint
from privet.parties.revocation import Revoked
from privet.suites import check_between_two, check_suite, flooding_of, make_policy, precision


def server(
    model: options.Model,
    keys: options.Keys,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen.")
    ] = "127.0.0.1:7400",
    state: options.State = Path("privet-state"),
    suite: Annotated[
        str,
        typer.Option(help="`ckks` for homomorphic encryption; `gmw` serves `fss` as well."),
    ] = "gmw",
    scenario: options.Scenario = "encrypted-data",
    flooding: options.Flooding = None,
    dealer: options.Dealer = None,
    truncation: options.AcceptedTruncation = "exact",
    accept: options.Accept = None,
    answers_per_hour: options.AnswersPerHour = None,
    bits: options.Bits = None,
    scale: options.Scale = None,
    batch: options.Batch = 1,
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    sound: options.Sound = False,
    name: Annotated[
        str | None, typer.Option(help="Name that clients ask for; the model's own otherwise.")
    ] = None,
    memory: options.Memory = None,
    weights: options.Weights = None,
    max_material: options.MaxMaterial = None,
    revoked: options.Revoked = None,
    timeout: options.Timeout = 120.0,
    as_json: options.AsJson = False,
) -> None:
    """Serve a model: clients learn predictions, the server learns nothing of their inputs.

    Clients choose how, within what this server accepts: exact truncations, no dealer and
    statistical noise, unless a flag or a policy accepts something weaker.
    """
    log_to_stderr()
    host, port = split_address(listen)
    check_suite(suite)
    check_between_two(suite, scenario)
    noise = flooding_of(suite, scenario, flooding)
    policy = make_policy(
        accept,
        dealer=dealer is not None,
        truncation=truncation,
        flooding=noise,
        answers_per_hour=answers_per_hour,
    )
    samples = read_samples(calibration) if calibration else None
    widths = precision(suite, bits, scale)
    compiled = compile_once(
        model,
        state / "server" / "programs",
        bits=widths.bits,
        scale=widths.scale,
        calibration=samples,
        input_range=input_range,
        name=name,
        batch=batch,
        sound=sound,
    )
    show.warn_uncalibrated("sound" if sound else "samples" if samples else "random")
    if suite == "ckks":
        endpoint = Endpoint(host, port, keys, scenario, None, memory, timeout, noise)
        counts = state / "server" / "answers"
        homomorphic.serve(compiled, endpoint, policy, counts, Revoked(revoked), as_json=as_json)
        return
    lock = threading.Lock()
    console = show.make_console()

    def on_finished(finished: Finished) -> None:
        with lock:
            _tell(console, finished, as_json)

    with Server(
        Credentials.from_directory(keys, "server"),
        state=state,
        policy=policy,
        dealer=dealer,
        host=host,
        port=port,
        memory=memory,
        weights=weights,
        max_material=max_material,
        timeout=timeout,
        revoked=revoked,
        on_finished=on_finished,
    ) as serving:
        program = serving.add_saved(compiled)
        address = "{}:{}".format(*serving.address)
        if as_json:
            _say(
                event="listening",
                address=address,
                model=program.model,
                program_hash=program.program_hash,
                batch=program.batch,
                policy=json.loads(policy.text()),
            )
        else:
            console.print(f"Serving [bold]{program.model}[/] at {address}; stop with Ctrl-C.")
            console.print(
                f"Program {program.program_hash}: give this hash to clients that should pin it."
            )
            show.policy(console, policy)
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            console.print("Stopped.") if not as_json else _say(event="stopped")


def _tell(console: Console, finished: Finished, as_json: bool) -> None:
    if as_json:
        fields: dict[str, Any] = {"event": finished.kind, "client": finished.client}
        if finished.model is not None:
            fields |= {"model": finished.model, "material": finished.material}
        if finished.cost is not None:
            fields["cost"] = asdict(finished.cost)
        if finished.error is not None:
            fields["error"] = {
                "type": type(finished.error).__name__,
                "message": str(finished.error),
            }
        _say(**fields)
        return
    what = f"client {finished.client[:16]}: {finished.kind}"
    if finished.error is not None:
        console.print(f"{what}: [red]{finished.error}[/]", soft_wrap=True)
    elif finished.cost is None:
        console.print(f"{what} {finished.model}")
    else:
        cost = finished.cost
        traffic = f"{show.size(cost.bytes_client)} in, {show.size(cost.bytes_server)} out"
        console.print(f"{what} {finished.model} in {cost.seconds:.3f} s, {traffic}")


def _say(**fields: Any) -> None:
    typer.echo(json.dumps(fields))
