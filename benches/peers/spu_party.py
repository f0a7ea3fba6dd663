"""One party of SPU: `.venv-spu/bin/python -m benches.peers.spu_party JOB.json`.

The client's input is shared between both parties before the clock starts; the weights are private
values of the server, by which SPU multiplies at the lowest cost. The clock runs from the creation
of the runtime (its keys and base OTs are made after that) until the client holds the output. A
short task runs a second time with the same runtime, which has its keys and OTs by then. The last
line of standard output is a JSON object; SPU's own lines, one a run with its traffic, come before.
"""

# mypy: disable-error-code="import-not-found,import-untyped"
from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import spu
from spu import libspu

CLIENT, SERVER = 0, 1
WAIT_MS = 20 * 60 * 1000
# Of longer tasks the setup is too small a part to be worth the time of a second run.
AGAIN_BELOW_SECONDS = 10.0


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Runs the job's party (0 the client, 1 the server) and returns its figures."""
    folder, rank = Path(job["folder"]), int(job["rank"])
    config = _config(job["protocol"])
    names = json.loads((folder / "names.json").read_text())
    executable = libspu.Executable(
        name="task",
        input_names=names["inputs"],
        output_names=names["outputs"],
        code=(folder / "executable.bin").read_bytes(),
    )
    link = _connect(job["ports"], rank)
    io = spu.Io(2, config)
    shares = _inputs(io, link, rank, folder, names["inputs"])
    link.barrier()
    start = time.perf_counter()
    runtime = spu.Runtime(link, config)
    output, bytes_sent = _infer(runtime, io, link, executable, shares)
    times = [time.perf_counter() - start]
    repeat = times[0] < AGAIN_BELOW_SECONDS if rank == CLIENT else None
    if _agree(link, repeat):
        start = time.perf_counter()
        output, bytes_sent = _infer(runtime, io, link, executable, shares)
        times.append(time.perf_counter() - start)
    link.stop_link()
    report: dict[str, Any] = {"output_bytes": bytes_sent, "peak_rss_mb": _peak_mb()}
    if output is not None:
        error = np.abs(output - np.load(folder / "expected.npy")).max()
        report |= {"seconds": times, "max_abs_error": float(error)}
    return report


def _infer(
    runtime: Any, io: Any, link: Any, executable: Any, shares: list[Any]
) -> tuple[Any | None, int]:
    """The output (None at the server) and how many bytes revealing it took."""
    for name, share in zip(executable.input_names, shares, strict=True):
        runtime.set_var(name, share)
    runtime.run(executable)
    output_share = runtime.get_var(executable.output_names[0])
    if link.rank == SERVER:
        bytes_sent = _send(link, CLIENT, output_share)
        link.barrier()
        return None, bytes_sent
    output = io.reconstruct([output_share, _receive(link, SERVER)])
    link.barrier()
    return output, 0


def _agree(link: Any, repeat: bool | None) -> bool:
    """The client's decision (None at the server), known to both."""
    if repeat is None:
        return bool(int(link.recv(CLIENT)))
    link.send(SERVER, str(int(repeat)))
    return repeat


def _config(protocol: str) -> Any:
    config = libspu.RuntimeConfig(
        protocol=getattr(libspu.ProtocolKind, protocol), field=libspu.FieldType.FM64
    )
    # Lets values stay private to one party, here the weights.
    config.experimental_enable_colocated_optimization = True
    # Prints the traffic; its clock reads cost nothing that could be seen.
    config.enable_pphlo_profile = True
    return config


def _connect(ports: list[int], rank: int) -> Any:
    parties = libspu.link.Desc()
    for name, port in zip(("client", "server"), ports, strict=True):
        parties.add_party(name, f"127.0.0.1:{port}")
    parties.recv_timeout_ms = parties.http_timeout_ms = WAIT_MS
    return libspu.link.create_brpc(parties, rank)


def _inputs(io: Any, link: Any, rank: int, folder: Path, names: list[str]) -> list[Any]:
    """This party's share of the input, and its view of the weights (the client's is empty)."""
    secret = libspu.Visibility.VIS_SECRET
    if rank == CLIENT:
        own_share, peer_share = io.make_shares(np.load(folder / "input-last.npy"), secret)
        _send(link, SERVER, peer_share)
    else:
        own_share = _receive(link, CLIENT)
    shares = [own_share]
    with np.load(folder / "weights-last.npz") as weights:
        for name in names[1:]:
            weight = weights[name] if rank == SERVER else np.zeros_like(weights[name])
            shares.append(io.make_shares(weight, secret, SERVER)[rank])
    return shares


def _send(link: Any, rank: int, share: Any) -> int:
    parts = [bytes(share.meta), *(bytes(chunk) for chunk in share.share_chunks)]
    link.send(rank, str(len(parts)))
    for part in parts:
        link.send(rank, part)
    return sum(len(part) for part in parts)


def _receive(link: Any, rank: int) -> Any:
    count = int(link.recv(rank))
    share = libspu.Share()
    share.meta, *chunks = (link.recv(rank) for _ in range(count))
    share.share_chunks = chunks
    return share


def _peak_mb() -> float:
    # `ru_maxrss` would include what the parent held before the program was loaded.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) * 1024 / 1e6, 1)
    return 0.0


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))), flush=True)  # noqa: T201
