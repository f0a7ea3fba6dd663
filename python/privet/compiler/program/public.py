"""The compiled program: a public half (JSON) and a private half (safetensors), bound by hashes.

The public half holds operations, shapes, scales and the bound on each input; it goes to clients,
and the SHA-256 of its bytes names the program. The private half holds the server's integer
tensors. The public half carries its SHA-256, and a random salt among the tensors keeps that hash
from confirming a guess of the weights. Measured ranges are in neither, but for what SECURITY.md
lists.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privet.compiler.graph import ClientStep, Output
from privet.compiler.graph.front import Front, Given
from privet.compiler.graph.head import Head
from privet.compiler.graph.operations import Shape
from privet.errors import InvalidProgram

FORMAT = "privet-program"
MAX_BYTES = 4 << 20
"""Longest public half that is read; `privet.compiler.program.check` has the other limits."""
VERSION = 1
CALIBRATIONS = ("samples", "sound", "random")
"""What the ranges of a program rest on: samples that its owner gave; a proof that no input within
its bound leaves the ring, which its owner asked for; or a few random inputs."""
UNCALIBRATED = (
    "this program was compiled without samples of real inputs: its ranges were measured on random "
    "ones, so an answer may be wrong without a sign. Its owner can compile with --calibration "
    "samples.npz"
)
"""The caveat on results of a program whose ranges rest on random inputs."""


OUTPUT_KINDS = ("real", "integer", "boolean")
"""What numbers of an output are in the model, and so for the user."""


def caveat(calibration: str) -> str | None:
    """What to say with every result of a program with this calibration, if anything."""
    return UNCALIBRATED if calibration == "random" else None


@dataclass(frozen=True)
class ProgramValue:
    """A tensor's shape, and the power of two that its integers are scaled by."""

    shape: Shape
    scale: int


@dataclass(frozen=True)
class ProgramInput:
    """What the client gives; no real in it may exceed `magnitude`.

    With `order` it gives the places of its reals in the order of float32, which have no bound; with
    `missing` any of them may be NaN. With `one_hot` it gives whole numbers, of which each becomes a
    last axis of its value.
    """

    name: str
    value: int
    magnitude: float
    order: bool = False
    missing: bool = False
    one_hot: bool = False

    def to_document(self) -> dict[str, Any]:
        """The input as the file has it."""
        document = {"name": self.name, "value": self.value, "magnitude": self.magnitude}
        flags = {flag: True for flag in ("order", "missing", "one_hot") if getattr(self, flag)}
        return {**document, **flags}


@dataclass(frozen=True)
class ProgramState:
    """A tensor that stays shared between the parties from one inference of a session to the next.

    An inference begins with the value `input`, zero in the first, and leaves `output`.
    """

    name: str
    input: int
    output: int


@dataclass(frozen=True)
class ProgramOperation:
    """One step. `attributes` are those of `op` in the file format, tensors by name."""

    op: str
    name: str
    inputs: tuple[int, ...]
    output: int
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Program:
    """The public half of a compiled model, for `batch` samples at once.

    `calibration` is one of `CALIBRATIONS`: what its owner chose, which says nothing of the weights
    but that, with `sound`, they allow the proof. `head` is what the client computes in the clear on
    `outputs`; without one, those are what the user gets. `front` is what it computes in the clear
    before, of what the user gives; without one, that is `inputs`. With `state`, inferences are
    steps of a session, each of which goes on where the one before ended.
    """

    model: str
    ring_bits: int
    scale_bits: int
    weight_bits: int
    weights_commitment: str
    inputs: tuple[ProgramInput, ...]
    outputs: tuple[Output, ...]
    values: tuple[ProgramValue, ...]
    operations: tuple[ProgramOperation, ...]
    batch: int = 1
    calibration: str = "random"
    head: Head | None = None
    front: Front | None = None
    state: tuple[ProgramState, ...] = ()

    def to_public_bytes(self) -> bytes:
        """The file: JSON with sorted keys and no spaces, the same for equal programs."""
        return json.dumps(
            self._document(), sort_keys=True, separators=(",", ":"), allow_nan=False
        ).encode()

    def input_shape(self, entry: ProgramInput) -> Shape:
        """The shape of what the client gives for an input."""
        shape = self.values[entry.value].shape
        return shape[:-1] if entry.one_hot else shape

    @cached_property
    def given(self) -> tuple[Given, ...]:
        """What the user gives, of `batch` samples."""
        if self.front is None:
            return tuple(
                Given(entry.name, "integer" if entry.one_hot else "real", self.input_shape(entry))
                for entry in self.inputs
            )
        if self.batch == 1:
            return self.front.given
        return tuple(
            Given(entry.name, entry.kind, (self.batch, *entry.shape[1:]))
            for entry in self.front.given
        )

    @cached_property
    def program_hash(self) -> str:
        """SHA-256 of the public half, in hexadecimal."""
        return hashlib.sha256(self.to_public_bytes()).hexdigest()

    @classmethod
    def from_public_bytes(cls, data: bytes) -> Program:
        """Reads a public half, which may come from a peer. Raises `InvalidProgram` if it is too
        long, malformed, of another version, not in canonical form, or if its values and operations
        contradict each other."""
        from privet.compiler.program.check import check_program

        if len(data) > MAX_BYTES:
            raise InvalidProgram(f"the program has {len(data)} bytes, more than {MAX_BYTES}")
        try:
            document = json.loads(data)
            _check_version(document)
            program = cls._parse(document)
            canonical_bytes = program.to_public_bytes()
        except (
            *(ValueError, KeyError, TypeError, AttributeError),
            *(RecursionError, OverflowError, MemoryError),
        ) as error:
            raise InvalidProgram(f"the program is not readable: {error!r}") from error
        if canonical_bytes != data:
            raise InvalidProgram("the program is not in canonical form: compile the model again")
        check_program(program)
        return program

    def _document(self) -> dict[str, Any]:
        usual_kinds = _usual_kinds(self.operations)
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model,
            "ring_bits": self.ring_bits,
            "scale_bits": self.scale_bits,
            "weight_bits": self.weight_bits,
            "weights_commitment": self.weights_commitment,
            "inputs": [entry.to_document() for entry in self.inputs],
            "outputs": [_output_document(o, usual_kinds[o.value]) for o in self.outputs],
            "values": [vars(value) for value in self.values],
            "operations": [
                {
                    "op": o.op,
                    "name": o.name,
                    "inputs": o.inputs,
                    "output": o.output,
                    **o.attributes,
                }
                for o in self.operations
            ],
            **({} if self.batch == 1 else {"batch": self.batch}),
            **({} if self.calibration == "random" else {"calibration": self.calibration}),
            **({} if self.head is None else {"head": self.head.to_document()}),
            **({} if self.front is None else {"front": self.front.to_document()}),
            **({"state": [vars(entry) for entry in self.state]} if self.state else {}),
        }

    @classmethod
    def _parse(cls, document: dict[str, Any]) -> Program:
        operations = tuple(_parse_operation(e) for e in document["operations"])
        usual_kinds = _usual_kinds(operations)
        return cls(
            model=_text(document["model"]),
            ring_bits=_int(document["ring_bits"]),
            scale_bits=_int(document["scale_bits"]),
            weight_bits=_int(document["weight_bits"]),
            weights_commitment=_text(document["weights_commitment"]),
            inputs=tuple(
                ProgramInput(
                    _text(e["name"]),
                    _int(e["value"]),
                    float(e["magnitude"]),
                    bool(e.get("order", False)),
                    bool(e.get("missing", False)),
                    bool(e.get("one_hot", False)),
                )
                for e in document["inputs"]
            ),
            outputs=tuple(
                Output(
                    _text(e["name"]),
                    _int(e["value"]),
                    _parse_client(e["client"]),
                    _text(e.get("kind", usual_kinds[_int(e["value"])])),
                )
                for e in document["outputs"]
            ),
            values=tuple(
                ProgramValue(_ints(e["shape"]), _int(e["scale"])) for e in document["values"]
            ),
            operations=operations,
            batch=_int(document.get("batch", 1)),
            calibration=_text(document.get("calibration", "random")),
            head=Head.parse(document["head"]) if "head" in document else None,
            front=Front.parse(document["front"]) if "front" in document else None,
            state=tuple(
                ProgramState(_text(e["name"]), _int(e["input"]), _int(e["output"]))
                for e in document.get("state", ())
            ),
        )


def _usual_kinds(operations: Sequence[ProgramOperation]) -> defaultdict[int, str]:
    """What numbers of a value are in most models: places that an argmax found are whole numbers,
    perhaps in another shape, all else is real."""
    kinds: defaultdict[int, str] = defaultdict(lambda: "real")
    for operation in operations:
        sources = operation.inputs[:1] if operation.op == "reshape" else ()
        if operation.op == "argmax" or any(kinds[id] == "integer" for id in sources):
            kinds[operation.output] = "integer"
    return kinds


def _check_version(document: Any) -> None:
    header = document.get("format"), document.get("version")
    if header != (FORMAT, VERSION):
        raise InvalidProgram(
            f"the program has format {header[0]!r} version {header[1]!r}; this build reads "
            f"{FORMAT!r} version {VERSION}"
        )


def _parse_operation(entry: dict[str, Any]) -> ProgramOperation:
    attributes = dict(entry)
    return ProgramOperation(
        op=_text(attributes.pop("op")),
        name=_text(attributes.pop("name")),
        inputs=_ints(attributes.pop("inputs")),
        output=_int(attributes.pop("output")),
        attributes=attributes,
    )


def _output_document(output: Output, usual_kind: str) -> dict[str, Any]:
    """What the client learns, and what it still does in the clear; with one of `OUTPUT_KINDS`
    unless that is the usual one."""
    client = None
    if (step := output.client) is not None:
        client = {"op": step.op, "axis": step.axis, **({"flatten": True} if step.flatten else {})}
    document = {"name": output.name, "value": output.value, "client": client}
    return document if output.kind == usual_kind else {**document, "kind": output.kind}


def _parse_client(entry: dict[str, Any] | None) -> ClientStep | None:
    if entry is None:
        return None
    if entry["op"] not in ("softmax", "log_softmax"):
        raise ValueError(f"client step {entry['op']!r}")
    return ClientStep(entry["op"], _int(entry["axis"]), bool(entry.get("flatten", False)))


def _int(entry: Any) -> int:
    if not isinstance(entry, int) or isinstance(entry, bool):
        raise TypeError(f"{entry!r} where an integer belongs")
    return entry


def _ints(entries: Any) -> tuple[int, ...]:
    return tuple(_int(entry) for entry in entries)


def _text(entry: Any) -> str:
    if not isinstance(entry, str):
        raise TypeError(f"{entry!r} where text belongs")
    return entry
