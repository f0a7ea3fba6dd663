"""Columns of a report's tables."""

from __future__ import annotations

from privet.research.report.page import Column

MEASURED = (
    Column("model", "model"),
    Column("setting", "setting"),
    Column("batch", "batch"),
    Column("link", "link"),
    Column("offline_seconds", "offline s", "measured"),
    Column("online_seconds", "online s", "measured"),
    Column("cpu_seconds", "CPU s", "measured"),
    Column("offline_bytes", "offline bytes", "measured"),
    Column("online_bytes", "online bytes", "measured"),
    Column("rounds", "rounds", "measured"),
    Column("peak_mb", "peak MB", "measured"),
    Column("material_bytes", "material bytes", "measured"),
    Column("joules", "J", "measured"),
    Column("paper_memory_gb", "paper, GB", "paper"),
)

_NAMES = (
    Column("model", "model"),
    Column("setting", "setting"),
    Column("batch", "batch"),
    Column("network", "network"),
)

LATENCY = (
    *_NAMES,
    Column("online_latency", "online s", "predicted"),
    Column("paper_online_latency", "paper", "paper"),
    Column("latency", "offline + online s", "predicted"),
    Column("paper_latency", "paper", "paper"),
    Column("dollars_per_sample", "$/sample", "predicted"),
    Column("joules_per_sample", "J/sample", "predicted"),
    Column("idle_joules_per_sample", "idle J", "predicted"),
)

THROUGHPUT = (
    *_NAMES,
    Column("online_throughput", "online/s", "predicted"),
    Column("paper_online_throughput", "paper, batch 128", "paper"),
    Column("throughput", "offline + online/s", "predicted"),
    Column("paper_throughput", "paper, batch 128", "paper"),
    Column("pipelined_throughput", "pipelined/s", "predicted"),
)

VALIDATION = (
    Column("model", "model"),
    Column("setting", "setting"),
    Column("batch", "batch"),
    Column("link", "link"),
    Column("phase", "phase"),
    Column("measured", "measured s", "measured"),
    Column("predicted", "predicted s", "predicted"),
    Column("error", "error, %", "predicted"),
)

MAIN_COSTS = (
    Column("family", "suite"),
    Column("what", "of"),
    Column("first", "largest part"),
    Column("first_share", "%", "predicted"),
    Column("second", "next"),
    Column("second_share", "%", "predicted"),
)
