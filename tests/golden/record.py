"""Golden records: what runs must go on giving while the code behind them moves.

    python -m tests.golden.record                    # every case again
    python -m tests.golden.record gmw                # those of one file
    python -m tests.golden.record "breast-mlp: log"  # one case

A record that changes is a change of outputs, of bytes or of labels on the wire: say in the commit
why that is meant.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from tests.golden.cases import CASES, FILES, Case, plan_of, start

from privet import suites
from privet.runtime import LayerCost, PhaseCost

FOLDER = Path(__file__).parent
Record = dict[str, Any]


def observe(case: Case) -> Record:
    """Runs a case and says what must not change."""
    run = start(case)
    return {
        "mode": {name: value for name, value in asdict(run.mode).items() if value is not None},
        "weaknesses": [weakness.name for weakness in run.weaknesses],
        "rounds": run.config.facts()["rounds"],
        "extension": run.extension,
        "parties": run.config.facts()["parties"],
        "outputs": {name: np.ravel(array).tolist() for name, array in run.outputs.items()},
        "offline": _phase(run.offline),
        "online": _phase(run.online),
        "dealer": [run.dealer.bytes_client, run.dealer.bytes_server] if run.dealer else None,
        "layers": [_layer(layer) for layer in run.layers],
        "plan": _counts(run.plan),
    } | expect(case)


def expect(case: Case) -> Record:
    """What a plan says before anything runs: the label of material, widths, forecast."""
    plan = plan_of(case)
    if plan is None:
        return {}
    return {
        "label": plan.suite,
        "material": plan.entry_bytes(),
        "widths": plan.widths(),
        "forecast": _counts(asdict(suites.forecast(plan))),
    }


def _phase(cost: PhaseCost) -> list[int]:
    return [cost.bytes_client, cost.bytes_server, cost.rounds]


def _layer(cost: LayerCost) -> list[str | int]:
    traffic = (cost.bytes_client, cost.bytes_server, cost.rounds, cost.bytes_keys)
    return [cost.phase, *traffic]


def _counts(value: Any) -> Any:
    """What is counted: neither words, nor seconds, nor memory, which depends on cores."""
    if isinstance(value, dict):
        return {
            key: _counts(item)
            for key, item in value.items()
            if not (isinstance(item, float | str) or key.startswith("memory"))
        }
    return [_counts(item) for item in value] if isinstance(value, list | tuple) else value


def read(file: str) -> dict[str, Record]:
    """The records in a file, by the cases' keys."""
    path = FOLDER / f"{file}.json"
    records: dict[str, Record] = json.loads(path.read_text()) if path.exists() else {}
    return records


def write(file: str, records: dict[str, Record]) -> None:
    """Writes a file with one line for each field of a record."""
    blocks = []
    for key, record in records.items():
        fields = (
            f"  {json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}"
            for name, value in record.items()
        )
        blocks.append(f" {json.dumps(key)}: {{\n" + ",\n".join(fields) + "\n }")
    (FOLDER / f"{file}.json").write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def main(names: Sequence[str]) -> None:
    """Records the cases that are named, by file or by key; all without a name."""
    for file in FILES:
        cases = [case for case in CASES if case.file == file]
        records = read(file)
        for case in cases:
            if not names or file in names or case.key in names:
                records[case.key] = observe(case)
                sys.stdout.write(f"{file}, {case.key}\n")
                write(
                    file, {entry.key: records[entry.key] for entry in cases if entry.key in records}
                )


if __name__ == "__main__":
    main(sys.argv[1:])
