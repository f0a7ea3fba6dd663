"""Pages and the OpenAPI document, read and made once."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any

from privet.serve.control import openapi
from privet.serve.control.calls import Route

_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


class Pages:
    """What is shown to browsers: files of the package `privet.serve.page`, and documentation."""

    def __init__(self, routes: Iterable[Route], version: str) -> None:
        self.openapi: dict[str, Any] = openapi.document(routes, version)
        self.documentation = openapi.page(self.openapi)
        self._files = {
            entry.name: (kind, entry.read_text(encoding="utf-8"))
            for entry in resources.files("privet.serve.page").iterdir()
            for suffix, kind in _KINDS.items()
            if entry.name.endswith(suffix)
        }

    def file(self, name: str) -> tuple[str, str] | None:
        """Content type and text of a file; None if there is none."""
        return self._files.get(name)
