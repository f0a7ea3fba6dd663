"""Widths that a comparison of modes is given."""

from typing import Any

import pytest

from privet.errors import Misuse
from privet.runtime import modes


def test_widths_that_are_given_go_before_those_of_the_suite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings: dict[str, Any] = {}

    def compile_for(*_: Any, **options: Any) -> None:
        settings.update(options)
        raise Misuse("enough is known")

    monkeypatch.setattr(modes, "compile_for", compile_for)
    with pytest.raises(Misuse, match="enough"):
        modes.run_modes("model.onnx", bits=45, scale=9, reveal="scores")
    assert (settings["bits"], settings["scale"], settings["reveal"]) == (45, 9, "scores")
