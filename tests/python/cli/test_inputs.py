"""Inputs from files: which array is for which input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import privet
from privet.cli.inputs import read_input, read_inputs
from privet.errors import InputError
from privet.runtime.calibration import read_samples

SHAPES = {"ids": (1, 3), "mask": (1, 3)}
IDS, MASK = np.full((1, 3), 7.0), np.ones((1, 3))


def test_arrays_of_an_archive_go_by_name(tmp_path: Path) -> None:
    """In the file's order, the mask would have been taken for the ids."""
    path = tmp_path / "x.npz"
    np.savez(path, mask=MASK[0], ids=IDS[0])
    ids, mask = read_input(path, SHAPES)
    np.testing.assert_array_equal(ids, IDS)
    np.testing.assert_array_equal(mask, MASK)


def test_arrays_without_names_go_in_order(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, IDS, MASK)
    ids, mask = read_inputs([path, path], SHAPES, batch=2)
    np.testing.assert_array_equal(ids, np.concatenate([IDS, IDS]))
    np.testing.assert_array_equal(mask, np.concatenate([MASK, MASK]))


def test_the_only_array_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, row=IDS)
    (row,) = read_input(path, {"X": (1, 3)})
    np.testing.assert_array_equal(row, IDS)


def test_calibration_without_names_goes_in_order(tmp_path: Path) -> None:
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3]) for name in SHAPES
    ]
    total = onnx.helper.make_tensor_value_info("total", onnx.TensorProto.FLOAT, [1, 3])
    node = onnx.helper.make_node("Add", list(SHAPES), ["total"])
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "sum", inputs, [total]),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=9,
    )
    paths = [tmp_path / name for name in ("named.npz", "unnamed.npz", "swapped.npz", "other.npz")]
    np.savez(paths[0], mask=MASK, ids=IDS)
    np.savez(paths[1], IDS, MASK)
    np.savez(paths[2], mask=IDS, ids=MASK)
    np.savez(paths[3], mask=MASK, id=IDS)

    def magnitudes(path: Path) -> list[float]:
        compiled = privet.compile(model, calibration=read_samples(path))
        return [entry.magnitude for entry in compiled.program.inputs]

    named, unnamed, swapped = map(magnitudes, paths[:3])
    assert unnamed == named
    assert swapped != named
    with pytest.raises(InputError, match="holds mask, id; the model's inputs are ids, mask: give"):
        privet.compile(model, calibration=read_samples(paths[3]))


@pytest.mark.parametrize("names", [["ids", "masks"], ["ids"], ["ids", "mask", "labels"], []])
def test_arrays_of_other_names_are_refused(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "x.npz"
    arrays: dict[str, Any] = dict.fromkeys(names, IDS)
    np.savez(path, **arrays)
    message = f"holds {', '.join(names) or 'nothing'}; the model's inputs are ids, mask: give its"
    with pytest.raises(InputError, match=message):
        read_input(path, SHAPES)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
@pytest.mark.parametrize("content", [b"", b"1,2,3\n", b"PK\x03\x04 cut short"])
def test_files_that_are_none_of_numpy_are_refused(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_input(path, SHAPES)
    with pytest.raises(InputError, match="cannot be read"):
        read_samples(path)


def test_objects_are_refused_with_what_to_do(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array(["a", 1], dtype=object))
    with pytest.raises(InputError, match=r"texts by array.astype\(str\)"):
        read_samples(tmp_path / "x.npy")
    (tmp_path / "x.csv").write_text("a,1\n")
    with pytest.raises(InputError, match=r"a .npy or .npz file is needed"):
        read_samples(tmp_path / "x.csv")


def test_samples_have_the_shape_of_what_lies_along_the_first_axis(tmp_path: Path) -> None:
    """A recurrent model's input begins with time: its samples have no axis of 1 in front."""
    np.save(tmp_path / "x.npy", np.zeros((5, 10, 1, 4)))
    samples = read_samples(tmp_path / "x.npy")
    assert [sample.shape for sample in samples if isinstance(sample, np.ndarray)] == [
        (10, 1, 4)
    ] * 5


@pytest.mark.parametrize("names", [("pixels",), ("arr_0", "arr_1")])
def test_samples_that_a_program_is_measured_on_are_compared_with_onnx_runtime(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Whatever an archive's only array is called, and in order as numpy names them."""
    inputs = [onnx.helper.make_tensor_value_info(f"x{i}", 1, [1, 4]) for i in range(len(names))]
    output = onnx.helper.make_tensor_value_info("y", 1, [1, 4])
    nodes = [
        onnx.helper.make_node("Relu", ["x0"], ["a"]),
        onnx.helper.make_node("Add", ["a", inputs[-1].name], ["y"]),
    ]
    graph = onnx.helper.make_graph(nodes, "sum", inputs, [output])
    proto = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9
    )
    path = tmp_path / "samples.npz"
    arrays: dict[str, Any] = {name: np.ones((3, 1, 4), np.float32) for name in names}
    np.savez(path, **arrays)
    compiled = privet.compile(proto, calibration=read_samples(path))
    assert [error.name for error in compiled.accuracy().beside] == ["y"]
