"""`privet.run`: what it refuses before any process is started."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.python.compiler.graph.single import single

import privet
from privet.errors import Misuse


@pytest.mark.parametrize(
    "options",
    [
        {"reveal": "label"},
        {"bits": 40, "scale": 12},
        {"batch": 4},
        {"calibration": np.ones((2, 3))},
        {"client_side": True},
        {"input_shapes": {"x0": (1, 3)}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_compile_beside_a_compiled_model_are_refused(options: dict[str, Any]) -> None:
    """They were ignored, so that reveal="label" revealed scores."""
    compiled = privet.compile(single("Relu", [(1, 3)]))
    with pytest.raises(Misuse, match=f"compiled already: give {', '.join(options)} to privet.comp"):
        privet.run(compiled, np.ones((1, 3)), **options)
