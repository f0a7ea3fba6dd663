"""A console takes nothing of what it prints for its own: no markup, links, emoji or steering."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.style import Style
from rich.table import Table
from rich.text import Text

from privet.cli import dealer, prepare, show
from privet.cli.console import Console
from privet.errors import PrivetError
from privet.gateway.ahead import Level, LevelEvent
from privet.runtime.dealer import Dealt
from privet.suites.costs import NOTHING, PhaseCost

NAME = "[link=a\x1b]0;c]digits[/link] [/] [bold]x[/bold] :key:"
PLAIN = NAME.replace("\x1b", "")


def _console() -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    console = Console(
        file=output, force_terminal=True, color_system="truecolor", width=200, highlight=False
    )
    return console, output


def test_names_and_errors_are_no_markup() -> None:
    console, output = _console()
    console.print(f"ready are 1 of {NAME}", soft_wrap=True)
    grid = Table(NAME, title=NAME, box=None)
    grid.add_row(NAME)
    console.print(grid)
    lines = [line.strip() for line in output.getvalue().splitlines()]
    assert lines[0] == f"ready are 1 of {PLAIN}"
    assert sum(PLAIN in line for line in lines) == 4
    assert "\x1b]" not in output.getvalue()


def test_a_style_brings_no_link() -> None:
    console, output = _console()
    console.print(Text("digits", style=Style(bold=True, link="a\x1b]0;c\x07")))
    assert output.getvalue() == "\x1b[1mdigits\x1b[0m\n"


@pytest.mark.parametrize("kind", ["levels", "full", "waiting"])
def test_what_keeps_material_ready_is_told_as_it_is(kind: str) -> None:
    console, output = _console()
    level = Level(NAME, 1, 2)
    error = PrivetError(f"no {NAME}") if kind == "waiting" else None
    prepare._print_entry(
        console, LevelEvent(kind, (level,), 3, NAME, 1.0, error), level, None, False
    )
    assert output.getvalue().startswith(PLAIN)
    assert error is None or f"\x1b[31mno {PLAIN}\x1b[0m" in output.getvalue()


def test_what_a_dealer_met_is_told_as_it_is() -> None:
    console, output = _console()
    dealer._show(console, Dealt("ab" * 32, error=PrivetError(NAME)), False)
    assert f"\x1b[31m{PLAIN}\x1b[0m" in output.getvalue()


def test_costs_stand_below_their_headings_where_nothing_was_prepared() -> None:
    """A client does not know its server's processors, and an offline phase of nothing took none."""
    console, output = _console()
    show.costs(console, NOTHING, PhaseCost(0.1, 10, 20, 3, 1.0))
    lines = output.getvalue().splitlines()
    columns = [line.split() for line in lines]
    assert "CPU" not in lines[0]
    assert columns[1] == ["offline", "0.000", "0", "B", "0", "B", "0", "unknown"]
    assert columns[2] == ["online", "0.100", "10", "B", "20", "B", "3", "1", "MB"]


def test_of_several_outputs_all_are_shown() -> None:
    """An autoencoder's reconstruction came as the likeliest class, and its error not at all."""
    console, output = _console()
    outputs = {"recon": np.array([[0.5, 0.25]]), "error": np.array([0.125])}
    show.prediction(console, outputs, [], probabilities=False)
    assert output.getvalue() == "recon = [[0.5  0.25]]\nerror = [0.125]\n"
