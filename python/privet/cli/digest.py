"""`privet study tables`: what docs/how-to/plan.md shows of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from privet.cli import options
from privet.errors import Misuse
from privet.study import units
from privet.study.costed import HEADS, costed
from privet.study.digest import digest, markdown, write
from privet.study.prices import read_prices
from privet.study.record import read_records


def tables_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Records of `measure`.")],
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Put them between this page's markers, instead of printing them.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    with_costs: Annotated[
        bool,
        typer.Option("--costed", help="Also compare costs by layers with what was measured."),
    ] = False,
    prices: options.Prices = None,
    price_table: options.PriceTable = "cpu",
) -> None:
    """Tell a study in a few tables of Markdown, as docs/how-to/plan.md has them.

    With `--costed`, models in DIR/models are compiled, and a machine without unit costs finds them.
    """
    records = read_records(folder)
    if not records:
        raise Misuse(f"{folder} has no records: `privet study measure` makes them")
    made = digest(records, read_prices(price_table, prices))
    if with_costs:
        told = Console(stderr=True)

        def progress(done: int, total: int, name: str, _left: float | None) -> None:
            if name:
                told.print(f"Finding this machine's unit costs, {done + 1} of {total}: {name}")

        rows = costed(records, folder / "models", lambda: units.known(progress))
        made["costed"] = markdown(HEADS, [it.cells() for it in rows])
    if page is None:
        typer.echo("\n".join(f"<!-- {name} -->\n{table}" for name, table in made.items()))
        return
    before = page.read_text()
    page.write_text(write(before, made))
    missing = [name for name in made if f"<!-- {name} -->" not in before]
    typer.echo(f"{page}: {len(made) - len(missing)} tables.")
    for name in missing:
        typer.echo(f"No marker for {name}.")
