"""Results and costs for people."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from privet.cli.console import Console
from privet.suites import Policy
from privet.suites.text import TextGrid
from privet.suites.text import size as size

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from privet.compiler.compile import Compiled
    from privet.compiler.executor.widths import Accuracy
    from privet.compiler.program import Program
    from privet.runtime import (
        DealerCost,
        Holding,
        LayerCost,
        Link,
        MemoryUse,
        PhaseCost,
    )
    from privet.suites import Mode
    from privet.suites import Progress as Listener

    Array = npt.NDArray[np.generic]

BLOCKS = " ░▒▓█"


def table(words: Sequence[str], numbers: Sequence[str], title: str | None = None) -> Table:
    """A table without lines: columns of words, then of numbers, which stand to the right."""
    grid = Table(*words, box=None, pad_edge=False, title=title)
    for name in numbers:
        grid.add_column(name, justify="right")
    return grid


def make_console() -> Console:
    """Standard output; wide enough for tables where it is not a terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def picture(console: Console, image: Array) -> None:
    """A small grey image `[1, 1, h, w]` in characters."""
    import numpy as np

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
    """The most likely class of a classifier's only output, for each sample of a batch; of any other
    model, all outputs: labels, and numbers by their names."""
    import numpy as np

    name, output = next(iter(outputs.items()))
    if batch > 1:
        for sample in range(len(output)):
            single = {title: array[sample : sample + 1] for title, array in outputs.items()}
            console.print(f"Sample {sample + 1}. ", end="")
            prediction(console, single, labels, probabilities)
        return
    others = dict(outputs)
    if output.dtype.kind in "ibUO" and output.size == 1:
        label = str(others.pop(name).ravel()[0])
        console.print(Text.assemble("Prediction: ", (label, "bold green")))
    is_row = output.dtype.kind == "f" and output.ndim == 2 and output.shape[0] == 1
    if len(outputs) > 1 or not is_row or output.size < 2:
        for other, array in others.items():
            console.print(f"{other} = {_format_array(array)}", highlight=False)
        return
    scores = np.asarray(output, dtype=float).ravel()
    if not probabilities:
        exponentials = np.exp(scores - scores.max())
        shares = exponentials / exponentials.sum()
    else:
        shares = scores
    best = int(scores.argmax())
    label = labels[best] if best < len(labels) else f"class {best}"
    console.print(
        Text.assemble(
            "Prediction: ",
            (label, "bold green"),
            f" (score {scores[best]:.4f}, probability {100 * shares[best]:.1f} %)",
        )
    )


def _format_array(array: Array) -> str:
    """Numbers or texts; a map as its likeliest entries."""
    import numpy as np

    if array.dtype != object:
        return np.array2string(np.asarray(array), precision=4, threshold=20)
    likeliest = sorted(array[0].items(), key=lambda entry: -entry[1])[:5]
    return ", ".join(f"{label}: {value:.4f}" for label, value in likeliest)


def costs(console: Console, offline: PhaseCost | None, online: PhaseCost, batch: int = 1) -> None:
    """Offline and online cost side by side, and their parts for one sample of a batch."""
    processors = () if online.cpu_seconds is None else ("CPU seconds",)
    numbers = ("seconds", *processors, "client sends", "server sends", "rounds", "peak memory")
    grid = table(("",), numbers)
    phases = {"offline": offline, "online": online}
    if offline is not None:
        phases["total"] = offline + online
    if batch > 1:
        sample_cost = _per_sample(offline + online if offline is not None else online, batch)
        phases[f"each of {batch} samples"] = sample_cost
    for name, cost in phases.items():
        if cost is None:
            grid.add_row(name, "prepared earlier")
        else:
            grid.add_row(
                name,
                f"{cost.seconds:.3f}",
                *([_processor_seconds(cost)] if processors else []),
                size(cost.bytes_client),
                size(cost.bytes_server),
                str(cost.rounds),
                f"{cost.peak_rss_mb:.0f} MB" if cost.peak_rss_mb else "unknown",
            )
    console.print(grid)
    if offline is not None and offline.bytes_setup:
        console.print(f"Before that, once: {setup(offline)}.")


def _processor_seconds(cost: PhaseCost) -> str:
    return "unknown" if cost.cpu_seconds is None else f"{cost.cpu_seconds:.3f}"


def setup(offline: PhaseCost) -> str:
    """What went before an offline phase, once for many."""
    return (
        f"{size(offline.bytes_setup)} of encrypted weights, which the client keeps, in "
        f"{offline.seconds_setup:.3f} s"
    )


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
    has_dealer = any(step.bytes_dealer or step.bytes_keys for step in steps)
    keys = ("dealer sends", "keys read") if has_dealer else ()
    numbers = ("ms", "client sends", "server sends", *keys, "rounds")
    grid = table(("phase", "layer", "step"), numbers)
    for step in steps:
        sizes = (step.bytes_dealer, step.bytes_keys) if has_dealer else ()
        grid.add_row(
            step.phase,
            step.name,
            step.operator,
            f"{1000 * step.seconds:.2f}",
            size(step.bytes_client),
            size(step.bytes_server),
            *map(size, sizes),
            str(step.rounds),
        )
    console.print(grid)


def account(console: Console, parts: Sequence[str | TextGrid]) -> None:
    """What a suite says of how it runs."""
    for part in parts:
        if isinstance(part, str):
            console.print(part, highlight=False)
            continue
        grid = table(part.words, part.numbers)
        for name in part.last:
            grid.add_column(name)
        for row in part.rows:
            grid.add_row(*row)
        console.print(grid)


def memory(console: Console, uses: Mapping[str, MemoryUse]) -> None:
    """Forecast and measured memory of each party, where a suite can forecast or limit it."""
    if all(use.forecast_mb is None for use in uses.values()):
        return
    peaks = (
        f"{party} {use.peak_mb:.0f} MB"
        + (f" (forecast {use.forecast_mb:.0f} MB)" if use.forecast_mb else " (within its limit)")
        for party, use in uses.items()
    )
    console.print(f"Peak memory: {', '.join(peaks)}.")


def dealer(console: Console, cost: DealerCost) -> None:
    """What a dealer did for one entry, beside the parties' own costs."""
    console.print(
        f"The dealer sent {size(cost.bytes_client)} to the client and {size(cost.bytes_server)} to "
        f"the server in {cost.seconds:.3f} s; its memory peaked at {cost.peak_rss_mb:.0f} MB."
    )


def holdings(console: Console, rows: Sequence[Holding]) -> None:
    """What lies ready in a state directory."""
    grid = table(("model", "suite", "program", "server"), ("ready", "on disk", "oldest"))
    for holding in rows:
        names = (holding.model, holding.suite, holding.program[:16], holding.peer[:16])
        age = f"{holding.oldest_seconds / 3600:.1f} h"
        grid.add_row(*names, str(holding.ready), size(holding.bytes), age)
    console.print(grid)


def _warned(head: str, text: str) -> Text:
    return Text.assemble((head, "bold yellow"), f" {text}")


def _warn(head: str, text: str) -> None:
    Console(stderr=True).print(_warned(head, text), soft_wrap=True)


def trust(console: Console, caution: str | None) -> None:
    """What a result rests on beyond the two parties, if anything."""
    if caution is not None:
        console.print(_warned("Weaker trust:", f"{caution}."))


def weaknesses(console: Console, mode: Mode) -> None:
    """In which ways a result promises less than one of the default mode."""
    for weakness in mode.weaknesses:
        console.print(_warned("Weaker than the default:", f"{weakness.meaning}."))


def weaknesses_fields(mode: Mode) -> dict[str, Any]:
    """The same for programs, by name."""
    return {"weaknesses": [weakness.name for weakness in mode.weaknesses]}


def policy(console: Console, accepted: Policy, suites: Iterable[str] = ()) -> None:
    """What a server accepts beyond the default, and how many answers it gives; which of the offered
    `suites` it refuses."""
    rules: dict[str, Any] = json.loads(accepted.text())
    usual: dict[str, Any] = json.loads(Policy().text())
    weaker = [
        f"{choice} {value}"
        for choice, values in rules["accepts"].items()
        for value in values
        if value not in usual["accepts"][choice]
    ]
    limit = rules["answers_per_hour"]
    modes = (
        f"accepts also {', '.join(weaker)}" if weaker else "accepts nothing weaker than the default"
    )
    often = f"{limit} answers an hour" if limit is not None else "any number of answers"
    exceptions = (
        f"; {len(rules['clients'])} clients have rules of their own" if rules["clients"] else ""
    )
    console.print(f"Policy: {modes}; {often} to a client{exceptions}.")
    if refused_suites := sorted(
        {suite.split()[0] for suite in suites} - set(rules["accepts"]["suite"])
    ):
        console.print(
            _warned(
                "Offered, but not accepted:",
                f"suite {', '.join(refused_suites)} promises less; an option of `privet serve` "
                "accepts it (--help).",
            ),
            soft_wrap=True,
        )


def warn_uncalibrated(basis: str) -> None:
    """Tells the owner of a program, on standard error, what its results will say."""
    from privet.compiler.program import caveat

    if caveat(basis) is not None:
        _warn(
            "No calibration samples:",
            "ranges were measured on random inputs, and every result will say so. Give "
            "--calibration samples.npz with some real inputs.",
        )


def quantized(console: Console, compiled: Compiled) -> None:
    """What becomes of a quantised model."""
    if compiled.quantized is not None:
        count, stated = compiled.quantized
        console.print(
            Text.assemble(
                ("Quantised model:", "bold"),
                " it runs dequantised, at the program's scales. Values leave the range of their "
                f"integers in {count} of {stated} places on calibration inputs, and are kept in it "
                "there; nothing is rounded to its own steps.",
            ),
            soft_wrap=True,
        )


def front(console: Console, program: Program) -> None:
    """What of a model clients compute before the private part, whose constants are public."""
    if program.front is not None:
        steps = ", ".join(dict.fromkeys(node.op for node in program.front.steps.nodes))
        console.print(
            Text.assemble(
                ("At the client:", "bold"),
                f" it computes {steps} on its input first, and all constants of these steps are "
                "public.",
            ),
            soft_wrap=True,
        )


def warn_inaccurate(accuracy: Accuracy) -> None:
    """Tells the owner of a program, on standard error, which layer loses accuracy, if one does."""
    if accuracy.warning is not None:
        _warn("Not accurate:", f"{accuracy.warning}.")


def warn_widened(widened: str | None) -> None:
    """Tells the owner of a program, on standard error, that its ring is wider than usual."""
    if widened is not None:
        _warn("A wide ring:", f"{widened}.")


def calibration(console: Console, basis: str) -> None:
    """What is uncertain about results of a program with this calibration, if anything is."""
    from privet.compiler.program import caveat

    if (warning := caveat(basis)) is not None:
        console.print(_warned("Not calibrated:", f"{warning}."), soft_wrap=True)


def link_fields(link: Link | None) -> dict[str, Any] | None:
    """A shaped link as an object for programs."""
    if link is None:
        return None
    return {"rtt_ms": 1000 * link.rtt, "bits_per_second": link.bits_per_second}


def steps(template: str, enabled: bool = True) -> Callable[[int, int, str, float | None], None]:
    """Prints each of several steps on standard error as it begins, by a template that may name its
    `number`, how many there are (`total`), its `name` and what is `left`."""
    stderr = Console(stderr=True, highlight=False)

    def begin(done: int, total: int, name: str, left: float | None) -> None:
        if name and enabled:
            estimate = "" if left is None else f", about {left / 60:.1f} min left"
            text = template.format(number=done + 1, total=total, name=name, left=estimate)
            stderr.print(text)

    return begin


UNIT_COSTS = "Finding this machine's unit costs, once for all plans, {number} of {total}: {name}"
CASES = "[{number}/{total}{left}] {name}"
"""Templates of `steps`."""


@contextmanager
def progress(enabled: bool) -> Iterator[Listener | None]:
    """Bars for the two phases on standard error, drawn at most ten times a second; None if not
    enabled."""
    if not enabled:
        yield None
        return
    columns = (
        TextColumn("{task.description:8}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[step]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}
        last_draw = 0.0

        def listen(phase: str, done: int, total: int, step: str) -> None:
            nonlocal last_draw
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total, step=step)
            now = time.monotonic()
            if done == total or now - last_draw > 0.1:
                last_draw = now
                bars.update(tasks[phase], completed=done, step=step)

        yield listen
