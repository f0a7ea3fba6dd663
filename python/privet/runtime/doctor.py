"""What a machine has for private inference: instructions, cores, memory, clock, ports, files.

Each finding is ok, a note (it works, but slower or in part) or wrong (something will be refused),
and says what to do unless it is ok.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from privet.errors import Misuse
from privet.runtime.credentials import check_dates
from privet.runtime.listening import LEAST_CONNECTIONS, RESERVED_FILES
from privet.runtime.machine import Groups, available_memory, machine_memory, usable_cores
from privet.suites.ckks.program import MODULE, PROGRAM, module_paths, program_path
from privet.suites.text import size

NEEDED = {"aes", "avx2", "pclmulqdq"}
"""Instructions without which each kernel has a portable, much slower twin."""
FASTER = {"avx512f", "avx512bw", "avx512ifma", "vaes", "gfni"}
"""Instructions for which kernels of their own exist."""
LITTLE_MEMORY = 1 << 30
LITTLE_DISK = 5 << 30
FEW_DESCRIPTORS = 4096
LEAST_DESCRIPTORS = RESERVED_FILES + 3 * LEAST_CONNECTIONS
"""As many as a gateway needs, which listens at two ports, with what is open when it starts."""
UNSYNCHRONISED = 5
"""What `adjtimex` of Linux returns while nothing keeps the clock right."""


@dataclass(frozen=True)
class MachineFinding:
    """One thing about this machine: `state` is `ok`, `note` or `wrong`."""

    about: str
    state: str
    found: str
    advice: str = ""


def examine(
    keys: Path | None, state: Path | None, listen: Sequence[tuple[str, int]]
) -> Iterator[MachineFinding]:
    """All findings; folders and addresses are looked at if they are given."""
    yield instructions(Path("/proc/cpuinfo"))
    yield from resources()
    yield clock()
    yield descriptors()
    yield core_dumps(Path("/proc/sys/kernel/core_pattern"))
    yield from programs()
    for host, port in listen:
        yield can_listen(host, port)
    if keys is not None:
        yield from key_folder(keys)
    if state is not None:
        yield state_folder(state)


def instructions(cpuinfo: Path) -> MachineFinding:
    """Which vector instructions the processor has."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    have = ", ".join(sorted(flags & (NEEDED | FASTER))) or f"{platform.machine()}, unknown"
    missing = ", ".join(sorted(NEEDED - flags)), ", ".join(sorted(FASTER - flags))
    if missing[0]:
        advice = f"without {missing[0]} portable code runs, several times slower: use another host"
        return MachineFinding("instructions", "note", have, advice)
    if missing[1]:
        return MachineFinding("instructions", "ok", f"{have} (newer processors also {missing[1]})")
    return MachineFinding("instructions", "ok", have)


def resources() -> Iterator[MachineFinding]:
    """Cores and memory, within the limits of control groups."""
    groups = Groups()
    machine = os.cpu_count() or 1
    limited = " by its control group or affinity" if len(usable_cores(groups)) < machine else ""
    yield MachineFinding("cores", "ok", f"{len(usable_cores(groups))} of {machine}{limited}")
    total = machine_memory(groups)
    try:
        free = available_memory(groups)
    except Misuse as error:
        yield MachineFinding("memory", "note", size(total), str(error))
        return
    room = f"{size(free)} free of {size(total)}"
    if groups.memory() is not None:
        room += " by its control group"
    little = "most models will be refused: raise the limit, or free some"
    yield MachineFinding(
        "memory", *(("wrong", room, little) if free < LITTLE_MEMORY else ("ok", room))
    )


def clock() -> MachineFinding:
    """Whether something keeps the clock right: certificates depend on it."""
    try:
        status = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    except (AttributeError, OSError):
        status = -1
    if status == UNSYNCHRONISED or status < 0:
        advice = "certificates need the right time: run an NTP service on the host"
        return MachineFinding(
            "clock", "note", "this system does not say that it is synchronised", advice
        )
    return MachineFinding("clock", "ok", "synchronised")


def descriptors() -> MachineFinding:
    """How many files and connections a service may have, which raises its limit to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return MachineFinding("descriptors", "ok", "any number")
    if hard >= FEW_DESCRIPTORS:
        return MachineFinding("descriptors", "ok", f"{hard}")
    raise_it = "raise the hard limit (`ulimit -Hn` as root, LimitNOFILE= of systemd)"
    if hard < LEAST_DESCRIPTORS:
        advice = f"a service or gateway needs {LEAST_DESCRIPTORS}: {raise_it}"
        return MachineFinding("descriptors", "wrong", f"{hard} at most", advice)
    advice = f"a service admits about {hard // 2} connections: {raise_it}"
    return MachineFinding("descriptors", "note", f"{hard} at most", advice)


def core_dumps(pattern: Path) -> MachineFinding:
    """Whether a program that takes core dumps from a pipe would get a worker's."""
    piped = pattern.exists() and pattern.read_text().startswith("|")
    if piped and resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        advice = "a limit of 0 bytes does not hold for it: start with one of 1 byte (LimitCORE=1)"
        return MachineFinding("core dumps", "note", "a program takes them, of workers too", advice)
    return MachineFinding("core dumps", "ok", "none of workers")


def programs() -> Iterator[MachineFinding]:
    """The program of suite ckks, its client for browsers, and optional packages."""
    for about, path in ((PROGRAM, program_path), (MODULE, module_paths)):
        try:
            path()
        except Misuse as error:
            yield MachineFinding(about, "note", "not there", str(error))
        else:
            yield MachineFinding(about, "ok", "there")
    for extra, module, use in (
        ("serve", "onnxruntime", "to run, compile and serve models"),
        ("gateway", "grpc", "for `privet gateway`"),
    ):
        is_installed = find_spec(module) is not None
        advice = "" if is_installed else f"{use}: pip install 'privet[{extra}]'"
        state = "installed" if is_installed else "not installed"
        yield MachineFinding(f"privet[{extra}]", "ok" if is_installed else "note", state, advice)


def can_listen(host: str, port: int) -> MachineFinding:
    """Whether a service can take an address."""
    about = f"address {host}:{port}"
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind[0], kind[1]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(kind[4])
    except OSError as error:
        advice = "another program has it, or it needs more rights: take another port"
        return MachineFinding(about, "wrong", error.strerror or str(error), advice)
    return MachineFinding(about, "ok", "free")


def key_folder(folder: Path) -> Iterator[MachineFinding]:
    """Keys that others can read, authorities' keys left behind, and dates of certificates."""
    if not folder.is_dir():
        yield MachineFinding(
            "keys", "wrong", f"{folder} is no folder", f"`privet keys {folder}` makes it"
        )
        return
    for key in sorted(folder.glob("*.key")):
        if key.stat().st_mode & 0o077:
            advice = f"others of this machine can read a private key: chmod 600 {key}"
            yield MachineFinding("keys", "wrong", f"{key} {key.stat().st_mode & 0o777:o}", advice)
    if (folder / "ca.key").exists():
        advice = "it can issue certificates that all parties trust: move it off this machine"
        yield MachineFinding("keys", "note", f"{folder / 'ca.key'} is here", advice)
    for certificate in sorted(folder.glob("*.pem")):
        try:
            check_dates(certificate)
        except Misuse as error:
            yield MachineFinding("certificate", "wrong", certificate.name, str(error))
        else:
            yield MachineFinding("certificate", "ok", f"{certificate.name} is valid now")


def state_folder(folder: Path) -> MachineFinding:
    """Whether state can be written where nobody else reads it, and has room."""
    parent = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not os.access(parent, os.W_OK):
        return MachineFinding(
            "state", "wrong", f"{parent} cannot be written", f"chown it, or chmod u+w {parent}"
        )
    if parent == folder.absolute() and folder.stat().st_mode & 0o077:
        mode = f"{folder} {folder.stat().st_mode & 0o777:o}"
        return MachineFinding(
            "state", "wrong", mode, f"others can read material: chmod 700 {folder}"
        )
    room = shutil.disk_usage(parent).free
    if room < LITTLE_DISK:
        return MachineFinding(
            "state", "note", f"{size(room)} free at {parent}", "material may need more"
        )
    return MachineFinding("state", "ok", f"{size(room)} free at {parent}")
