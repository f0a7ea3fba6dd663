"""A page of research: findings first, each above its figure; then tables that fold, more figures,
and sources last. One HTML file that needs nothing else, for screens from 375 pixels on."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import vl_convert

STYLE = """:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;max-width:1000px;margin:1em auto;padding:0 1em;
color:#1c1c1c;background:#fff}
h1{font-size:1.5em;line-height:1.2}h2{font-size:1.2em;margin-top:2em}
.wide{overflow:auto;max-height:75vh}table{border-collapse:collapse;font-size:.85em;white-space:nowrap}
td,th{padding:.15em .6em;text-align:right}th{border-bottom:1px solid #888}
td:first-child,th:first-child,td:nth-child(2),th:nth-child(2){text-align:left}
.finding{font-size:1.15em;margin-top:1.5em}summary{cursor:pointer;padding:.3em 0}
p,figcaption,summary{overflow-wrap:anywhere}
figure{margin:1em 0}figure svg{max-width:100%;height:auto}figcaption{color:#555;font-size:.9em}
.measured{background:#e8f1e4}.predicted{background:#eaf0f8}.paper{background:#f6efdf}
.key span{padding:.1em .5em;margin-right:.5em}"""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: `kind` is `measured`, `predicted`, `paper` or empty."""

    key: str
    title: str
    kind: str = ""


def columns(kind: str, **titles: str) -> tuple[TableColumn, ...]:
    """Columns of one kind by their keys."""
    return tuple(TableColumn(key, title, kind) for key, title in titles.items())


@dataclass
class Page:
    """A page as it grows, part by part; `legend` says what kinds of columns are, by their name."""

    title: str
    legend: Mapping[str, str]
    parts: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self.parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, text: str) -> None:
        self.parts.append(f"<p>{html.escape(text)}</p>")

    def finding(self, text: str) -> None:
        self.parts.append(f"<p class=finding>{html.escape(text)}</p>")

    def table(
        self, name: str, title: str, columns: Sequence[TableColumn], rows: Iterable[dict[str, Any]]
    ) -> None:
        """A table that is folded away and scrolls sideways on a narrow screen; empty columns are
        left out."""
        filled = list(rows)
        visible = [
            column for column in columns if any(row.get(column.key) is not None for row in filled)
        ]
        head = "".join(
            f'<th class="{column.kind}">{html.escape(column.title)}</th>' for column in visible
        )
        body = "".join(
            "<tr>"
            + "".join(
                f'<td class="{column.kind}">{cell(row.get(column.key))}</td>' for column in visible
            )
            + "</tr>"
            for row in filled
        )
        self.parts.append(
            f'<details id="{name}"><summary>{html.escape(title)}</summary><div class=wide '
            f'tabindex=0 role=group aria-label="{html.escape(title)}"><table><thead><tr>{head}</tr>'
            f"</thead><tbody>{body}</tbody></table></div></details>"
        )

    def figure(self, name: str, chart: alt.TopLevelMixin, caption: str) -> None:
        svg = vl_convert.vegalite_to_svg(chart.to_dict())
        self.parts.append(
            f'<figure id="{name}">{svg}<figcaption>{html.escape(caption)}</figcaption></figure>'
        )

    def render(self) -> str:
        kinds = (f"<span class={kind}>{text}</span>" for kind, text in self.legend.items())
        key = f"<p class=key>{''.join(kinds)}</p>"
        head = (
            "<!doctype html><html lang=en><meta charset=utf-8>"
            '<meta name=viewport content="width=device-width,initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{STYLE}</style>"
            f"<main><h1>{html.escape(self.title)}</h1>"
        )
        return head + key + "\n".join(self.parts) + "</main>\n"


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else html.escape(str(value))
