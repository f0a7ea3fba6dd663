"""`privet inspect`: what a model is made of, and what a private inference of it will take."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from privet import suites
from privet.cli import options, show
from privet.cli.budget import print_budget
from privet.cli.failures import exit_code
from privet.cli.ranges import range_fields, reach_fields, show_ranges, show_reach
from privet.compile import Compiled, compile
from privet.errors import ModelError, UnsupportedModel
from privet.graph import load_model
from privet.parties import Link
from privet.parties.calibration import read_samples
from privet.suites import SUITES


def inspect(
    model: options.Model,
    suite: options.Suite = "gmw",
    ckks: Annotated[bool, typer.Option("--ckks", help="The same as `--suite ckks`.")] = False,
    security: options.Security = "semi-honest",
    bits: options.Bits = None,
    scale: options.Scale = None,
    batch: options.Batch = 1,
    scenario: options.Scenario = "encrypted-data",
    flooding: options.Flooding = None,
    parties: options.Parties = 3,
    cipher: options.Cipher = "paillier",
    key_bits: options.KeyBits = 2048,
    rounds: options.Rounds = "auto",
    truncation: options.Truncation = "exact",
    field: options.Field = "ring",
    linear: options.Linear = "offline",
    correlations: options.Correlations = "parties",
    link: options.Link = None,
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    ciphertexts: Annotated[
        bool,
        typer.Option("--ciphertexts", help="Also print the ciphertexts of every linear layer."),
    ] = False,
    security_budget: Annotated[
        bool,
        typer.Option(
            "--security-budget",
            help="Show instead what security rests on, and what is lost statistically, added up.",
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show operators, shapes and widths, what is supported, and the material that it will take."""
    suite = "ckks" if ckks else suite
    suites.check_scenario(suite, scenario, parties)
    correlations = suites.in_field(field, suite, correlations)
    truncation = suites.truncation_of(suite, field, truncation)
    shaped = Link(link) if link else None
    nodes = [
        {"name": node.name or node.output[0], "operator": node.op_type}
        for node in load_model(model).graph.node
    ]
    compiled = None
    try:
        widths = suites.precision(suite, bits, scale)
        compiled = compile(
            model,
            **vars(widths),
            calibration=read_samples(calibration) if calibration else None,
            input_range=input_range,
            batch=batch,
        )
        suites.check_supported(compiled.program, suite)
        if suite == "ckks":
            chosen = suites.flooding_of(suite, scenario, flooding)
            plan = suites.plan_ckks(compiled.program.to_public_bytes(), scenario, chosen, parties)
            if security_budget:
                _budgeted(compiled, suites.ckks_security(plan), nodes, suite, as_json)
                return
            _homomorphic(compiled, plan, nodes, as_json)
            return
        if suite == "stream":
            suites.check_semi_honest(suite, security)
            public = compiled.program.to_public_bytes()
            if security_budget:
                budget = suites.stream_security(public, cipher, key_bits)
                _budgeted(compiled, budget, nodes, suite, as_json)
                return
            plan = suites.plan_stream(public, cipher, key_bits)
            _streamed(compiled, plan, nodes, as_json)
            return
        plans = suites.plans(
            compiled.program.to_public_bytes(),
            suite,
            rounds,
            truncation,
            correlations,
            shaped,
            security,
            linear,
        )
    except ModelError as error:
        _refused(nodes, error, compiled, as_json)
        raise typer.Exit(exit_code(error)) from error
    depth = suites.quickest(plans, shaped)
    if security_budget:
        _budgeted(compiled, suites.security(plans[depth]), nodes, suite, as_json)
        return
    forecast = suites.forecast(plans[depth])
    delay = suites.online_delay(forecast, shaped) if shaped else None
    if as_json:
        fields = {
            "suite": suite,
            "security": security,
            "rounds": depth,
            "link": show.link_fields(shaped),
            "online_delay": delay,
        }
        fields |= {"forecast": asdict(forecast)}
        fields["reach"] = range_fields(compiled.ranges())
        typer.echo(json.dumps(_as_object(compiled, nodes) | fields))
        return
    console = show.make_console()
    _show(console, compiled, forecast, ciphertexts)
    show_ranges(console, compiled.ranges())
    show.calibration(console, compiled.program.calibration)
    console.print(f"Comparisons: {show.rounds(depth, shaped, rounds == 'auto')}.")
    if delay is not None:
        console.print(f"The link adds {delay:.3f} s online.")


def _budgeted(
    compiled: Compiled,
    budget: suites.Security,
    nodes: list[dict[str, str]],
    suite: str,
    as_json: bool,
) -> None:
    """Shows what the security of an inference rests on."""
    if as_json:
        fields = {"suite": suite, "security_budget": asdict(budget)}
        typer.echo(json.dumps(_as_object(compiled, nodes) | fields))
        return
    console = show.make_console()
    console.print(f"[bold]{compiled.program.model}[/], suite {suite}")
    print_budget(console, budget)


def _homomorphic(
    compiled: Compiled, plan: dict[str, Any], nodes: list[dict[str, str]], as_json: bool
) -> None:
    """Shows how suite `ckks` runs a model."""
    if as_json:
        fields = {"suite": "ckks", "plan": plan}
        fields["reach"] = reach_fields(compiled.ranges(narrow=False))
        typer.echo(json.dumps(_as_object(compiled, nodes) | fields))
        return
    console = show.make_console()
    console.print(f"[bold]{compiled.program.model}[/]; suites that run it: {_runners(compiled)}")
    show.homomorphic(console, plan, compiled.program.program_hash)
    show.packing(console, plan)
    show_reach(console, compiled.ranges(narrow=False))
    show.calibration(console, compiled.program.calibration)


def _streamed(
    compiled: Compiled, plan: dict[str, Any], nodes: list[dict[str, str]], as_json: bool
) -> None:
    """Shows what an inference in suite `stream` takes."""
    if as_json:
        fields = {"suite": "stream", "trust": suites.STREAM_TRUST, "plan": plan}
        fields["reach"] = range_fields(compiled.ranges(narrow=False))
        typer.echo(json.dumps(_as_object(compiled, nodes) | fields))
        return
    console = show.make_console()
    console.print(f"[bold]{compiled.program.model}[/]; suites that run it: {_runners(compiled)}")
    show.stream(console, plan, compiled.program.program_hash)
    show_ranges(console, compiled.ranges(narrow=False))
    show.calibration(console, compiled.program.calibration)
    show.trust(console, suites.STREAM_TRUST)


def _runners(compiled: Compiled) -> str:
    return ", ".join(name for name in SUITES if suites.supported(compiled.program, name))


def _operations(compiled: Compiled) -> list[dict[str, Any]]:
    program = compiled.program
    return [
        {
            "name": operation.name,
            "operator": operation.op,
            "shape": list(program.values[operation.output].shape),
            "scale": program.values[operation.output].scale,
        }
        for operation in program.operations
    ]


def _as_object(compiled: Compiled, nodes: list[dict[str, str]]) -> dict[str, Any]:
    program = compiled.program
    return {
        "model": program.model,
        "program_hash": program.program_hash,
        "batch": program.batch,
        "ring_bits": program.ring_bits,
        "scale_bits": program.scale_bits,
        "weight_bits": program.weight_bits,
        "nodes": nodes,
        "supported": {name: suites.supported(program, name) for name in SUITES},
        "problems": [],
        "operations": _operations(compiled),
        "ranges": dict(compiled.magnitudes),
        "calibration": program.calibration,
    }


def _refused(
    nodes: list[dict[str, str]], error: ModelError, compiled: Compiled | None, as_json: bool
) -> None:
    """Prints the nodes and why the model cannot run."""
    problems = error.problems if isinstance(error, UnsupportedModel) else ()
    if as_json:
        listed = [asdict(problem) for problem in problems]
        supported = {
            name: compiled is not None and suites.supported(compiled.program, name)
            for name in SUITES
        }
        typer.echo(
            json.dumps(
                {"nodes": nodes, "supported": supported, "problems": listed, "message": str(error)}
            )
        )
        return
    console = show.make_console()
    table = Table(box=None, pad_edge=False)
    for title in ("node", "operator", "supported"):
        table.add_column(title)
    bad = {problem.node for problem in problems}
    for node in nodes:
        mark = "[bold red]no[/]" if node["name"] in bad else "yes"
        table.add_row(node["name"], node["operator"], mark)
    console.print(table)
    console.print(f"[bold red]{error}[/]", soft_wrap=True)


def _show(console: Console, compiled: Compiled, forecast: suites.Forecast, listed: bool) -> None:
    program = compiled.program
    console.print(
        f"[bold]{program.model}[/]: ring of {program.ring_bits} bits, scale {program.scale_bits}, "
        f"weights below 2^{program.weight_bits}; suites that run it: {_runners(compiled)}"
    )
    table = Table(box=None, pad_edge=False)
    for title in ("operation", "operator", "output"):
        table.add_column(title)
    table.add_column("scale", justify="right")
    for operation in _operations(compiled):
        shape = "x".join(map(str, operation["shape"]))
        table.add_row(operation["name"], operation["operator"], shape, str(operation["scale"]))
    console.print(table)
    if listed:
        for layer in forecast.linear:
            console.print(f"{layer.name} ({layer.operator}): {layer.layout}")
    samples = program.batch
    console.print("One inference takes:" if samples == 1 else f"A batch of {samples} takes:")
    for kind, count in forecast.correlations.items():
        console.print(f"  {count:,} {kind.replace('_', ' ')}")
    traffic = Table(box=None, pad_edge=False)
    parties = ("client", "server")
    for title in ("", *parties, *(f"{party}, per sample" for party in parties if samples > 1)):
        traffic.add_column(title, justify="right" if title else "left")
    rows = [
        ("sends offline", "offline_bytes"),
        ("gets from the dealer", "dealer_bytes"),
        ("sends online", "online_bytes"),
        ("stores", "material_bytes"),
        ("needs memory", "memory_bytes"),
    ]
    for title, field in rows:
        if field == "dealer_bytes" and forecast.extension is not None:
            continue
        counts = [getattr(forecast, f"{field}_{party}") for party in parties]
        shared = samples > 1 and field != "memory_bytes"
        each = [count // samples for count in counts if shared]
        traffic.add_row(title, *map(show.size, counts + each))
    console.print(traffic)
    if forecast.refill is not None:
        more = forecast.refill
        console.print(
            f"Unprepared, it takes {show.size(more.bytes_client)} and "
            f"{show.size(more.bytes_server)} more online, in {more.rounds} rounds, for "
            f"correlations in {more.chunks} chunks."
        )
    made = f"by OT ({forecast.extension})" if forecast.extension else "by a dealer"
    console.print(f"{forecast.online_rounds} online rounds; correlations are made {made}.")
