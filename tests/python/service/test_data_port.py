"""A session of a worker that breaks off by a mistake fails its job, and nothing else."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from privet.errors import PrivetError
from privet.runtime.revocation import Revoked
from privet.service.worker import DataPort

CLIENT = "ab" * 32


@pytest.mark.parametrize("error", [ValueError("SECRET"), OSError("SECRET"), MemoryError("SECRET")])
def test_the_job_of_a_session_that_breaks_off_fails(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[PrivetError] = []
    short: list[PrivetError] = []
    over: list[bool] = []

    def fail(error: PrivetError) -> bool:
        errors.append(error)
        return True

    def serve(*_: object) -> None:
        raise error

    session = SimpleNamespace(
        program="p",
        suite="fss",
        is_expected=True,
        threads=1,
        on_event=None,
        failed=fail,
        over=lambda: over.append(True),
    )
    admission = SimpleNamespace(session=lambda *_: session, on_shortage=short.append)
    port: Any = object.__new__(DataPort)
    port._admission, port._hosts, port._revoked = admission, {}, Revoked()
    port._native = SimpleNamespace(serve=serve)
    with caplog.at_level(logging.ERROR, "privet"):
        port._session(cast(Any, SimpleNamespace(stopper=lambda: None)), CLIENT)
    assert (len(errors), over) == (1, [True])
    assert "SECRET" not in str(errors[0])
    assert bool(short) == isinstance(error, MemoryError)
    (line,) = caplog.records
    assert type(error).__name__ in vars(line)["trace"][0]
    assert "SECRET" not in str(vars(line)["trace"])
