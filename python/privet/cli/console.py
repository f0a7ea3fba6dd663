"""Where commands print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from privet.errors import STEERING


class Console(RichConsole):
    """A console of `rich` that prints no character that steers a terminal but its own, and reads no
    markup: names, labels and errors may come from a peer. Styles are in `Text`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, **settings)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What is printed, segment by segment."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                # A link's address is printed as it is, between letters that steer.
                style = segment.style and segment.style.update_link(None)
                yield Segment(segment.text.translate(STEERING), style)
