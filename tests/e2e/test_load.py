"""The phases of `benches.load`, for seconds."""

from __future__ import annotations

from pathlib import Path

from benches.load.__main__ import Amounts, measure

IDLE_KB = 150.0
"""What an idle client may take; asyncio's own buffers alone are 256 KB."""


def test_load_is_answered_beside_stalled_and_idle_peers(tmp_path: Path, figures: list[str]) -> None:
    amounts = Amounts(clients=3, seconds=2, short=1, few=2, stalls=12, idle=60)
    record = measure(tmp_path, amounts)
    assert len(record["phases"]) == 7
    for name, phase in record["phases"].items():
        assert phase["faults"] == {}, name
        assert phase["answers"] > 0, name
        assert 0 < phase["latency_ms"]["p50"] <= phase["latency_ms"]["p99"]
        assert phase["control_cpu_ms_each"] > 0
    assert 0 < record["idle"]["kb_each"] < IDLE_KB
    figures.append(
        f"3 clients: {record['phases']['kept connections']['per_second']} answers a second; "
        f"an idle client takes {record['idle']['kb_each']} KB of the control plane"
    )
