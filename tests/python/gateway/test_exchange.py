"""What parameters of a request to the gateway mean."""

from __future__ import annotations

import pytest

from privet.errors import InputError
from privet.gateway.oip.exchange import _number, _timeout


def test_a_timeout_is_kept_to_the_microsecond() -> None:
    assert _timeout({"timeout": 1000}) == 1e-3
    assert _timeout({"timeout": 1}) == 1e-6
    assert _timeout({"timeout": 0}) is _timeout({}) is None
    for timeout in (-1, 0.5, True, "1000", 10**400):
        with pytest.raises(InputError, match="microseconds"):
            _timeout({"timeout": timeout})


def test_versions_are_numbers() -> None:
    assert (_number(""), _number("3")) == (None, 3)
    for version in ("²", "-1", "1.0", "9" * 5000):
        with pytest.raises(InputError, match="versions are numbers"):
            _number(version)
