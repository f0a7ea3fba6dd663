"""Inputs that do not fit are refused before anything is spent or said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.scene import INPUT, Scene

from privet.errors import InputError, MaterialError

UNFIT: dict[str, Any] = {
    "one element too few": [np.ones((1, 3))],
    "another rank": [np.ones(4)],
    "a batch of two": [np.ones((2, 4))],
    "nothing": [np.zeros((0, 4))],
    "complex numbers": [np.ones((1, 4), np.complex128)],
    "texts": [np.array([["a", "b", "c", "d"]])],
    "objects": [np.array([[None, 1.0, 2.0, 3.0]], dtype=object)],
    "NaN": [np.array([[0.0, np.nan, 0.0, 0.0]])],
    "infinity": [np.array([[0.0, np.inf, 0.0, 0.0]])],
    "minus infinity": [np.array([[0.0, 0.0, -np.inf, 0.0]])],
    "beyond the magnitude": [np.array([[0.0, 0.0, 0.0, 4.5]])],
    "far beyond the magnitude": [np.full((1, 4), -1e300)],
    "integers beyond the magnitude": [np.array([[0, 0, 0, 2**62]])],
    "two inputs": [INPUT, INPUT],
    "no input": [],
    "an unknown name": {"z": INPUT},
    "a name too many": {"x": INPUT, "z": INPUT},
    "no name": {},
}


def test_inputs_that_do_not_fit_cost_nothing(scene: Scene) -> None:
    with scene.server() as server, scene.client(server.address[1]) as client:
        (material,) = client.prepare()
        for inputs in UNFIT.values():
            for entry in (None, material):
                with pytest.raises(InputError):
                    client.infer(inputs, material=entry)
            assert client.ready() == [material]
        result = client.infer([INPUT])
        assert result.material == material
        scene.check(result)
        assert client.ready() == []


def test_the_extremes_of_the_range_are_inputs(scene: Scene) -> None:
    with scene.server() as server, scene.client(server.address[1]) as client:
        (entry,) = client.program.inputs
        for value in (entry.magnitude, -entry.magnitude, 0.0):
            sample = np.full((1, 4), value)
            scene.check(client.infer([sample]), sample)


def test_a_spent_entry_is_refused_and_the_session_goes_on(scene: Scene) -> None:
    with scene.server() as server, scene.client(server.address[1]) as client:
        result = client.infer([INPUT])
        for material in (result.material, "0" * 32):
            with pytest.raises(MaterialError):
                client.infer([INPUT], material=material)
        scene.check(client.infer([INPUT]))
