"""The security budget as `privet inspect --security-budget` prints it."""

from __future__ import annotations

from rich.console import Console

from privet.cli import show
from privet.suites.security import MODEL_INFERENCES, PROMISED_BITS, Security


def print_budget(console: Console, budget: Security) -> None:
    """Both kinds of terms, their sums, and what a key serves."""
    console.print(
        "[bold]Computational[/], in bits: an attacker of 2^t steps wins with 2^(t - bits)"
    )
    terms = show.table(("rests on", "problem"), ("bits", "instances", "together"))
    for term in budget.assumptions:
        terms.add_row(
            term.name, term.problem, f"{term.bits:.1f}", f"{term.count:,}", f"{term.total_bits:.1f}"
        )
    terms.add_row("[bold]sum[/]", "", "", "", f"[bold]{budget.computational_bits:.1f}[/]")
    console.print(terms)
    if not budget.losses:
        console.print("[bold]Statistical[/]: nothing is lost.")
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
    console.print("[bold]Statistical[/], in bits: everybody wins with at most 2^-bits")
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
    shown = [f"[bold]{value:.1f}[/]" for value in sums if value is not None]
    losses.add_row("[bold]sum[/]", "", "", "", *shown)
    console.print(losses)
    if budget.inference_bits is not None and budget.inference_bits < PROMISED_BITS:
        console.print(
            f"[bold red]This is below the {PROMISED_BITS:.0f} bits an inference of other suites.[/]"
        )
