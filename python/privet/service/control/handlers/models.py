"""What clients learn of models: form, suites, security, their own stock. Never a weight, a
calibration, a profile, or anything of another client."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from privet.compiler.executor.codec import describe_outputs
from privet.compiler.program import Program
from privet.service.control.calls import Answer, Call, answer, bad_request, not_found, unavailable
from privet.service.http import in_chunks
from privet.service.repository import Version
from privet.suites import Suite

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

DATATYPE = "FP64"
"""Of inputs and outputs at the client, in the protocol's words; in between they are integers."""

SHOWN = 10
"""Models that are named where a call names one that there is not."""

DATATYPES = {"integer": "INT64", "boolean": "BOOL", "text": "BYTES"}
"""Of what the head of a model makes, and its front takes."""


async def index(call: Call[Any]) -> Answer:
    """Every model and version, and whether it is served. Why it is not, only operators are told."""
    rows = [
        {
            "name": row.model,
            "version": None if row.version is None else str(row.version),
            "suites": list(row.suites),
            "ready": row.ready,
            **({"error": row.error} if call.caller.operator else {}),
        }
        for row in call.service.repository.rows()
        if row.ready or call.caller.operator
    ]
    return answer({"models": rows})


async def model(call: Call[Any]) -> Answer:
    """Metadata of a version, or of the model's newest."""
    version = find(call)
    stock = call.service.stock(call.caller.client, version)
    return answer(describe(version, call.service.repository.versions(version.model), stock))


async def ready(call: Call[Any]) -> Answer:
    """Whether a version, or any, takes new jobs."""
    version = find(call)
    if call.service.draining:
        raise unavailable("the service is shutting down", 5.0, "draining")
    return answer({"name": version.model, "version": str(version.number), "ready": True})


async def program(call: Call[Any]) -> Answer:
    """The public half of the program, byte for byte what its hash is of."""
    return in_chunks(find(call).public, "application/json")


def find(call: Call[Any], number: int | None = None) -> Version:
    """The version that the address names, or the model's newest. Raises `Refusal` 404 if it is not
    served, 503 if it may be once all are loaded, 400 if the version is no number."""
    name, text = call.path["model"], call.path.get("version")
    if text is not None and not _NUMBER.fullmatch(text):
        raise bad_request("versions are numbers from 1 on")
    number = int(text) if text is not None else number
    version = call.service.repository.version(name, number)
    if version is not None:
        return version
    if call.service.loading:
        raise unavailable(str(call.service.why_not_ready()), 5.0, "starting")
    numbers = ", ".join(str(other.number) for other in call.service.repository.versions(name))
    if numbers:
        raise not_found(f"model {name} has no version {number}; it has {numbers}")
    names = sorted({row.model for row in call.service.repository.rows() if row.ready})
    listing = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    raise not_found(
        f"there is no model {name}; served are {listing or 'none'} (GET /v2/models lists them)"
    )


def describe(version: Version, siblings: list[Version], stock: dict[str, int]) -> dict[str, Any]:
    """A version as the Open Inference Protocol tells it, and what is Privet's own."""
    program = version.program
    return {
        "name": version.model,
        "versions": [str(sibling.number) for sibling in siblings],
        "platform": "privet",
        "inputs": _inputs(program),
        "outputs": _outputs(program),
        "privet": {
            "version": str(version.number),
            "description": version.config.description,
            "labels": list(version.config.labels),
            "features": list(version.config.features),
            "program": program.program_hash,
            "batch": program.batch,
            "ring_bits": program.ring_bits,
            "scale_bits": program.scale_bits,
            "calibration": program.calibration,
            "client_side": [node.op for node in program.front.steps.nodes] if program.front else [],
            "magnitudes": {entry.name: entry.magnitude for entry in program.inputs},
            "input_range": version.config.input_range and list(version.config.input_range),
            "suites": [
                {
                    "suite": offer[0].name,
                    "security": offer[0].facts()["security"],
                    "rounds": _rounds(offer),
                    "trust": offer[0].trust.caution,
                }
                for offer in version.offers
            ],
            "operations": [
                {
                    "op": operation.op,
                    "name": operation.name,
                    "shape": list(program.values[operation.output].shape),
                }
                for operation in program.operations
            ],
            "stock": stock,
        },
    }


def _rounds(offer: Iterable[Suite]) -> list[str]:
    """The depths of comparisons to choose from."""
    depths = dict.fromkeys(suite.facts()["rounds"] for suite in offer)
    return [rounds for rounds in depths if rounds is not None]


def _outputs(program: Program) -> list[dict[str, Any]]:
    """What a client gets: reals, or what the head of the program makes of them."""
    return _tensors(describe_outputs(program), program.head)


def _inputs(program: Program) -> list[dict[str, Any]]:
    """What a client gives: reals, or what the front of the program takes."""
    return _tensors(program.given, program.front)


def _tensors(entries: Iterable[Any], by_client: object) -> list[dict[str, Any]]:
    kinds = {} if by_client is None else DATATYPES
    return [
        {
            "name": entry.name,
            "datatype": kinds.get(entry.kind, DATATYPE),
            "shape": list(entry.shape),
        }
        for entry in entries
    ]
