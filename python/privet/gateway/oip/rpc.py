"""The protocol over gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from privet import tracing
from privet.errors import InputError
from privet.gateway.oip import predict_pb2 as messages
from privet.gateway.oip.binary import refuse_unsupported
from privet.gateway.oip.exchange import (
    EXTENSIONS,
    MORE,
    Exchange,
    InferenceRequest,
    InferenceResponse,
)
from privet.gateway.oip.faults import check_caller, check_trust, fault
from privet.gateway.oip.tensors import DATATYPES, Array, TextRoom, from_numbers, from_raw, to_raw
from privet.runtime.listening import RenewedTls
from privet.runtime.revocation import Revoked
from privet.runtime.trust import fingerprint_of

SERVICE = "GRPCInferenceService"

CONTENTS = {
    "BYTES": "bytes_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
}
"""The field that holds elements of a type, where they are not raw."""

Context = Any
"""Of a call; gRPC has no types of its own."""


def handlers(
    exchange: Exchange, revoked: Revoked | None = None, tls: RenewedTls | None = None
) -> Any:
    """The protocol's calls, for `grpc.aio.Server.add_generic_rpc_handlers`, from clients that are
    not `revoked` and whose authority is trusted by `tls` now. Nothing here can cut a connection of
    gRPC: it takes no further call, and gives no further answer."""
    calls = _Calls(exchange)
    list_ = revoked or Revoked()
    service = messages.DESCRIPTOR.services_by_name[SERVICE]
    methods = {
        method.name: grpc.unary_unary_rpc_method_handler(
            _guarded(getattr(calls, method.name), list_, tls),
            request_deserializer=getattr(messages, method.input_type.name).FromString,
            response_serializer=getattr(messages, method.output_type.name).SerializeToString,
        )
        for method in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, methods)


def _guarded(
    call: Callable[[Any, Context], Awaitable[Any]], revoked: Revoked, tls: RenewedTls | None
) -> Callable[[Any, Context], Awaitable[Any]]:
    async def guarded(request: Any, context: Context) -> Any:
        header = dict(context.invocation_metadata() or ()).get(tracing.HEADER)
        begins = call.__name__ == "ModelInfer"
        try:
            chain = _chain(context)
            check_caller(revoked, fingerprint_of(chain))
            check_trust(tls, chain)
            with tracing.call(f"gRPC {call.__name__}", _text(header), begins=begins):
                answer = await call(request, context)
            check_trust(tls, chain)
            return answer
        except Exception as error:
            reply = fault(call.__name__, error)
            return await context.abort(reply.grpc, reply.message)

    return guarded


def _chain(context: Context) -> list[bytes]:
    """The certificates that the caller showed, each in DER, its own first; empty without any."""
    properties = context.auth_context()
    leaf, intermediates = (
        properties.get(name) for name in ("x509_pem_cert", "x509_pem_cert_chain")
    )
    texts = b"".join((*(leaf or ()), *(intermediates or ())))
    certificates = x509.load_pem_x509_certificates(texts) if texts else []
    return [certificate.public_bytes(Encoding.DER) for certificate in certificates]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class _Calls:
    """The methods of the service, by their names in the protocol."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def ServerLive(self, _request: Any, _context: Context) -> Any:  # noqa: N802
        return messages.ServerLiveResponse(live=True)

    async def ServerReady(self, _request: Any, _context: Context) -> Any:  # noqa: N802
        return messages.ServerReadyResponse(ready=await self._exchange.ready())

    async def ModelReady(self, request: Any, _context: Context) -> Any:  # noqa: N802
        ready = await self._exchange.model_ready(request.name, request.version)
        return messages.ModelReadyResponse(ready=ready)

    async def ServerMetadata(self, _request: Any, _context: Context) -> Any:  # noqa: N802
        exchange = self._exchange
        return messages.ServerMetadataResponse(
            name=exchange.name, version=exchange.version, extensions=(*EXTENSIONS, *MORE)
        )

    async def ModelMetadata(self, request: Any, _context: Context) -> Any:  # noqa: N802
        metadata = await self._exchange.metadata(request.name, request.version)
        tensor = messages.ModelMetadataResponse.TensorMetadata
        return messages.ModelMetadataResponse(
            name=metadata.name,
            versions=metadata.versions,
            platform=metadata.platform,
            inputs=[tensor(**vars(entry)) for entry in metadata.inputs],
            outputs=[tensor(**vars(entry)) for entry in metadata.outputs],
        )

    async def ModelInfer(self, request: Any, context: Context) -> Any:  # noqa: N802
        question = replace(_question(request), seconds=context.time_remaining())
        return _message(await self._exchange.infer(question))

    async def RepositoryIndex(self, request: Any, _context: Context) -> Any:  # noqa: N802
        if request.repository_name:
            raise InputError("models are in one repository, which has no name")
        rows = await self._exchange.index()
        return messages.RepositoryIndexResponse(
            models=[
                messages.RepositoryIndexResponse.ModelIndex(**row)
                for row in rows
                if row["state"] == "READY" or not request.ready
            ]
        )

    async def ModelConfig(self, request: Any, _context: Context) -> Any:  # noqa: N802
        config = await self._exchange.config(request.name, request.version)
        return messages.ModelConfigResponse(config=messages.ModelConfig(**config))

    async def ModelStatistics(self, request: Any, _context: Context) -> Any:  # noqa: N802
        statistics = await self._exchange.statistics(request.name, request.version)
        return messages.ModelStatisticsResponse(**statistics)


def _question(request: Any) -> InferenceRequest:
    raw = list(request.raw_input_contents)
    if raw and len(raw) != len(request.inputs):
        raise InputError(f"{len(raw)} raw contents for {len(request.inputs)} inputs")
    inputs: dict[str, Array] = {}
    room = TextRoom()
    for index, tensor in enumerate(request.inputs):
        if tensor.name in inputs:
            raise InputError(f"input {tensor.name} is given twice")
        refuse_unsupported(tensor.name, _parameters(tensor.parameters))
        inputs[tensor.name] = _tensor(tensor, raw[index] if raw else None, room)
    for output in request.outputs:
        refuse_unsupported(output.name, _parameters(output.parameters))
    return InferenceRequest(
        request.model_name,
        request.model_version,
        request.id,
        _parameters(request.parameters),
        inputs,
        tuple(output.name for output in request.outputs),
    )


def _tensor(tensor: Any, raw: bytes | None, room: TextRoom) -> Array:
    shape = list(tensor.shape)
    if raw is not None:
        return from_raw(tensor.name, tensor.datatype, shape, raw, room)
    field = CONTENTS.get(tensor.datatype)
    if field is None and tensor.datatype in DATATYPES:
        raise InputError(f"input {tensor.name}: {tensor.datatype} goes as raw contents only")
    numbers = list(getattr(tensor.contents, field)) if field else []
    return from_numbers(tensor.name, tensor.datatype, shape, numbers, room)


def _parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value.WhichOneof("parameter_choice") for name, value in parameters.items()}
    return {name: getattr(parameters[name], field) for name, field in fields.items() if field}


def _message(answer: InferenceResponse) -> Any:
    output = messages.ModelInferResponse.InferOutputTensor
    message = messages.ModelInferResponse(
        model_name=answer.model, model_version=answer.version, id=answer.id
    )
    for name, value in answer.parameters.items():
        field = "string_param" if isinstance(value, str) else "double_param"
        setattr(message.parameters[name], field, value)
    for name, (datatype, array) in answer.outputs.items():
        message.outputs.append(output(name=name, datatype=datatype, shape=array.shape))
        message.raw_output_contents.append(to_raw(array, datatype))
    return message
