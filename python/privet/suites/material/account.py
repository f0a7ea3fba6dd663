"""What suites with material say to people of their plans."""

from __future__ import annotations

from privet._native import Link
from privet.compiler.program.public import Program
from privet.suites.material.planning import Forecast
from privet.suites.text import Grid, over, size

ROWS = (
    ("sends offline", "offline_bytes"),
    ("gets from the dealer", "dealer_bytes"),
    ("sends online", "online_bytes"),
    ("stores", "material_bytes"),
    ("needs memory", "memory_bytes"),
)


def account(
    program: Program, found: Forecast, comparisons: str, link: Link | None, delay: float | None
) -> tuple[str | Grid, ...]:
    """What an inference takes: correlations, traffic of each party, rounds, and how it compares."""
    facts: list[str | Grid] = [
        "One inference takes:" if program.batch == 1 else f"A batch of {program.batch} takes:",
        *(f"  {count:,} {kind.replace('_', ' ')}" for kind, count in found.correlations.items()),
        _traffic(found, program.batch),
    ]
    if found.refill is not None:
        more = found.refill
        facts.append(
            f"Unprepared, it takes {size(more.bytes_client)} and {size(more.bytes_server)} more "
            f"online, in {more.rounds} rounds, for correlations in {more.chunks} chunks."
        )
    made = f"by OT ({found.extension})" if found.extension else "by a dealer"
    facts.append(f"{found.online_rounds} online rounds; correlations are made {made}.")
    facts.append(f"Comparisons: {comparisons}{over(link)}.")
    if delay is not None:
        facts.append(f"The link adds {delay:.3f} s online.")
    return tuple(facts)


def _traffic(found: Forecast, samples: int) -> Grid:
    parties = ("client", "server")
    rows = []
    for title, field in ROWS:
        if field == "dealer_bytes" and found.extension is not None:
            continue
        counts = [getattr(found, f"{field}_{party}") for party in parties]
        shared = samples > 1 and field != "memory_bytes"
        each = [count // samples for count in counts if shared]
        blank = () if shared or samples == 1 else ("", "")
        rows.append((title, *map(size, counts + each), *blank))
    more = tuple(f"{party}, per sample" for party in parties if samples > 1)
    return Grid(("",), (*parties, *more), tuple(rows))


def ciphertexts(found: Forecast) -> tuple[str, ...]:
    """The ciphertexts of each linear layer."""
    return tuple(f"{layer.name} ({layer.operator}): {layer.layout}" for layer in found.linear)
