"""What a client knows of its own free memory before it asks."""

from __future__ import annotations

from typing import Any, cast

import pytest

from privet.gateway import catalog
from privet.gateway.catalog import Catalog


def test_free_memory_is_looked_at_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter(range(1, 100))
    monkeypatch.setattr(catalog, "reachable_memory", lambda: next(sizes))
    instance = Catalog(cast(Any, None), None, 1 << 30)
    monkeypatch.setattr(catalog, "LOOK_SECONDS", 3600.0)
    assert [instance._free() for _ in range(3)] == [1, 1, 1]
    monkeypatch.setattr(catalog, "LOOK_SECONDS", -1.0)
    assert [instance._free() for _ in range(3)] == [2, 3, 4]
