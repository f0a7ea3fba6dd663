"""`privet inspect`: what a model is made of, and what a private inference of it will take."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from privet import suites
from privet.cli import all_suites, options, ranges, show
from privet.cli.console import Console
from privet.cli.failures import exit_code
from privet.cli.suite_options import Suite
from privet.compiler.compile import Compiled, compile
from privet.compiler.graph import load_model
from privet.errors import ModelError, UnsupportedModel
from privet.runtime import Link
from privet.runtime.calibration import read_samples
from privet.suites import Planned, Precision
from privet.suites.security import MODEL_INFERENCES, PROMISED_BITS, Security


def inspect(
    model: options.Model,
    suite: Suite = suites.DEFAULT,
    bits: options.Bits = None,
    scale: options.Scale = None,
    weight_scale: options.WeightScale = None,
    batch: options.Batch = 1,
    link: options.Link = None,
    calibration: options.Calibration = None,
    input_range: options.InputRange = None,
    reveal: options.Reveal = "outputs",
    client_side: options.ClientSide = False,
    shape: options.Shapes = None,
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
    accuracy: Annotated[
        bool,
        typer.Option(
            "--accuracy",
            help="Show instead each layer's error on calibration inputs, in units of the last "
            "place and as a part of its values' spread.",
        ),
    ] = False,
    every_suite: Annotated[
        bool,
        typer.Option(
            "--all-suites", help="Show instead in which suites the model runs, and why not."
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show operators, shapes and widths, what is supported, and the material that it will take."""
    arguments: dict[str, Any] = {
        "calibration": read_samples(calibration) if calibration else None,
        "input_range": input_range,
        "reveal": reveal,
        "client_side": client_side,
        "input_shapes": options.shapes(shape),
        "batch": batch,
    }
    if every_suite:
        all_suites.print_survey(
            all_suites.survey(model, bits, scale, weight_scale, **arguments), as_json
        )
        return
    shaped = Link(link) if link else None
    nodes = [
        {"name": node.name or node.output[0], "operator": node.op_type}
        for node in load_model(model).graph.node
    ]
    compiled = None
    precision = suite.as_compiled(bits, scale, weight_scale)
    try:
        compiled = compile(model, **vars(precision), **arguments)
        suite.check_supports(compiled.program)
        plan = suite.plan(compiled.program, shaped)
    except ModelError as error:
        if compiled is None and isinstance(error, UnsupportedModel):
            error = _completed(error, suite, model, precision, arguments)
        _refused(nodes, error, compiled, as_json)
        raise typer.Exit(exit_code(error)) from error
    if accuracy:
        _accuracy(compiled, as_json)
        return
    if security_budget:
        _budgeted(compiled, plan, nodes, as_json)
        return
    if as_json:
        fields = {"suite": suite.name, "link": show.link_fields(shaped), **plan.figures}
        fields |= {"trust": plan.suite.trust.caution, "reach": ranges.fields(suite, compiled)}
        typer.echo(json.dumps(_as_object(compiled, nodes) | fields))
        return
    console = show.make_console()
    _show(console, compiled)
    for line in plan.details if ciphertexts else ():
        console.print(line)
    show.account(console, plan.account)
    ranges.show(console, suite, compiled)
    show.quantized(console, compiled)
    show.warn_widened(compiled.widened)
    show.calibration(console, compiled.program.calibration)
    show.trust(console, plan.suite.trust.caution)


def _budgeted(
    compiled: Compiled, plan: Planned, nodes: list[dict[str, str]], as_json: bool
) -> None:
    """Shows what the security of an inference rests on."""
    budget = plan.security()
    if as_json:
        fields = {"suite": plan.suite.name, "security_budget": asdict(budget)}
        typer.echo(json.dumps(_as_object(compiled, nodes) | fields))
        return
    console = show.make_console()
    console.print(Text.assemble((compiled.program.model, "bold"), f", suite {plan.suite.name}"))
    print_budget(console, budget)


def _accuracy(compiled: Compiled, as_json: bool) -> None:
    """Shows how far fixed point is from reals, layer by layer."""
    accuracy = compiled.accuracy()
    if as_json:
        parts = {
            "layers": accuracy.layers,
            "outputs": accuracy.outputs,
            "beside_onnx_runtime": accuracy.beside,
        }
        fields = {
            name: [
                {**asdict(entry), "units": entry.units, "relative": entry.relative}
                for entry in layers
            ]
            for name, layers in parts.items()
        }
        typer.echo(json.dumps({"model": compiled.program.model, **fields}))
        return
    console = show.make_console()
    table = show.table(("layer", "operator"), ("scale", "error", "units", "of its spread"))
    for layer in accuracy.layers:
        error = f"{layer.error:.3g}", f"{layer.units:.3g}", f"{layer.relative:.2g}"
        table.add_row(layer.name, layer.operator, str(layer.scale), *error)
    console.print(table)
    console.print(f"Outputs are off by at most {accuracy.relative:.2g} of their spread.")
    for end in accuracy.beside:
        console.print(f"{end.name}: off by {end.relative:.2g} of its spread from ONNX Runtime's.")
    show.warn_inaccurate(accuracy)


def _runners(compiled: Compiled) -> dict[str, bool]:
    """Which suites run a program with their defaults."""
    return {
        suite_type.name: suite_type().runs(compiled.program) for suite_type in suites.all_suites()
    }


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
        "supported": _runners(compiled),
        "problems": [],
        "operations": _operations(compiled),
        "ranges": dict(compiled.magnitudes),
        "calibration": program.calibration,
        "quantized": compiled.quantized,
    }


def _completed(
    error: UnsupportedModel,
    suite: suites.Suite,
    model: Path,
    precision: Precision,
    arguments: dict[str, Any],
) -> UnsupportedModel:
    """The refusal of functions that no polynomial is close to, with the operations that the suite
    does not compute behind: those that compile once functions are left as they are."""
    if precision.smooth != "polynomial":
        return error
    try:
        unfitted = compile(
            model, **vars(replace(precision, relu="exact", smooth="function")), **arguments
        )
    except ModelError:
        return error
    fitted = {"function", "relu"} if precision.relu == "sign" else {"function"}
    operations = [
        support for support in suite.supports(unfitted.program) if support.operator not in fitted
    ]
    return UnsupportedModel([*error.problems, *operations])


def _refused(
    nodes: list[dict[str, str]], error: ModelError, compiled: Compiled | None, as_json: bool
) -> None:
    """Prints the nodes and why the model cannot run."""
    problems = error.problems if isinstance(error, UnsupportedModel) else ()
    if as_json:
        listed = [asdict(problem) for problem in problems]
        supported = (
            _runners(compiled) if compiled is not None else dict.fromkeys(suites.names(), False)
        )
        typer.echo(
            json.dumps(
                {"nodes": nodes, "supported": supported, "problems": listed, "message": str(error)}
            )
        )
        return
    console = show.make_console()
    table = show.table(("node", "operator", "supported"), ())
    bad = {problem.node for problem in problems}
    for node in nodes:
        mark = Text("no", style="bold red") if node["name"] in bad else "yes"
        table.add_row(node["name"], node["operator"], mark)
    console.print(table)
    console.print(Text(str(error), style="bold red"), soft_wrap=True)


def _show(console: Console, compiled: Compiled) -> None:
    program = compiled.program
    runners = ", ".join(name for name, runs in _runners(compiled).items() if runs)
    console.print(
        Text.assemble(
            (program.model, "bold"),
            f": ring of {program.ring_bits} bits, scale {program.scale_bits}, "
            f"weights below 2^{program.weight_bits}; suites that run it: {runners}",
        )
    )
    table = show.table(("operation", "operator", "output"), ("scale",))
    for operation in _operations(compiled):
        shape = "x".join(map(str, operation["shape"]))
        table.add_row(operation["name"], operation["operator"], shape, str(operation["scale"]))
    console.print(table)


def print_budget(console: Console, budget: Security) -> None:
    """Both kinds of terms, their sums, and what a key serves."""
    meaning = ", in bits: an attacker of 2^t steps wins with 2^(t - bits)"
    console.print(Text.assemble(("Computational", "bold"), meaning))
    terms = show.table(("rests on", "problem"), ("bits", "instances", "together"))
    for term in budget.assumptions:
        terms.add_row(
            term.name, term.problem, f"{term.bits:.1f}", f"{term.count:,}", f"{term.total_bits:.1f}"
        )
    terms.add_row("sum", "", "", "", f"{budget.computational_bits:.1f}", style="bold")
    console.print(terms)
    if not budget.losses:
        console.print(Text.assemble(("Statistical", "bold"), ": nothing is lost."))
    else:
        _losses(console, budget)
    serves = "any number of inferences"
    if budget.key_inferences is not None:
        count = budget.key_inferences
        serves = "one inference" if count == 1 else f"at most {count:,} inferences"
    console.print(f"A key ({budget.key}) serves {serves}.")
    for note in budget.notes:
        console.print(f"Not in any sum: {note}.")


def _losses(console: Console, budget: Security) -> None:
    meaning = ", in bits: everybody wins with at most 2^-bits"
    console.print(Text.assemble(("Statistical", "bold"), meaning))
    columns = (
        "each",
        "in an inference",
        "an inference",
        "a key",
        f"{MODEL_INFERENCES:,} inferences",
    )
    losses = show.table(("loses", "unit"), columns)
    for loss in budget.losses:
        bits = (loss.inference_bits, loss.key_bits, loss.model_bits)
        losses.add_row(
            loss.name,
            loss.unit,
            f"{loss.each_bits:.1f}",
            f"{loss.count:,}",
            *(f"{value:.1f}" for value in bits),
        )
    sums = (budget.inference_bits, budget.key_bits, budget.model_bits)
    figures = [f"{value:.1f}" for value in sums if value is not None]
    losses.add_row("sum", "", "", "", *figures, style="bold")
    console.print(losses)
    if budget.inference_bits is not None and budget.inference_bits < PROMISED_BITS:
        console.print(
            f"This is below the {PROMISED_BITS:.0f} bits an inference of other suites.",
            style="bold red",
        )
