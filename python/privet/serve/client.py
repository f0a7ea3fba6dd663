"""The client: asks a server for private predictions."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from privet import _native, suites
from privet.errors import Misuse, PeerMisbehaved, PrivetError
from privet.executor import decode_output, encode_input
from privet.executor.codec import Inputs
from privet.executor.samples import fill, trim
from privet.program import Program
from privet.serve.costs import LayerCost, PhaseCost, read_report
from privet.serve.credentials import Credentials
from privet.serve.dealer import TRUST, dialer
from privet.serve.memory import parse_size

Link = _native.Link

Progress = Callable[[str, int, int, str], None]
"""Called with the phase, steps done, steps in all, and the name of the next step."""

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Result:
    """A private prediction.

    `outputs` are reals by name, `integers` the fixed-point numbers they come from, in the
    program's order; of a batch, both hold an entry along the first axis for each of the `samples`
    given. `offline` is the cost of the material that was spent, wherever it was made; None if it
    was made by an earlier client object.
    """

    outputs: dict[str, Array]
    integers: tuple[Array, ...]
    material: str
    offline: PhaseCost | None
    online: PhaseCost
    layers: tuple[LayerCost, ...]
    samples: int = 1


class Client:
    """A session with a server; use it as a context manager.

    `state` is a directory that keeps material between sessions. `program_hash` is the program
    that the client expects; without it, the client takes the one that the server describes.

    `suite` is `gmw`, for the two parties alone, or `fss`, whose keys come from a dealer.

    `link` (`lan`, `wan`, or round-trip time and bandwidth such as `20ms,100Mbit`) makes the
    connection that slow in both directions, for real. `rounds` is the depth of comparisons in
    `gmw`: `linear`, `log`, `blocks`, or `auto` for the one that is quicker over the link.
    Without `link`, `auto` prefers a depth that material is ready for, then goes by the
    network's measured round trip; on one machine it is `linear`. The attribute `rounds` tells
    the choice, `extension` which OT extension suits the same link for making material,
    `forecast` what it will all take.

    `correlations="dealer"` has the material of `gmw` made by the dealer at `dealer` (`HOST:PORT`),
    whom the server must use as well; it must collude with neither party. Suite `fss` needs it.

    `memory` (bytes, or such as `2GB`) refuses a program for which this process would take more.

    Nothing that the server sends can make the client reveal its input: a wrong program gives wrong
    predictions, so pin the hash if you rely on them.

    # Errors
    `LinkError` if the server cannot be reached, `PeerMisbehaved` if it refuses or does not speak
    the protocol.
    """

    def __init__(
        self,
        host: str,
        port: int,
        credentials: Credentials,
        *,
        state: str | os.PathLike[str],
        model: str | None = None,
        program_hash: str | None = None,
        suite: str = "gmw",
        rounds: str = suites.AUTO,
        truncation: str = "one-bit",
        correlations: str = "parties",
        dealer: str | None = None,
        memory: int | str | None = None,
        link: Link | str | None = None,
        server_name: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        suites.check_suite(suite)
        limit = parse_size(memory)
        self._dealt = suites.is_dealt(suite, correlations)
        if self._dealt and dealer is None:
            raise Misuse("dealt material needs a dealer: say where it listens, HOST:PORT")
        native = credentials.native
        self.link = Link(link) if isinstance(link, str) else link
        connection = _native.Connection.connect(
            host, port, native, server_name or host, timeout, self.link
        )
        connection.set_timeout(timeout)
        way = dialer(dealer, credentials, timeout, self.link)
        self._session = _native.Client(connection, str(Path(state) / "client"), way)
        self.suite = suite
        self.correlations = "dealer" if self._dealt else "parties"
        self.server_fingerprint = connection.peer
        self._costs: dict[str, tuple[PhaseCost, tuple[LayerCost, ...]]] = {}
        try:
            public = self._session.describe(model)
            self.program = Program.from_public_bytes(public)
            network = self.link or _network(connection.rtt)
            plans = suites.plans(public, suite, rounds, truncation, correlations, network)
            self.rounds = self._choose(plans, network)
            self._plan = plans[self.rounds]
            self.forecast = suites.forecast(self._plan)
            if limit is not None:
                self._plan.check_client_memory(limit)
            if program_hash is not None and program_hash != self._plan.program_hash:
                raise PeerMisbehaved(
                    f"the server offers program {self._plan.program_hash}, not {program_hash}: ask "
                    "its operator which one is current"
                )
        except PrivetError:
            self._leave()
            raise

    def _choose(self, plans: dict[str | None, _native.Plan], network: Link | None) -> str | None:
        """The depth to use: by the shaped link, else by what is ready, else by the network."""
        if self.link is not None:
            return suites.quickest(plans, self.link)
        stocked = {depth: plan for depth, plan in plans.items() if self._session.ready(plan)}
        return suites.quickest(stocked or plans, network)

    @property
    def extension(self) -> str | None:
        """The OT extension that makes material; None with a dealer."""
        return self.forecast.extension

    @property
    def trust(self) -> str | None:
        """What results rest on beyond the two parties; None where they need nobody else."""
        return TRUST if self._dealt else None

    @property
    def program_hash(self) -> str:
        """The program's name: SHA-256 of its public half."""
        return self._plan.program_hash

    def ready(self) -> list[str]:
        """Ids of material that is ready for this program with this server."""
        return self._session.ready(self._plan)

    def prepare(self, count: int = 1, *, progress: Progress | None = None) -> list[str]:
        """Makes `count` pieces of material, each good for one inference; their ids."""
        if count < 1:
            raise Misuse(f"count is {count}; at least 1 is possible")
        made = []
        for _ in range(count):
            material, report = self._session.prepare(self._plan, progress)
            self._costs[material] = read_report(report)
            made.append(material)
        return made

    def offline_cost(self, material: str) -> PhaseCost | None:
        """What a piece cost that this object made; None for others."""
        cost = self._costs.get(material)
        return cost[0] if cost else None

    def infer(
        self, inputs: Inputs, *, material: str | None = None, progress: Progress | None = None
    ) -> Result:
        """Runs one private inference on real inputs, by name or in order.

        A program for a batch takes up to that many samples, along the first axis of each input; it
        does the same work for fewer, and the server does not learn their number.

        Uses up the piece `material`, or one that is ready, or makes one. A piece is spent as soon
        as the inference starts, whatever becomes of it.

        # Errors
        `InputError` before anything is spent if an input does not fit; `MaterialError` if the
        piece is missing or used here or at the server; `LinkError`; `PeerMisbehaved`.
        """
        filled, samples = fill(self.program, inputs)
        encoded = encode_input(self.program, filled)
        if material is None:
            ready = self.ready()
            material = ready[0] if ready else self.prepare(progress=progress)[0]
        payload = [array.astype("<i8").tobytes() for array in encoded]
        revealed, report = self._session.infer(self._plan, material, payload, progress)
        integers = tuple(
            np.frombuffer(data, dtype="<i8").reshape(self.program.values[output.value].shape)
            for data, output in zip(revealed, self.program.outputs, strict=True)
        )
        outputs = decode_output(self.program, integers)
        kept = trim(self.program, list(outputs.values()), samples)
        offline, offline_layers = self._costs.pop(material, (None, ()))
        online, online_layers = read_report(report)
        return Result(
            outputs=dict(zip(outputs, kept, strict=True)),
            integers=tuple(trim(self.program, integers, samples)),
            material=material,
            offline=offline,
            online=online,
            layers=offline_layers + online_layers,
            samples=samples,
        )

    def close(self) -> None:
        """Ends the session; prepared material stays for the next."""
        self._session.close()

    def _leave(self) -> None:
        """Closes a session that may have broken: the server need not wait for it."""
        with contextlib.suppress(PrivetError):
            self.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._leave()


def _network(rtt: float | None) -> Link | None:
    """What is taken for the network when only its round trip is known: the bandwidth of `wan`."""
    if rtt is None:
        return None
    return Link(f"{1e6 * min(rtt, 10):.0f}us,{Link('wan').bits_per_second / 1e6:.0f}Mbit")
