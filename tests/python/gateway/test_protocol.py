"""The messages of the Open Inference Protocol are those that others use."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2
from scripts import protocol
from tritonclient.grpc import model_config_pb2, service_pb2

from privet.gateway.oip import predict_pb2
from privet.gateway.oip.tensors import config_type

OUTPUTS = ("FP32", "INT64", "BOOL", "BYTES")
"""The types that outputs may have."""


def messages(module: Any) -> dict[str, Any]:
    """The fields of each message, by full name: number, type, and whether it repeats."""
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    schemas: dict[str, Any] = {}

    def collect(message: Any, prefix: str) -> None:
        name = f"{prefix}.{message.name}"
        schemas[name] = {
            (it.name, it.number, it.type, it.label, it.type_name, it.HasField("oneof_index"))
            for it in message.field
        }
        for nested in message.nested_type:
            collect(nested, name)

    for message in file.message_type:
        collect(message, file.package)
    return schemas


PARTIAL = {"ModelConfig", "ModelInput", "ModelOutput", "ModelStatistics", "InferStatistics"}
"""Messages of which the gateway fills some fields; the others are left out."""


def test_every_message_is_as_in_tritons_library() -> None:
    ours = messages(predict_pb2)
    theirs = messages(service_pb2) | messages(model_config_pb2)
    assert len(ours) > 25
    for name, fields in ours.items():
        if name.removeprefix("inference.") in PARTIAL:
            assert fields
            assert fields < theirs[name], name
        else:
            assert fields == theirs[name], name


def test_every_datatype_is_as_in_tritons_library() -> None:
    ours, theirs = (
        {it.name: it.number for it in module.DESCRIPTOR.enum_types_by_name["DataType"].values}
        for module in (predict_pb2, model_config_pb2)
    )
    assert {config_type(it) for it in OUTPUTS} == ours.keys() - {"TYPE_INVALID"}
    assert ours.items() < theirs.items()


def test_every_call_is_as_in_tritons_library() -> None:
    def calls(module: Any) -> dict[str, tuple[str, str]]:
        service = module.DESCRIPTOR.services_by_name["GRPCInferenceService"]
        return {
            it.full_name: (it.input_type.full_name, it.output_type.full_name)
            for it in service.methods
        }

    ours = calls(predict_pb2)
    assert len(ours) == 9
    assert ours.items() <= calls(service_pb2).items()


def test_the_module_is_made_from_the_proto_file() -> None:
    assert protocol.stale() == []
