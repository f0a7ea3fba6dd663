"""Pages and the OpenAPI document, read and made once."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

from privet.service.control import openapi
from privet.service.control.calls import Route
from privet.suites import module_paths

_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


@dataclass(frozen=True)
class Module:
    """The client of suite `ckks` for browsers: WebAssembly, plain and as gzip, and its script."""

    code: bytes
    compressed: bytes
    script: str


class Pages:
    """What is shown to browsers: files of the package `privet.service.page`, and documentation."""

    def __init__(self, routes: Iterable[Route], version: str) -> None:
        self.openapi: dict[str, Any] = openapi.document(routes, version)
        self.documentation = openapi.page(self.openapi)
        self._files = {
            entry.name: (kind, entry.read_text(encoding="utf-8"))
            for entry in resources.files("privet.service.page").iterdir()
            for suffix, kind in _KINDS.items()
            if entry.name.endswith(suffix)
        }

    def module(self) -> Module:
        """The client for browsers, read when it is first asked for.

        # Errors
        `Misuse` if it is not installed.
        """
        return self._module

    @cached_property
    def _module(self) -> Module:
        module, script = module_paths()
        code = module.read_bytes()
        return Module(code, gzip.compress(code), script.read_text(encoding="utf-8"))

    def file(self, name: str) -> tuple[str, str] | None:
        """Content type and text of a file; None if there is none."""
        return self._files.get(name)
