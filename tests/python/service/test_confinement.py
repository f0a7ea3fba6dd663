"""What keeps a worker to its bounds, in processes of their own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest


def run(script: str) -> str:
    """What a process prints that runs `script`."""
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return process.stdout.strip() or process.stderr


def test_memory_is_watched_as_it_is_touched() -> None:
    script = """
import os, threading
from privet.service.confinement import MemoryBound, resident_bytes
seen = threading.Event()
bound = MemoryBound(64 << 20, seen.set)
bound.start()
reserved = memoryview(bytearray(0))
import mmap
reserved = mmap.mmap(-1, 128 << 20)        # reserved, not touched
assert not seen.wait(0.2)
for at in range(0, 48 << 20, 4096):
    reserved[at] = 1
assert not seen.wait(0.2)
for at in range(48 << 20, 96 << 20, 4096):
    reserved[at] = 1
assert seen.wait(5)
print("seen")
"""
    assert run(script) == "seen"


def test_a_single_huge_allocation_fails_at_once() -> None:
    script = """
from privet.service.confinement import MemoryBound
bound = MemoryBound(1 << 20, lambda: None)
bound.start()
try:
    bytearray(1 << 31)
except MemoryError:
    bound.end()
    bytearray(1 << 31)
    print("failed, then not")
"""
    assert run(script) == "failed, then not"


@pytest.mark.parametrize("stacks", [True, False], ids=["as it is", "control"])
def test_threads_that_strangers_can_start_leave_room_for_a_job(stacks: bool) -> None:
    script = """
import threading
from privet.runtime.acceptor import MAX_SESSIONS
from privet.service import confinement
if not {stacks}:
    confinement.stack_bytes = lambda: 0
bound = confinement.MemoryBound(48 << 20, lambda: None)
bound.start()
over = threading.Event()
try:
    for _ in range(2 * MAX_SESSIONS):
        threading.Thread(target=over.wait).start()
    bytearray(96 << 20)
    print("all started")
except RuntimeError:
    print("no thread")
over.set()
"""
    assert run(script.format(stacks=stacks)) == ("all started" if stacks else "no thread")


def test_a_job_is_done_also_where_no_thread_can_be_started() -> None:
    script = """
import os, threading
from privet.runtime import PhaseCost
from privet.service.admission import Admission
from privet.service.executor.grant import Grant

class Link:
    def stop(self):
        pass

class Timer(threading.Timer):
    def start(self):
        raise RuntimeError("can't start new thread")

events = []
admission = Admission(lambda event, **fields: events.append(event), lambda: os._exit(1))
core = min(os.sched_getaffinity(0))
admission.open(Grant("job", "infer", "client", "program", "gmw", "here", (core,), 1 << 28, 60.0))
session = admission.session("client", Link())
assert session.admit("infer", "program", "gmw", None) is None
threading.Timer = Timer
session.served(PhaseCost(0.5, 1000, 2000, 3, 10.0))
session.over()
print(*events)
"""
    assert run(script) == "granted finished"


def test_all_threads_are_pinned() -> None:
    script = """
import os, threading
from privet.service import confinement
core = max(os.sched_getaffinity(0))
wait = threading.Event()
thread = threading.Thread(target=wait.wait)
thread.start()
confinement.pin([core])
cores = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
print(len(cores) >= 2 and all(one == {core} for one in cores))
wait.set()
"""
    assert run(script) == "True"


def test_peaks_are_forgotten() -> None:
    script = """
from privet.service import confinement
block = bytearray(256 << 20)
block[::4096] = bytes(len(block[::4096]))
peak = confinement.peak_bytes()
del block
confinement.give_back_memory()
confinement.reset_peak()
print(confinement.peak_bytes() < peak - (200 << 20))
"""
    assert run(script) == "True"


@pytest.mark.parametrize(("hard", "expected"), [("hard", "1 1"), ("0", "0 0")])
def test_no_dump_is_written_or_handed_to_a_program(hard: str, expected: str) -> None:
    # Of 0 bytes a dump would still go to a program that takes it from a pipe.
    script = f"""
import resource
from privet.service.confinement import keep_no_core
_, hard = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, ({hard}, {hard}))
keep_no_core()
print(*resource.getrlimit(resource.RLIMIT_CORE))
"""
    if hard == "hard" and resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("there are no dumps in this environment")
    assert run(script) == expected
