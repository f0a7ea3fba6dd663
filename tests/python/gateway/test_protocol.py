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
            (
                field.name,
                field.number,
                field.type,
                field.label,
                field.type_name,
                field.HasField("oneof_index"),
            )
            for field in message.field
        }
        for nested in message.nested_type:
            collect(nested, name)

    for message in file.message_type:
        collect(message, file.package)
    return schemas


PARTIAL = {"ModelConfig", "ModelInput", "ModelOutput", "ModelStatistics", "InferStatistics"}
"""Messages of which the gateway fills some fields; the others are left out."""


def test_every_message_is_as_in_tritons_library() -> None:
    copies = messages(predict_pb2)
    originals = messages(service_pb2) | messages(model_config_pb2)
    assert len(copies) > 25
    for name, fields in copies.items():
        if name.removeprefix("inference.") in PARTIAL:
            assert fields
            assert fields < originals[name], name
        else:
            assert fields == originals[name], name


def test_every_datatype_is_as_in_tritons_library() -> None:
    copies, originals = (
        {
            value.name: value.number
            for value in module.DESCRIPTOR.enum_types_by_name["DataType"].values
        }
        for module in (predict_pb2, model_config_pb2)
    )
    assert {config_type(output) for output in OUTPUTS} == copies.keys() - {"TYPE_INVALID"}
    assert copies.items() < originals.items()


def test_every_call_is_as_in_tritons_library() -> None:
    def calls(module: Any) -> dict[str, tuple[str, str]]:
        service = module.DESCRIPTOR.services_by_name["GRPCInferenceService"]
        return {
            method.full_name: (method.input_type.full_name, method.output_type.full_name)
            for method in service.methods
        }

    copies = calls(predict_pb2)
    assert len(copies) == 9
    assert copies.items() <= calls(service_pb2).items()


def test_the_module_is_made_from_the_proto_file() -> None:
    assert not protocol.is_stale()
