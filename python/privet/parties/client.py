"""The client: asks a server for private predictions."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType

from privet import _native, suites
from privet.errors import Misuse, PrivetError
from privet.executor import encode_input
from privet.executor.codec import Inputs
from privet.executor.samples import fill
from privet.parties import dry
from privet.parties.costs import NOTHING, LayerCost, PhaseCost, read_report
from privet.parties.credentials import Credentials
from privet.parties.dry import Dry
from privet.parties.memory import machine_memory, parse_size
from privet.parties.result import Result, Spent, read_result
from privet.parties.route import Route, Way
from privet.parties.session import Session
from privet.parties.supply import Supply
from privet.program import Program

Link = _native.Link

Progress = Callable[[str, int, int, str], None]
"""Called with the phase, steps done, steps in all, and the name of the next step."""


class Client:
    """A session with a server; use it as a context manager.

    `state` is a directory that keeps material between sessions; any number of clients and pools
    may share it. `program_hash` is the program that the client expects; without it, the client
    takes the one that the server describes.

    `suite` is `gmw`, for the two parties alone, or `fss`, whose keys come from a dealer. With
    `security="malicious"`, in `fss`, a server that deviates from the protocol in any message is
    caught before there is an output, and so is a client.

    `link` (`lan`, `wan`, or round-trip time and bandwidth such as `20ms,100Mbit`) makes the
    connection that slow in both directions, for real. `rounds` is the depth of comparisons in
    `gmw`: `linear`, `log`, `blocks`, or `auto` for the one that is quicker over the link.
    Without `link`, `auto` prefers a depth that material is ready for, then goes by the
    network's measured round trip; on one machine it is `linear`. The attribute `rounds` tells
    the choice, `extension` which OT extension suits the same link for making material,
    `forecast` what it will all take.

    Results are those of the plaintext fixed-point executor, bit for bit. With
    `truncation="one-bit"`, which a server must accept, a truncation may be off by one unit of the
    last place, in a way that tells a client of the weights who repeats an input; results name it
    (`Result.weaknesses`). With `field="prime"`, in `gmw`, linear layers are shared modulo a prime,
    in slots.

    With `linear="online"`, in `gmw`, material holds correlations alone: linear layers run under
    encryption when the input is there. Nothing need be prepared then: correlations that are not in
    store are made while the network runs, and `when_dry="make"` means just that.

    `correlations="dealer"` has the material of `gmw` made by the dealer at `dealer` (`HOST:PORT`),
    whom the server must use as well; it must collude with neither party. Suite `fss` needs it.

    `when_dry` says what to do if no material is ready for an inference: `make` a piece, `wait` as
    long as `timeout` for another process to make one, `refuse`, or a suite to fall back to: to its
    material if there is some, and to making it if none can be made for the suite asked for.

    `memory` (bytes, or such as `2GB`; without it, what the machine has) refuses a program for which
    this process would take more, before anything else is done with it;
    `max_disk` likewise refuses to prepare beyond that much material in `state`.

    Nothing that the server sends can make the client reveal its input: a wrong program gives wrong
    predictions, so pin the hash if you rely on them.

    # Errors
    `LinkError` if the server cannot be reached, `NotAccepted` if its policy does not serve this
    client, `PeerMisbehaved` if it does not speak the protocol.
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
        security: str = "semi-honest",
        rounds: str = suites.AUTO,
        truncation: str = "exact",
        field: str = "ring",
        linear: str = "offline",
        correlations: str = "parties",
        dealer: str | None = None,
        when_dry: str = dry.MAKE,
        memory: int | str | None = None,
        max_disk: int | str | None = None,
        link: Link | str | None = None,
        server_name: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        correlations = suites.in_field(field, suite, correlations)
        way = Way.of(suite, correlations, dealer, security)
        truncation = suites.truncation_of(suite, field, truncation)
        suites.check_linear(suite, way.correlations, linear)
        other = dry.fallback(when_dry, way, dealer)
        self._linear = linear
        limit = parse_size(memory) or machine_memory()
        self.link = Link(link) if isinstance(link, str) else link
        self._when_dry, self._timeout = when_dry, timeout
        self._costs: dict[str, tuple[PhaseCost, tuple[LayerCost, ...]]] = {}
        self._session = Session(
            host,
            port,
            credentials,
            state=state,
            dealer=dealer,
            max_disk=parse_size(max_disk, "disk space"),
            link=self.link,
            server_name=server_name,
            timeout=timeout,
        )
        try:
            # What the server sends is read only if it is the program that was pinned.
            public = self._session.native.describe(model, program_hash)
            self.program = Program.from_public_bytes(public)
            network = self.link or network_of(self._session.rtt)

            def route(way: Way, rounds: str, linear: str = "offline") -> Route:
                pinned = self.link is not None
                return Route(
                    way,
                    public,
                    rounds,
                    truncation,
                    network,
                    pinned=pinned,
                    linear=linear,
                )

            self._asked = route(way, rounds, linear)
            self._other = route(other, suites.AUTO) if other is not None else None
            self._asked.plan.check_client_memory(limit)
            self._asked.settle(self._session.native)
        except PrivetError:
            self._session.leave()
            raise

    @property
    def security(self) -> str:
        """What the server may do: be `semi-honest` or `malicious`."""
        return self._asked.way.security

    @property
    def suite(self) -> str:
        """The suite that was asked for."""
        return self._asked.way.suite

    @property
    def correlations(self) -> str:
        """Who makes the material that was asked for: the `parties`, or a `dealer`."""
        return self._asked.way.correlations

    @property
    def rounds(self) -> str | None:
        """The depth of comparisons; None in a suite without the choice."""
        return self._asked.rounds

    @property
    def forecast(self) -> suites.Forecast:
        """What one preparation and one inference take."""
        return self._asked.forecast

    @property
    def extension(self) -> str | None:
        """The OT extension that makes the correlations; None with a dealer."""
        return self.forecast.extension

    @property
    def trust(self) -> str | None:
        """What results rest on beyond the two parties; None where they need nobody else."""
        return self._asked.way.trust

    @property
    def program_hash(self) -> str:
        """The program's name: SHA-256 of its public half."""
        return self._asked.plan.program_hash

    @property
    def server_fingerprint(self) -> str | None:
        """SHA-256 of the server's certificate."""
        return self._session.peer

    @property
    def label(self) -> str:
        """The suite with its options, as the store labels the material that `prepare` makes."""
        return self._asked.plan.suite

    @property
    def mode(self) -> suites.Mode:
        """All that was asked for and that a server may forbid."""
        return suites.Mode.labelled(self.label)

    @property
    def piece_bytes(self) -> int:
        """Most bytes that a piece takes in `state`."""
        return self._asked.plan.piece_bytes()

    def ready(self) -> list[str]:
        """Ids of material that is ready for this program with this server."""
        return self._session.native.ready(self._asked.plan)

    def prepare(self, count: int = 1, *, progress: Progress | None = None) -> list[str]:
        """Makes `count` pieces of material, each good for one inference; their ids.

        # Errors
        `NotAccepted` if the server's policy does not accept this mode; `PeerBusy` if the server has
        no room for it now, `StoreFull` if this side has none beyond
        `max_disk`; `LinkError`; `PeerMisbehaved`.
        """
        if count < 1:
            raise Misuse(f"count is {count}; at least 1 is possible")
        return [self._make(self._asked, progress) for _ in range(count)]

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

        Uses up the piece `material`, or the first that is ready and that no other process takes
        first; if there is none, does what `when_dry` says. A piece is spent once the server was
        asked, whatever becomes of it, unless the server refuses.

        # Errors
        `InputError` before anything is spent if an input does not fit; `MaterialError` if no
        material is ready and none may be made, or if the piece is missing or used here or at the
        server; `NotAccepted` if the server's policy does not accept this mode, `PeerBusy` if it
        gives no answer now; `LinkError`; `PeerMisbehaved`.
        """
        filled, samples = fill(self.program, inputs)
        encoded = encode_input(self.program, filled)
        payload = [array.astype("<i8").tobytes() for array in encoded]
        if material is not None:
            revealed, report = self._session.native.infer(
                self._asked.plan, material, payload, progress
            )
            return self._result(self._asked, None, (material, revealed, report), samples)

        def take(route: Route) -> Spent | None:
            route.settle(self._session.native)
            return self._session.native.infer_next(route.plan, payload, progress)

        def unprepared(route: Route) -> Spent:
            return "", *self._session.native.infer_unprepared(route.plan, payload, progress)

        supply = Supply(
            self._session,
            self._asked,
            self._other,
            self._when_dry,
            self._timeout,
            take,
            lambda route: self._make(route, progress),
            unprepared if self._linear == "online" else None,
        )
        return self._result(*supply.spend(), samples)

    def _result(self, route: Route, why: Dry | None, spent: Spent, samples: int) -> Result:
        # Without a name nothing was prepared.
        made = self._costs.pop(spent[0], (None, ())) if spent[0] else (NOTHING, ())
        return read_result(
            self.program,
            route.way,
            route.plan.suite,
            route.rounds,
            spent,
            samples,
            made=made,
            dry=why,
        )

    def _make(self, route: Route, progress: Progress | None) -> str:
        material, report = self._session.native.prepare(route.plan, progress)
        self._costs[material] = read_report(report)
        return material

    def close(self) -> None:
        """Ends the session; prepared material stays for the next."""
        self._session.native.close()

    def abandon(self) -> None:
        """Breaks the session from another thread; what it does there fails with `LinkError`."""
        self._session.abandon()

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
            self._session.leave()


def network_of(rtt: float | None) -> Link | None:
    """What is taken for the network when only its round trip is known: the bandwidth of `wan`."""
    if rtt is None:
        return None
    return Link(f"{1e6 * min(rtt, 10):.0f}us,{Link('wan').bits_per_second / 1e6:.0f}Mbit")
