"""On which terms a client asks: given as such, as a suite, or by a suite's name."""

from __future__ import annotations

from typing import Any

import pytest

from privet import Gmw
from privet.errors import Misuse
from privet.gateway.model import Terms, as_terms


def test_a_suite_or_its_name_is_terms() -> None:
    log = Gmw(rounds="log")
    assert as_terms(log) == as_terms(Terms(log)) == Terms(log)
    assert as_terms("gmw") == Terms(Gmw())
    assert as_terms(None) is None


@pytest.mark.parametrize(
    ("source", "message"), [("gm", "the suite is 'gm'"), (Gmw, "give one with")]
)
def test_what_is_neither_is_refused(source: Any, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        as_terms(source)
