"""The Ray executor without Ray, and without a cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from privet.errors import Misuse
from privet.service.executor.ray import RayExecutor


def test_without_ray_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Misuse, match=r"pip install 'privet\[ray\]'"):
        RayExecutor(keys=tmp_path, state=tmp_path)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere"])
def test_without_a_cluster_it_says_so(address: str, tmp_path: Path) -> None:
    executor = RayExecutor(keys=tmp_path, state=tmp_path, address=address)
    with pytest.raises(Misuse, match=r"no Ray cluster|is not HOST:PORT"):
        asyncio.run(executor.start())
