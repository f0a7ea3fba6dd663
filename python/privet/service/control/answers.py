"""The JSON schemas of good answers, for the OpenAPI document; tests hold real answers to them."""

from __future__ import annotations

from typing import Any

from privet.compiler.program.public import CALIBRATIONS
from privet.suites import names

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number", "minimum": 0}
FLAG: Schema = {"type": "boolean"}


def several(each: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": each}


def maybe(one: Schema) -> Schema:
    """Something, or null."""
    return {"anyOf": [one, {"type": "null"}]}


def words(*choices: str) -> Schema:
    """One of several words."""
    return {"type": "string", "enum": list(choices)}


def fields(open: bool = False, **properties: Schema) -> Schema:
    """An object with these fields, and no others unless it is `open`."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": open,
    }


TENSOR = fields(name=TEXT, datatype=TEXT, shape=several({"type": "integer"}))

MODEL = fields(
    name=TEXT,
    versions=several(TEXT),
    platform=TEXT,
    inputs=several(TENSOR),
    outputs=several(TENSOR),
    privet=fields(
        version=TEXT,
        description=TEXT,
        labels=several(TEXT),
        features=several(TEXT),
        program=TEXT,
        batch=COUNT,
        ring_bits=COUNT,
        scale_bits=COUNT,
        calibration=words(*CALIBRATIONS),
        client_side=several(TEXT),
        magnitudes={"type": "object", "additionalProperties": SECONDS},
        input_range=maybe(several({"type": "number"})),
        suites=several(
            fields(
                suite=words(*names()),
                security=words("semi-honest", "malicious"),
                rounds=several(TEXT),
                trust=maybe(TEXT),
            )
        ),
        operations=several(fields(op=TEXT, name=TEXT, shape=several({"type": "integer"}))),
        stock={"type": "object", "additionalProperties": COUNT},
    ),
)

MODELS = fields(
    models=several(
        fields(True, name=TEXT, version=maybe(TEXT), suites=several(TEXT), ready=FLAG),
    )
)

GO = fields(
    job=TEXT,
    phase=words("prepare", "infer", "fetch"),
    host=TEXT,
    port=COUNT,
    server_name=TEXT,
    program=TEXT,
    suite=TEXT,
    material=maybe(TEXT),
    samples=COUNT,
    grace=SECONDS,
    seconds=SECONDS,
    dealer=maybe(TEXT),
)

JOB = fields(
    id=TEXT,
    kind=words("notice", "request", "ahead", "session", "fetch"),
    model=TEXT,
    version=COUNT,
    program=TEXT,
    suite=words(*names()),
    security=words("semi-honest", "malicious"),
    rounds=maybe(TEXT),
    truncation=TEXT,
    correlations=TEXT,
    field=TEXT,
    linear=TEXT,
    encrypts=maybe(TEXT),
    transfers=maybe(TEXT),
    cipher=maybe(TEXT),
    key_bits=maybe(COUNT),
    calibration=words(*CALIBRATIONS),
    samples=COUNT,
    notice=maybe(TEXT),
    state=words("queued", "preparing", "prepared", "inferring", "fetching", "ended"),
    done=COUNT,
    go=several(GO),
    outcome=maybe(words("done", "failed", "cancelled", "timed out")),
    reason=TEXT,
    sequence=COUNT,
)

SUBMITTED = fields(id=TEXT, state=TEXT, sequence=COUNT)
UPDATES = fields(sequence=COUNT, jobs=several(JOB))
REQUESTED: Schema = {**SUBMITTED, "properties": {**SUBMITTED["properties"], "news": UPDATES}}
ERROR = fields(error=TEXT, reason=TEXT)
STATE: Schema = {"type": "object"}
