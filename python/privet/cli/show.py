"""Results and costs for people."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from privet.parties import (
    DealerCost,
    Holding,
    LayerCost,
    Link,
    MemoryUse,
    PhaseCost,
)
from privet.parties.client import Progress as Listener
from privet.program import caveat
from privet.suites import Mode, Policy

Array = npt.NDArray[np.generic]

BLOCKS = " ░▒▓█"


def table(words: Sequence[str], numbers: Sequence[str], title: str | None = None) -> Table:
    """A table without lines: columns of words, then of numbers, which stand to the right."""
    made = Table(box=None, pad_edge=False, title=title)
    for name in words:
        made.add_column(name)
    for name in numbers:
        made.add_column(name, justify="right")
    return made


def make_console() -> Console:
    """Standard output; wide enough for tables where it is not a terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def picture(console: Console, image: Array) -> None:
    """A small grey image `[1, 1, h, w]` in characters."""
    plane = np.asarray(image, dtype=float)[0, 0]
    levels = np.rint(np.clip(plane, 0, 1) * (len(BLOCKS) - 1)).astype(int)
    for row in levels:
        console.print("   " + "".join(BLOCKS[level] * 2 for level in row), highlight=False)


def prediction(
    console: Console,
    outputs: Mapping[str, Array],
    labels: Sequence[str],
    probabilities: bool,
    batch: int = 1,
) -> None:
    """The most likely class of a classifier's first output, for each sample of a batch; any other
    output as numbers."""
    name, output = next(iter(outputs.items()))
    if batch > 1:
        for sample in range(len(output)):
            single = {name: output[sample : sample + 1]}
            console.print(f"Sample {sample + 1}. ", end="")
            prediction(console, single, labels, probabilities)
        return
    scores = np.asarray(output, dtype=float).ravel()
    if output.ndim != 2 or output.shape[0] != 1 or output.shape[1] < 2:
        shown = np.array2string(np.asarray(output), precision=4, threshold=20)
        console.print(f"{name} = {shown}", highlight=False)
        return
    if not probabilities:
        exponentials = np.exp(scores - scores.max())
        shares = exponentials / exponentials.sum()
    else:
        shares = scores
    best = int(scores.argmax())
    label = labels[best] if best < len(labels) else f"class {best}"
    console.print(
        f"Prediction: [bold green]{label}[/] (score {scores[best]:.4f}, "
        f"probability {100 * shares[best]:.1f} %)",
        highlight=False,
    )


def costs(console: Console, offline: PhaseCost | None, online: PhaseCost, batch: int = 1) -> None:
    """Offline and online cost side by side, and their parts for one sample of a batch."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    computed = online.cpu_seconds is not None
    processors = ("CPU seconds",) if computed else ()
    for title in ("seconds", *processors, "client sends", "server sends", "rounds", "peak memory"):
        table.add_column(title, justify="right")
    phases = {"offline": offline, "online": online}
    if offline is not None:
        phases["total"] = offline + online
    if batch > 1:
        each = _per_sample(offline + online if offline is not None else online, batch)
        phases[f"each of {batch} samples"] = each
    for name, cost in phases.items():
        if cost is None:
            table.add_row(name, "prepared earlier")
        else:
            table.add_row(
                name,
                f"{cost.seconds:.3f}",
                *([] if cost.cpu_seconds is None else [f"{cost.cpu_seconds:.3f}"]),
                size(cost.bytes_client),
                size(cost.bytes_server),
                str(cost.rounds),
                f"{cost.peak_rss_mb:.0f} MB" if cost.peak_rss_mb else "unknown",
            )
    console.print(table)


def per_sample(batch: int, **phases: PhaseCost | None) -> dict[str, Any] | None:
    """Seconds and bytes of each phase for one sample of a batch; None without a batch."""
    if batch == 1:
        return None
    parts = {name: _per_sample(cost, batch) if cost else None for name, cost in phases.items()}
    fields = ("seconds", "bytes_client", "bytes_server", "bytes_dealer")
    return {
        name: {field: getattr(cost, field) for field in fields} if cost else None
        for name, cost in parts.items()
    }


def _per_sample(cost: PhaseCost, batch: int) -> PhaseCost:
    """A sample's part of what a batch shares; rounds and memory are the batch's."""
    return replace(
        cost,
        seconds=cost.seconds / batch,
        bytes_client=cost.bytes_client // batch,
        bytes_server=cost.bytes_server // batch,
        bytes_dealer=cost.bytes_dealer // batch,
        cpu_seconds=None if cost.cpu_seconds is None else cost.cpu_seconds / batch,
    )


def layers(console: Console, steps: Sequence[LayerCost]) -> None:
    """Cost of every step that took time or traffic."""
    table = Table(box=None, pad_edge=False)
    for title in ("phase", "layer", "step"):
        table.add_column(title)
    dealt = any(step.bytes_dealer or step.bytes_keys for step in steps)
    keys = ("dealer sends", "keys read") if dealt else ()
    for title in ("ms", "client sends", "server sends", *keys, "rounds"):
        table.add_column(title, justify="right")
    for step in steps:
        sizes = (step.bytes_dealer, step.bytes_keys) if dealt else ()
        table.add_row(
            step.phase,
            step.name,
            step.operator,
            f"{1000 * step.seconds:.2f}",
            size(step.bytes_client),
            size(step.bytes_server),
            *map(size, sizes),
            str(step.rounds),
        )
    console.print(table)


def rounds(depth: str | None, link: Link | None, chosen: bool) -> str:
    """The depth of comparisons, whether it was chosen here, and the shaped link if there is one."""
    text = f"{depth} rounds" + (" (chosen)" if chosen else "") if depth else "by keys"
    return text if link is None else f"{text} over a link of {_link(link)}"


def memory(console: Console, uses: Mapping[str, MemoryUse]) -> None:
    """Forecast and measured memory of each party."""
    told = (
        f"{party} {use.peak_mb:.0f} MB"
        + (f" (forecast {use.forecast_mb:.0f} MB)" if use.forecast_mb else " (within its limit)")
        for party, use in uses.items()
    )
    console.print(f"Peak memory: {', '.join(told)}.")


def homomorphic(console: Console, plan: Mapping[str, Any], program_hash: str) -> None:
    """The parameters and the packing of suite `ckks`, on two lines."""
    chosen = plan["parameters"]
    console.print(
        f"Suite ckks, ring of degree 2^{chosen['log_n']}, modulus of "
        f"{plan['log_qp']:g} bits (at most {plan['log_qp_limit']:g} are secure), scale 2^"
        f"{chosen['scale_bits']}, {chosen['depth']} levels; program {program_hash[:16]}."
    )
    room = f"{plan['batch']} sample{'s' if plan['batch'] > 1 else ''}"
    runs = f", in {plan['groups']} runs" if plan["groups"] > 1 else ""
    loading = plan.get("loading_cpu_seconds")
    loaded = f" The server took {loading:.2f} CPU seconds to load the model." if loading else ""
    console.print(f"{plan['keys']} evaluation keys; room for {room} in a ciphertext{runs}.{loaded}")


def stream(console: Console, plan: Mapping[str, Any], program_hash: str) -> None:
    """What an inference in suite `stream` takes, on two or three lines."""
    bits = plan["key_bits"]
    cipher = "BFV" if bits is None else f"Paillier with keys of {bits} bits"
    console.print(
        f"Suite stream, {cipher}, {plan['exchanges']} exchanges of permuted values; "
        f"program {program_hash[:16]}."
    )
    sent = size(plan["online_bytes_client"]), size(plan["online_bytes_server"])
    hides, opens = ("masks", "opens") if bits is None else ("encrypts", "decrypts")
    console.print(
        f"The client {hides} {plan['encryptions']:,} values ({sent[0]}) and {opens} "
        f"{plan['decryptions']:,} ({sent[1]})."
    )
    if bits is None:
        ahead = size(plan["offline_bytes_client"]), size(plan["offline_bytes_server"])
        console.print(f"Ahead of time the client sends {ahead[0]} and the server {ahead[1]}.")


def packing(console: Console, plan: Mapping[str, Any]) -> None:
    """How suite `ckks` packs and computes each layer, and what that takes."""
    table = Table(box=None, pad_edge=False)
    for title in ("layer", "computes", "packing"):
        table.add_column(title)
    for title in ("ciphertexts", "level", "products", "rotations"):
        table.add_column(title, justify="right")
    refreshed = plan["refreshes"] > 0
    if refreshed:
        table.add_column("refreshed")
    for layer in plan["layers"]:
        counts = (layer[key] for key in ("ciphertexts", "level", "products", "rotations"))
        row = (layer["name"], layer["operator"], layer["packing"], *map(str, counts))
        table.add_row(*row, *([layer["refresh"]] if refreshed else []))
    console.print(table)
    if refreshed:
        console.print(
            f"{plan['refreshes']} ciphertexts are refreshed, each from level {plan['floor']}: "
            "arguments after their linear layer, values after all of their layer."
        )
    if "members" in plan:
        _cohort(console, plan)
        return
    console.print(
        f"{_between_two(plan)}; memory {size(plan['memory_bytes_client'])} at the client, "
        f"{size(plan['memory_bytes_server'])} at the server."
    )


def _between_two(plan: Mapping[str, Any]) -> str:
    """What client and server of suite `ckks` send: keys and data, or an encrypted model and masked
    values."""
    sent, back = size(plan["online_bytes_client"]), size(plan["online_bytes_server"])
    if ahead := plan["offline_bytes_server"]:
        return (
            f"The server sends {size(ahead)} of keys and model once, then the client {sent} of "
            f"masked values for {back}"
        )
    ahead = size(plan["offline_bytes_client"])
    return f"The client sends {ahead} of keys once, then {sent} of data for {back} of results"


def _cohort(console: Console, plan: Mapping[str, Any]) -> None:
    """What the parties of a cohort send and hold."""
    console.print(
        f"Each of {plan['members']} members sends {size(plan['member_bytes'])}, the model's owner "
        f"{size(plan['model_bytes'])} more; the client sends {size(plan['online_bytes_client'])} "
        f"for {size(plan['online_bytes_server'])} of results; memory "
        f"{size(plan['memory_bytes_server'])} at the coordinator."
    )


def dealer(console: Console, cost: DealerCost) -> None:
    """What a dealer did for one piece, beside the parties' own costs."""
    console.print(
        f"The dealer sent {size(cost.bytes_client)} to the client and {size(cost.bytes_server)} to "
        f"the server in {cost.seconds:.3f} s; its memory peaked at {cost.peak_rss_mb:.0f} MB."
    )


def holdings(console: Console, held: Sequence[Holding]) -> None:
    """What lies ready in a state directory."""
    table = Table(box=None, pad_edge=False)
    for title in ("model", "suite", "program", "server"):
        table.add_column(title)
    for title in ("ready", "on disk", "oldest"):
        table.add_column(title, justify="right")
    for it in held:
        names = (it.model, it.suite, it.program[:16], it.peer[:16])
        age = f"{it.oldest_seconds / 3600:.1f} h"
        table.add_row(*names, str(it.ready), size(it.bytes), age)
    console.print(table)


def trust(console: Console, caution: str | None) -> None:
    """What a result rests on beyond the two parties, if anything."""
    if caution is not None:
        console.print(f"[bold yellow]Weaker trust:[/] {caution}.")


def weaknesses(console: Console, mode: Mode) -> None:
    """In which ways a result promises less than one of the default mode."""
    for weakness in mode.weaknesses:
        console.print(f"[bold yellow]Weaker than the default:[/] {weakness.meaning}.")


def weaknesses_fields(mode: Mode) -> dict[str, Any]:
    """The same for programs, by name."""
    return {"weaknesses": [weakness.name for weakness in mode.weaknesses]}


def policy(console: Console, accepted: Policy) -> None:
    """What a server accepts beyond the default, and how many answers it gives."""
    rules: dict[str, Any] = json.loads(accepted.text())
    usual: dict[str, Any] = json.loads(Policy().text())
    more = [
        f"{choice} {value}"
        for choice, values in rules["accepts"].items()
        for value in values
        if value not in usual["accepts"][choice]
    ]
    limit = rules["answers_per_hour"]
    told = f"accepts also {', '.join(more)}" if more else "accepts nothing weaker than the default"
    often = f"{limit} answers an hour" if limit is not None else "any number of answers"
    own = f"; {len(rules['clients'])} clients have rules of their own" if rules["clients"] else ""
    console.print(f"Policy: {told}; {often} to a client{own}.")


def warn_uncalibrated(basis: str) -> None:
    """Tells the owner of a program, on standard error, what its results will say."""
    if caveat(basis) is not None:
        Console(stderr=True).print(
            "[bold yellow]No calibration samples:[/] ranges were measured on random inputs, and "
            "every result will say so. Give --calibration samples.npz with some real inputs.",
            soft_wrap=True,
        )


def calibration(console: Console, basis: str) -> None:
    """What is uncertain about results of a program with this calibration, if anything is."""
    if (warning := caveat(basis)) is not None:
        console.print(f"[bold yellow]Not calibrated:[/] {warning}.", soft_wrap=True)


def _link(link: Link) -> str:
    rtt, rate = 1000 * link.rtt, link.bits_per_second / 1e6
    return f"{rtt:g} ms there and back and {rate:g} Mbit/s each way"


def link_fields(link: Link | None) -> dict[str, Any] | None:
    """A shaped link as an object for programs."""
    if link is None:
        return None
    return {"rtt_ms": 1000 * link.rtt, "bits_per_second": link.bits_per_second}


def size(count: int) -> str:
    """Bytes with a unit of three decimal orders."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"


@contextmanager
def progress(console: Console, enabled: bool) -> Iterator[Listener | None]:
    """Bars for the two phases, drawn at most ten times a second; None if not enabled."""
    if not enabled:
        yield None
        return
    columns = (
        TextColumn("{task.description:8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[step]}"),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}
        drawn = 0.0

        def listen(phase: str, done: int, total: int, step: str) -> None:
            nonlocal drawn
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total, step=step)
            now = time.monotonic()
            if done == total or now - drawn > 0.1:
                drawn = now
                bars.update(tasks[phase], completed=done, step=step)

        yield listen
