"""Fifty clients at once for some seconds, as `benches.soak` runs them for ten minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from benches.soak import soak


@pytest.mark.slow
def test_no_request_is_lost_and_nothing_grows(tmp_path: Path, figures: list[str]) -> None:
    record = soak(tmp_path, seconds=20, clients=50, ahead=10)
    assert record["faults"] == {}
    assert record["leaks"] == []
    assert record["requests_left_open"] == 0
    assert record["exit_codes"] == {"gateway": 0, "service": 0}
    assert record["right_answers"] >= 50
    figures.append(
        f"50 clients of a gateway: {record['per_second']} answers a second, "
        f"p95 {record['latency_seconds']['p95']} s"
    )
