"""The tables of docs/reference/security-parameters.md: the keys of all models that suite `ckks`
runs, from their plans, and BFV's parameters, with estimates of `scripts/lattice.py`.

`python -m scripts.security_tables` writes them between the page's markers; a test compares. BFV's
parameters themselves are compared by a test of `crates/bfv`, which says what they should be.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.lattice import Lwe, estimate

from privet import suites, zoo
from privet.compiler.compile import compile

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "security-parameters.md"
DIGITS = ROOT / "zoo" / "models" / "digits-smooth"

DATA, MODEL, BOTH = "encrypted-data", "encrypted-model", "collective"
MODELS = {
    "nn5": (DATA, MODEL, BOTH),
    "mlp-square": (DATA, MODEL, BOTH),
    "digits:silu": (DATA, MODEL, BOTH),
    "m1-silu": (DATA, MODEL, BOTH),
    "mnist-1": (DATA,),
    "nn20": (DATA, MODEL, BOTH),
    "nn50": (DATA, MODEL, BOTH),
    "resnet20": (BOTH,),
}
"""Models of the zoo, or of `zoo/models/digits-smooth`, and the scenarios that they are shown in."""

BFV_DEVIATION = 10.5**0.5


def plans(models: Iterable[str] = MODELS) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        for name in models:
            kind, _, activation = name.partition(":")
            path = DIGITS / f"{activation}.onnx" if activation else zoo.build(kind, Path(folder))
            widths = suites.Ckks.precision
            public = compile(path, **vars(widths), input_range=(0, 1)).program.to_public_bytes()
            for scenario in MODELS[name]:
                flooding = "light" if scenario == DATA else "statistical"
                yield name, scenario, suites.plan_ckks(public, scenario, flooding, 3)


@dataclass(frozen=True)
class Sample:
    """What of a key matters to an attacker."""

    log_n: int
    secret: str
    weight: int
    log_q: float
    log_p: float
    limit: float

    def row(self) -> str:
        """The columns of the table from the dimension on."""
        lwe = Lwe(1 << self.log_n, self.log_q + self.log_p, self.weight or None)
        security = estimate(lwe)
        return (
            f"2^{self.log_n} | {self.secret} | {self.log_q:g} | {self.log_p:g} | "
            f"{self.log_q + self.log_p:g} | {self.limit:g} | {format_bits(security.bits)} |"
        )


def format_bits(bits: float) -> str:
    """An estimate; far beyond what is needed nobody looks at it closely."""
    return "> 256" if bits > 256 else f"{bits:.0f}"


def ckks_rows(plans: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """One line for each model, scenario and kind of samples."""
    rows = [
        "| Model | Scenario | Sent | Dimension | Secret | log q | log P | Sum | Limit | Bits |",
        "|---|---|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for model, scenario, plan in plans:
        names: dict[Sample, list[str]] = {}
        for key in plan["security"]["keys"]:
            fields = {name: key[name] for name in ("log_n", "secret", "weight", "log_q", "log_p")}
            names.setdefault(Sample(**fields, limit=key["limit_log_qp"]), []).append(key["name"])
        for sample, keys in names.items():
            rows.append(f"| {model} | {scenario} | {'; '.join(keys)} | {sample.row()}")
    return rows


def bfv_rows(block: str) -> list[str]:
    """The same table with current estimates, which are in its last column."""
    rows = block.strip().splitlines()
    table = rows[:2]
    for row in rows[2:]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        lwe = Lwe(int(cells[4]), float(cells[5]), deviation=BFV_DEVIATION)
        table.append(f"| {' | '.join(cells[:-1])} | {format_bits(estimate(lwe).bits)} |")
    return table


def rendered(page: str, plans: Iterable[tuple[str, str, Mapping[str, Any]]]) -> str:
    """The page with current tables."""

    def fill(name: str, text: str, rows: list[str]) -> str:
        block = f"<!-- {name} -->\n" + "".join(f"{row}\n" for row in rows) + "<!-- end -->"
        return re.sub(
            rf"<!-- {name} -->\n.*?<!-- end -->", lambda _: block, text, count=1, flags=re.DOTALL
        )

    bfv = re.search(r"<!-- bfv -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert bfv is not None, "the page has lost a marker"
    return fill("bfv", fill("ckks", page, ckks_rows(plans)), bfv_rows(bfv.group(1)))


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), plans()), encoding="utf-8")
