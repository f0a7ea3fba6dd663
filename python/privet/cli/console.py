"""Where commands print."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from privet.errors import STEERING


class Console(RichConsole):
    """A console of `rich` that prints no character that steers a terminal but its own: names,
    labels and errors may come from a peer."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What is printed, piece by piece."""
        for piece in super().render(renderable, options):
            if piece.control:
                yield piece
            else:
                yield Segment(piece.text.translate(STEERING), piece.style)
