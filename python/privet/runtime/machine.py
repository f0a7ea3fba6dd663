"""What this process may use: cores and memory of the machine, within the limits of control groups.

A container sees the whole machine in `/proc`; its limits stand in files of its control group, of
version 1 or 2, and of the groups above: the tightest holds. Sources: the kernel's
`admin-guide/cgroup-v2.rst`, `admin-guide/cgroup-v1/memory.rst` and `scheduler/sched-bwc.rst`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privet.errors import Misuse

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""The numbers of `mallopt` in glibc's `malloc.h`: how many free bytes the heap keeps, from how many
on a piece of memory is the system's own, and the most heaps."""


@dataclass(frozen=True)
class Groups:
    """Where the system tells of the control groups of this process."""

    memberships: Path = Path("/proc/self/cgroup")
    root: Path = Path("/sys/fs/cgroup")

    def cores(self) -> float | None:
        """Cores' worth of time that this process may have; None without a limit."""
        limits = [_share(folder) for folder in self._folders("cpu")]
        return min((limit for limit in limits if limit is not None), default=None)

    def memory(self) -> int | None:
        """Bytes that this process and the others of its groups may have; None without a limit."""
        return min((limit for _, limit in self._limited()), default=None)

    def free_memory(self) -> int | None:
        """Bytes of `memory` that are free, or hold files that were not used lately; None without a
        limit."""
        free = (max(0, limit - _used_memory(folder)) for folder, limit in self._limited())
        return min(free, default=None)

    def _limited(self) -> Iterator[tuple[Path, int]]:
        for folder in self._folders("memory"):
            for name in ("memory.max", "memory.limit_in_bytes"):
                limit = _number(folder / name)
                if limit is not None:
                    yield folder, limit

    def _folders(self, controller: str) -> Iterator[Path]:
        """The folders of this process's groups that have a controller, each with those above. A
        container may see its own group as the root, under a path that only the host knows."""
        try:
            lines = self.memberships.read_text().splitlines()
        except OSError:
            return
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            mount = self.root / controllers
            if controllers and not mount.is_dir():
                mount = self.root / controller
            group = mount / path.lstrip("/")
            yield group
            while group != mount:
                group = group.parent
                yield group


def usable_cores(groups: Groups | None = None) -> list[int]:
    """The CPUs to put work on: those that this process may run on, and of them as many as its
    control groups give time for, at least one."""
    usable = sorted(os.sched_getaffinity(0))
    limit = (groups or Groups()).cores()
    return usable if limit is None else usable[: max(1, int(limit))]


def machine_memory(groups: Groups | None = None) -> int:
    """Bytes of memory that this machine has, or that its control groups let this process have."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = (groups or Groups()).memory()
    return total if limit is None else min(total, limit)


def available_memory(groups: Groups | None = None, meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes that this process could still take, as Linux estimates it, within the limits of control
    groups and of the process's own address space. Raises `Misuse` where the system does not
    tell."""
    for line in meminfo.read_text().splitlines() if meminfo.exists() else ():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) << 10
            limits = [(groups or Groups()).free_memory(), _left_to_map()]
            return min([available, *(limit for limit in limits if limit is not None)])
    raise Misuse("this system does not tell its memory: say how much jobs may have")


def reachable_memory() -> int:
    """Bytes that this process has in memory, and could still take; where the system does not tell,
    all that the machine has."""
    try:
        return process_memory()[1] + available_memory()
    except (Misuse, FileNotFoundError):
        return machine_memory()


def _left_to_map() -> int | None:
    """Bytes that this process may still map (`ulimit -v`); None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    return max(0, limit - process_memory()[0])


def process_memory() -> tuple[int, int]:
    """Bytes that this process has mapped, and those of them that are in memory."""
    mapped, resident, *_ = map(int, Path("/proc/self/statm").read_text().split())
    page = resource.getpagesize()
    return mapped * page, resident * page


def share_one_heap() -> None:
    """Lets all threads of this process allocate from one heap, before there are others.

    With one for each, glibc keeps for a thread what it freed while another asks the system for as
    much, so that a party may take a fifth more than its plan says. Tensors below 32 MiB come from
    the heap, which keeps 256 MiB of what is free: what goes back to the system gets pages that are
    empty each time, and to fill these took a sixth of a party's time. A worker gives all of it back
    after each job (`privet.service.confinement`).
    """
    with contextlib.suppress(AttributeError):  # only glibc has it
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, 32 << 20)
        mallopt(M_TRIM_THRESHOLD, 256 << 20)


def _share(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split()
    if not words:
        words = [_text(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    return int(words[0]) / int(words[1])


def _used_memory(folder: Path) -> int:
    usage = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes") or 0
    counts = dict(line.split() for line in _text(folder / "memory.stat").splitlines())
    spare = counts.get("total_inactive_file", counts.get("inactive_file", "0"))
    return max(0, usage - int(spare))


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
