"""What a process may use under control groups of both versions, by folders as a kernel has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from privet.errors import Misuse
from privet.runtime.machine import Groups, available_memory, machine_memory, usable_cores

NONE_V1 = str((1 << 63) - 4096)
"""What version 1 says of memory without a limit."""


def groups(folder: Path, memberships: str, files: dict[str, str]) -> Groups:
    """Control groups with these files."""
    (folder / "cgroup").write_text(memberships)
    for name, text in files.items():
        path = folder / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return Groups(folder / "cgroup", folder / "fs")


def free(limits: Groups, folder: Path, free_bytes: int) -> int:
    """What is available where the machine itself has `free_bytes` bytes, a multiple of 1024."""
    (folder / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:   {free_bytes >> 10} kB\n")
    return available_memory(limits, folder / "meminfo")


def test_version_2_and_the_groups_above(tmp_path: Path) -> None:
    limits = groups(
        tmp_path,
        "0::/pod/box\n",
        {
            "pod/memory.max": "1000000",
            "pod/memory.current": "700000",
            "pod/memory.stat": "anon 1\ninactive_file 200000",
            "pod/box/memory.max": "max",
            "pod/box/memory.current": "600000",
            "pod/cpu.max": "max 100000",
            "pod/box/cpu.max": "150000 100000",
        },
    )
    assert limits.memory() == machine_memory(limits) == 1_000_000
    assert limits.cores() == 1.5
    assert usable_cores(limits) == sorted(os.sched_getaffinity(0))[:1]
    assert free(limits, tmp_path, 1 << 30) == 500_000
    assert free(limits, tmp_path, 4096) == 4096


def test_version_1_beside_an_empty_version_2(tmp_path: Path) -> None:
    limits = groups(
        tmp_path,
        "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n",
        {
            "memory/memory.limit_in_bytes": NONE_V1,
            "memory/memory.usage_in_bytes": "9000000",
            "memory/box/memory.limit_in_bytes": "800000",
            "memory/box/memory.usage_in_bytes": "600000",
            "memory/box/memory.stat": "inactive_file 1\ntotal_inactive_file 50000",
            "cpu,cpuacct/box/cpu.cfs_quota_us": "50000",
            "cpu,cpuacct/box/cpu.cfs_period_us": "100000",
            "cpu,cpuacct/cpu.cfs_quota_us": "-1",
            "cpu,cpuacct/cpu.cfs_period_us": "100000",
        },
    )
    assert machine_memory(limits) == 800_000
    assert limits.cores() == 0.5
    assert len(usable_cores(limits)) == 1
    assert free(limits, tmp_path, 1 << 30) == 250_000


def test_a_container_that_sees_its_group_as_the_root(tmp_path: Path) -> None:
    limits = groups(
        tmp_path,
        "4:memory:/docker/0123\n",
        {"memory/memory.limit_in_bytes": "4096", "memory/memory.usage_in_bytes": "5000"},
    )
    assert limits.memory() == 4096
    assert free(limits, tmp_path, 1 << 20) == 0


def test_without_limits_the_machine_is_what_there_is(tmp_path: Path) -> None:
    for limits in (
        Groups(tmp_path / "none", tmp_path / "none"),
        groups(tmp_path, "0::/\n", {"memory.max": "max", "cpu.max": "max 100000"}),
    ):
        assert machine_memory(limits) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert usable_cores(limits) == sorted(os.sched_getaffinity(0))
        assert free(limits, tmp_path, 1 << 30) == 1 << 30
    with pytest.raises(Misuse, match="does not tell its memory"):
        available_memory(Groups(), tmp_path / "none")
