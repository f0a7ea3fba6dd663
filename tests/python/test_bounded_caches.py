"""Options that a client may vary as it likes fill no cache without bound."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.attacks.scene import small_model

from privet import suites
from privet.compiler.compile import Compiled
from privet.errors import PrivetError
from privet.gateway.calls import Calls
from privet.gateway.catalog import MOST_OFFERS, Catalog
from privet.gateway.model import MOST_PLANS, Terms
from privet.service.repository import ModelConfig
from privet.service.repository.version import load_version

TIMES = 2000
"""How often each option is varied."""

GMW = ("gmw", "semi-honest")
FSS = ("fss", "semi-honest")
MALICIOUS = ("fss", "malicious")

KNOWN = {
    "suite": ("gmw", "fss"),
    "security": ("semi-honest", "malicious"),
    "rounds": ("linear", "log", "wide"),
    "truncation": ("exact", "one-bit"),
    "correlations": ("parties", "dealer"),
}
"""What each option may be; a client may write anything else."""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


def wishes() -> Iterator[dict[str, str | None]]:
    """Each option in thousands of ways, beside all ways that the others may be."""
    for name in KNOWN:
        others = {other: values for other, values in KNOWN.items() if other != name}
        settings = itertools.cycle(itertools.product(*others.values()))
        for number, setting in zip(range(TIMES), settings, strict=False):
            value = f"{KNOWN[name][0]}{' ' * (number % 3)}{number}"
            yield {name: value, **dict(zip(others, setting, strict=True))}
    for wish in itertools.product(*((None, *values) for values in KNOWN.values())):
        yield dict(zip(KNOWN, wish, strict=True))


def test_a_service_plans_what_there_is_and_no_more(compiled: Compiled, tmp_path: Path) -> None:
    compiled.save(tmp_path)
    config = ModelConfig(suites=("gmw", "fss"), options={"rounds": KNOWN["rounds"]})
    version = load_version("small", 1, tmp_path, config, dealer=True)
    count = 0
    for wish in wishes():
        with contextlib.suppress(PrivetError):
            version.ask(wish)
            count += 1
    # Depths, truncations and sources of suite `gmw`; truncations of both kinds of `fss`.
    assert 8 <= len(version._choices) <= 3 * 2 * 2 + 2 * 2
    # The control: far more of these wishes than that can be planned.
    assert count > 100


class Told:
    """A service that describes one model under every name and version."""

    def __init__(self, compiled: Compiled) -> None:
        self._public = compiled.program.to_public_bytes()
        self._program = compiled.program.program_hash
        self.read = 0

    async def get(self, path: str) -> Any:
        """The description."""
        suites = [
            {"suite": suite, "security": security, "rounds": ["linear"], "trust": None}
            for suite, security in (GMW, FSS, MALICIOUS)
        ]
        facts = {"version": 1, "description": "", "program": self._program, "batch": 1}
        return {
            "name": "small",
            "versions": [1],
            "inputs": [],
            "outputs": [],
            "privet": {**facts, "suites": suites, "stock": {}},
        }

    async def get_bytes(self, path: str) -> bytes:
        """The program."""
        self.read += 1
        return self._public


def test_a_gateway_keeps_few_programs_and_few_plans_of_each(compiled: Compiled) -> None:
    service = Told(compiled)
    catalog = Catalog(cast(Calls, service), None, 1 << 40)

    async def main() -> None:
        for number in range(TIMES):
            name, version = (f"small{number}", None) if number % 2 else ("small", number)
            await catalog.offer(name, version)
        offer = await catalog.offer("small")
        count = 0
        for wish in (*wishes(), *wishes()):
            options = {name: value for name, value in wish.items() if value is not None}
            with contextlib.suppress(PrivetError):
                suite = suites.from_options(options.pop("suite", "gmw"), options)
                offer.plan(offer.resolve(Terms(suite, version=count)), None)
                count += 1
        assert count > 2 * MOST_PLANS
        assert 1 < len(offer._plans) <= MOST_PLANS

    asyncio.run(main())
    assert service.read > TIMES
    assert len(catalog._offers) == MOST_OFFERS
