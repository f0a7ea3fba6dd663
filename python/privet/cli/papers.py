"""`privet papers`: the tables and figures of the papers that Privet builds on, run here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from privet.cli import options, show
from privet.cli.console import Console
from privet.research.papers import items, page
from privet.research.papers.paper import NAMES, Paper, paper
from privet.research.papers.record import place
from privet.research.papers.workplace import Workplace

app = typer.Typer(help="The papers' tables and figures, run here.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(NAMES)}.")]


@app.command("list")
def list_command(
    name: Annotated[str | None, typer.Argument(metavar="[PAPER]", help="Only this one.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List papers and their tables and figures: what runs here, how long it takes, what cannot."""
    publications = [paper(paper_name) for paper_name in ([name] if name else NAMES)]
    if as_json:
        rows = [
            {
                "paper": source.name,
                "item": entry.name,
                "place": entry.place,
                "title": entry.title,
                "how": None if entry.absent else entry.how,
                "minutes": entry.minutes,
                "absent": entry.absent or None,
            }
            for source in publications
            for entry in source.items
        ]
        typer.echo(json.dumps(rows))
        return
    console = show.make_console()
    for publication in publications:
        words = ("item", "in the paper", "what")
        table = show.table(words, ("minutes",), f"{publication.name}: {publication.title}")
        for item in publication.items:
            minutes = "not here" if item.absent else f"{item.minutes:g}"
            table.add_row(item.name, item.place, item.title, minutes)
        console.print(table)


@app.command("run")
def run_command(
    name: Name,
    chosen: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="Only these; else all.")
    ] = None,
    output: options.Records = Path("papers"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Leave out what has a record already.")
    ] = False,
    at_most: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="Leave out what takes longer."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder with MNIST, CIFAR-10 or ImageNet, and models NAME.onnx trained on them: "
            "tables of accuracy have rows for these, too.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
) -> None:
    """Run a paper's items and keep a record of each, from which `report` makes pages."""
    publication = paper(name)
    selection = (
        [publication.item(item_name) for item_name in chosen]
        if chosen
        else [entry for entry in publication.items if not entry.absent]
    )
    stderr = Console(stderr=True)

    def say(text: str) -> None:
        stderr.print(f"  {text}", highlight=False)

    console = show.make_console()
    place_of_work = Workplace(output, report=say, data=data)
    for item in selection:
        if at_most is not None and item.minutes > at_most:
            continue
        if resume and place(output, publication, item).exists():
            continue
        say(f"{publication.name} {item.name}, about {item.minutes:g} min")
        record = items.run(publication, item, place_of_work)
        record.write(output, publication, item)
        console.print(page.section(publication, item, record), highlight=False)


@app.command("report")
def report_command(
    output: options.Records = Path("papers"),
    pages: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where the pages go, one for each paper."),
    ] = Path("papers"),
) -> None:
    """Write a page for each paper: its numbers, what ran here, and where they differ."""
    pages.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        publication: Paper = paper(name)
        path = pages / f"{name}.md"
        path.write_text(page.page(publication, output))
        typer.echo(path)
