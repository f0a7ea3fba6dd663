"""Requests and answers of the protocol, whichever way they come, and what is done with them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any

from privet.compiler.executor.codec import as_tensor, describe_outputs
from privet.compiler.executor.samples import is_stacked, portions
from privet.compiler.program import Program
from privet.errors import InputError, MaterialError, Misuse, PeerMisbehaved
from privet.gateway.jobs import Notice
from privet.gateway.model import Offer, Terms
from privet.gateway.oip.backend import Backend
from privet.gateway.oip.batching import Batcher
from privet.gateway.oip.observe import Observer
from privet.gateway.oip.tensors import Array, config_type, input_datatypes, output_datatypes
from privet.runtime import Result
from privet.runtime.shortage import check_room
from privet.runtime.tasks import Tasks

EXTENSIONS = ("binary_tensor_data",)

MORE = ("model_repository", "model_configuration", "statistics")
"""Extensions that tell of models."""

TIMEOUT = "timeout"
"""Parameter of a request: microseconds, as Triton has it."""

MOST_MICROSECONDS = 10**15

_NUMBER = re.compile(r"[0-9]{1,9}")

STATEFUL = ("sequence_id", "sequence_start", "sequence_end")


@dataclass(frozen=True)
class InferenceRequest:
    """A request for predictions. `outputs` names those that are wanted; all if it is empty.
    `seconds` is how long the caller listens, if its call says so."""

    model: str
    version: str
    id: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Array]
    outputs: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class InferenceResponse:
    """Predictions: each output with its datatype."""

    model: str
    version: str
    id: str
    outputs: Mapping[str, tuple[str, Array]]
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TensorMetadata:
    """An input or output as the protocol describes it; -1 is an axis of any length."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ModelMetadata:
    """A model as the protocol describes it."""

    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]


class Exchange:
    """Answers the protocol's calls through a client of the service.

    All requests are made on the same `terms`, but for the version that they name. `batch_delay` is
    how many seconds a request waits for others to join. `close` closes the backend.
    """

    def __init__(self, backend: Backend, terms: Terms, *, batch_delay: float = 0) -> None:
        self._backend = backend
        self._terms = terms
        self._batcher = Batcher(batch_delay)
        self._retired = Tasks()
        self.observer = Observer()
        self.name = "privet"
        self.version = version("privet")

    def renew(self, backend: Backend) -> None:
        """Answers further calls by another backend; the one before is closed once it is idle."""
        self._retired.start(self._backend.close())
        self._backend = backend

    async def close(self) -> None:
        """Closes the backend, and those before it, once no call uses them."""
        await self._backend.close()
        await self._retired.wait()

    async def ready(self) -> bool:
        """Whether the service takes requests."""
        with self._backend.in_use() as backend:
            return await backend.client.ready()

    async def model_ready(self, name: str, version: str) -> bool:
        """Whether the service takes requests for a model, on the terms of this gateway. Raises what
        `ServiceClient.model` does."""
        with self._backend.in_use() as backend:
            offer = await backend.client.offer(name, _number(version))
            try:
                offer.resolve(self._terms)
            except Misuse:
                return False
            return await backend.client.ready()

    async def index(self) -> list[dict[str, str]]:
        """The service's models, and whether each is ready here: Triton's repository index. Raises
        what `ServiceClient.model` does."""
        rows = []
        with self._backend.in_use() as backend:
            for name in await backend.client.models():
                ready = await self.model_ready(name, "")
                reason = (
                    "" if ready else "it is not offered in the suite of this gateway, or not now"
                )
                version = str((await backend.client.model(name)).version)
                state = "READY" if ready else "UNAVAILABLE"
                rows.append({"name": name, "version": version, "state": state, "reason": reason})
        return rows

    async def config(self, name: str, version: str) -> dict[str, Any]:
        """A model's configuration, with the fields of Triton's that mean something here. Raises
        what `ServiceClient.model` does."""
        metadata = await self.metadata(name, version)
        with self._backend.in_use() as backend:
            batch = (await backend.client.offer(name, _number(version))).program.batch
        sides = {
            side: [
                {
                    "name": tensor.name,
                    "data_type": config_type(tensor.datatype),
                    "dims": list(tensor.shape[1:]),
                }
                for tensor in tensors
            ]
            for side, tensors in (("input", metadata.inputs), ("output", metadata.outputs))
        }
        return {"name": name, "platform": metadata.platform, "max_batch_size": batch, **sides}

    async def statistics(self, name: str, version: str) -> dict[str, Any]:
        """How many requests for a model this gateway answered, and how long that took; of all
        models without a name. Raises what `ServiceClient.model` does."""
        with self._backend.in_use() as backend:
            names = [name] if name else await backend.client.models()
            return {"model_stats": [await self._ended(backend, model, version) for model in names]}

    async def _ended(self, backend: Backend, name: str, version: str) -> dict[str, Any]:
        model = await backend.client.model(name, _number(version))
        tally = self.observer.models[name]
        statistics = {
            "success": {"count": tally.done, "ns": int(tally.done_seconds * 1e9)},
            "fail": {"count": tally.failed, "ns": int(tally.failed_seconds * 1e9)},
        }
        row = {"name": name, "version": str(model.version), "last_inference": int(tally.last * 1e3)}
        row |= {"inference_count": tally.done, "execution_count": tally.inferences}
        return {**row, "inference_stats": statistics}

    async def metadata(self, name: str, version: str) -> ModelMetadata:
        """A model's inputs and outputs. Raises what `ServiceClient.model` does."""
        with self._backend.in_use() as backend:
            model = await backend.client.model(name, _number(version))
            program = (await backend.client.offer(name, model.version)).program
        types, input_types = output_datatypes(program), input_datatypes(program)
        free = is_stacked(program)
        return ModelMetadata(
            model.name,
            tuple(str(number) for number in model.versions),
            "privet",
            tuple(
                TensorMetadata(entry.name, input_types[entry.name], _shape(entry.shape, free))
                for entry in program.given
            ),
            tuple(
                TensorMetadata(entry.name, types[entry.name], _shape(entry.shape, free))
                for entry in describe_outputs(program)
            ),
        )

    async def infer(self, question: InferenceRequest) -> InferenceResponse:
        """Predictions for a request. Raises those of `ServiceClient.infer`; `Short` if this process
        is out of memory."""
        check_room()
        stateful = [name for name in STATEFUL if question.parameters.get(name)]
        if stateful:
            raise InputError(f"parameter {stateful[0]}: models here keep no state")
        with self._backend.in_use() as backend:
            offer = await backend.client.offer(question.model, _number(question.version))
        program = offer.program
        types = output_datatypes(program)
        unknown = [name for name in question.outputs if name not in types]
        if unknown:
            raise InputError(f"there is no output {unknown[0]}; there is {', '.join(types)}")
        start, succeeded = time.monotonic(), False
        try:
            result = await self._ask(question, offer)
            succeeded = True
        finally:
            self.observer.models[question.model].add(time.monotonic() - start, is_done=succeeded)
        names = question.outputs or tuple(types)
        return InferenceResponse(
            question.model,
            str(offer.model.version),
            question.id,
            {name: (types[name], as_tensor(result.outputs[name])) for name in names},
            _parameters(result, time.monotonic() - start),
        )

    async def _ask(self, question: InferenceRequest, offer: Offer) -> Result:
        timeout = _timeout(question.parameters)

        async def ask(inputs: Mapping[str, Array]) -> Result:
            result = await self._infer(question, offer.program, inputs, timeout)
            jobs = len(portions(offer.program, inputs))
            self.observer.models[question.model].inferences += jobs
            return result

        if timeout is not None:
            return await ask(question.inputs)
        model = offer.model
        version = (question.model, model.version, model.program, question.version)
        return await self._batcher.ask(
            offer.program, version, question.inputs, ask, question.seconds
        )

    async def _infer(
        self,
        question: InferenceRequest,
        program: Program,
        inputs: Mapping[str, Array],
        timeout: float | None,
    ) -> Result:
        terms = self._terms
        number = _number(question.version)
        if number is not None:
            terms = replace(terms, version=number)
        # A group of requests may be asked by another backend than the one that its first call met.
        with self._backend.in_use() as backend:
            notice: Notice | None = None
            if number is None and len(portions(program, inputs)) == 1:
                notice = backend.ahead.take(question.model)
            ask = partial(backend.client.infer, question.model, inputs, timeout=timeout)
            if notice is not None:
                try:
                    return await ask(notice=notice)
                except (MaterialError, PeerMisbehaved, Misuse):
                    # The notice was not worth what it promised; nothing of the input was used with
                    # it.
                    if notice.state != "ended" and not notice.is_over:
                        await backend.client.cancel(notice)
            return await ask(terms=terms)


def _parameters(result: Result, seconds: float) -> dict[str, Any]:
    """What an answer says of how it was computed."""
    return {
        "suite": result.config.name,
        "security": result.mode.security,
        "trust": result.trust or "",
        "calibration": result.calibration,
        "online_seconds": result.online.seconds,
        "seconds": seconds,
    }


def _timeout(parameters: Mapping[str, Any]) -> float | None:
    value = parameters.get(TIMEOUT)
    if value in (None, 0):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST_MICROSECONDS:
        raise InputError(f"parameter {TIMEOUT} is {value!r}: a number of microseconds is needed")
    return value / 1e6


def _number(version: str) -> int | None:
    if version == "":
        return None
    if not _NUMBER.fullmatch(version):
        raise InputError(f"version {version!r}: versions are numbers")
    return int(version)


def _shape(shape: tuple[int, ...], free: bool) -> tuple[int, ...]:
    return (-1, *shape[1:]) if free else shape
