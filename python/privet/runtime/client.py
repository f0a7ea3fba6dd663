"""The client: asks a server for private predictions."""

from __future__ import annotations

import os
import time
from functools import partial

from privet import _native, suites
from privet.compiler.executor import encode_input
from privet.compiler.executor.codec import Inputs
from privet.compiler.executor.samples import fill
from privet.compiler.program import Program
from privet.errors import MaterialError, Misuse, PeerError, PrivetError
from privet.runtime.credentials import Credentials
from privet.runtime.machine import machine_memory
from privet.runtime.quantities import check_seconds, parse_size
from privet.runtime.result import Inference, Result, read_result
from privet.runtime.route import MAKE, REFUSE, WAIT, Dry, Route, check_dealer, fallback
from privet.runtime.session import Session
from privet.runtime.store import MaterialStore
from privet.suites import MaterialSuite, Progress, Suite
from privet.suites.costs import NOTHING, LayerCost, PhaseCost, read_report

Link = _native.Link

POLL_SECONDS = 0.1
"""How often a client that waits looks for material."""
FRESH_SECONDS = 10.0
"""A client that waited longer than this connects anew: the server may have hung up on it."""


class Client:
    """A session with a server; use it as a context manager.

    `state` is a directory that keeps material between sessions; any number of clients may
    share it. `program_hash` is the program that the client expects; without it, the client
    takes the one that the server describes.

    `suite` is a suite with its options, such as `privet.Gmw(rounds="log")`, or the name of one for
    its defaults; it must be one that makes material. If a dealer makes it, that is the one at
    `dealer` (`HOST:PORT`), whom the server must use as well; it must collude with neither party.
    What promises less than the default is served only where the server accepts it, and results
    name it (`Result.weaknesses`).

    `link` (`lan`, `wan`, or round-trip time and bandwidth such as `20ms,100Mbit`) makes the
    connection that slow in both directions, for real. What the suite leaves open is taken as it
    suits the link. Without `link`, what material is ready for comes first, then what suits the
    network's measured round trip. The attribute `suite` tells the choice, `extension` which OT
    extension suits the same link for making material, `forecast` what it will all take.

    `when_dry` says what to do if no material is ready for an inference: `make` an entry, `wait` as
    long as `timeout` for another process to make one, `refuse`, or a suite to fall back to: to its
    material if there is some, and to making it if none can be made for the suite asked for.

    `memory` (bytes, or such as `2GB`; without it, what the machine has) refuses a program for which
    this process would take more, before anything else is done with it;
    `max_disk` likewise refuses to prepare beyond that much in `state`, encrypted weights included,
    of which those that were used longest ago make place for others, with a warning.

    A preparation leaves in `state` what stands in for base OTs the next time with this server,
    once; with `keep_base_ots=False` none does, and each begins as the first with a server must.

    Of a program with state, inferences are steps of a sequence: each goes on where the one before
    ended, and `restart` begins another. State lives as long as the session, in memory.

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
        suite: Suite | str = suites.DEFAULT,
        dealer: str | None = None,
        when_dry: str = MAKE,
        memory: int | str | None = None,
        max_disk: int | str | None = None,
        link: Link | str | None = None,
        server_name: str | None = None,
        timeout: float = 120.0,
        keep_base_ots: bool = True,
    ) -> None:
        check_seconds(timeout)
        config = suites.material_suite(suites.as_suite(suite))
        check_dealer(config, dealer)
        other_config = fallback(when_dry, config, dealer)
        limit = parse_size(memory) or machine_memory()
        self.link = Link(link) if isinstance(link, str) else link
        self._when_dry, self._timeout = when_dry, timeout
        self._step = 0
        self._costs: dict[str, tuple[PhaseCost, tuple[LayerCost, ...]]] = {}
        self._session = Session(
            host,
            port,
            credentials,
            store=partial(MaterialStore, state, most=parse_size(max_disk, "disk space")),
            dealer=dealer,
            link=self.link,
            server_name=server_name,
            timeout=timeout,
            keep_base_ots=keep_base_ots,
        )
        try:
            # What the server sends is read only if it is the program that was pinned.
            public = self._session.native.describe(model, program_hash)
            self.program = Program.from_public_bytes(public)
            network = self.link or network_of(self._session.rtt)

            pinned = self.link is not None
            self._route = Route(config, public, network, pinned=pinned)
            self._fallback_route = (
                Route(other_config, public, network, pinned=pinned) if other_config else None
            )
            self._route.plan.check_client_memory(limit)
            self._route.choose(self._session.native)
        except PrivetError:
            self._session.leave()
            raise

    @property
    def suite(self) -> MaterialSuite:
        """The suite that was asked for, every choice made."""
        return self._route.suite

    @property
    def forecast(self) -> suites.Forecast:
        """What one preparation and one inference take."""
        return self._route.forecast

    @property
    def extension(self) -> str | None:
        """The OT extension that makes the correlations; None with a dealer."""
        return self.forecast.extension

    @property
    def program_hash(self) -> str:
        """The program's name: SHA-256 of its public half."""
        return self._route.plan.program_hash

    @property
    def server_fingerprint(self) -> str | None:
        """SHA-256 of the server's certificate."""
        return self._session.peer

    @property
    def label(self) -> str:
        """The suite with its options, as the store labels the material that `prepare` makes."""
        return self._route.plan.suite

    @property
    def entry_bytes(self) -> int:
        """Most bytes that an entry takes in `state`."""
        return self._route.plan.entry_bytes()

    def ready(self) -> list[str]:
        """Ids of material that is ready for this program with this server."""
        return self._session.native.ready(self._route.plan)

    def prepare(self, count: int = 1, *, progress: Progress | None = None) -> list[str]:
        """Makes `count` material entries, each good for one inference; their ids.

        # Errors
        `NotAccepted` if the server's policy does not accept this mode; `PeerBusy` if the server has
        no room for it now, `StoreFull` if this side has none beyond
        `max_disk`; `LinkError`; `PeerMisbehaved`.
        """
        if count < 1:
            raise Misuse(f"count is {count}; at least 1 is possible")
        return [self._make(self._route, progress) for _ in range(count)]

    def infer(
        self, inputs: Inputs, *, material: str | None = None, progress: Progress | None = None
    ) -> Result:
        """Runs one private inference on real inputs, by name or in order.

        A program for a batch takes up to that many samples, along the first axis of each input; it
        does the same work for fewer, and the server does not learn their number.

        Uses up the entry `material`, or the first that is ready and that no other process takes
        first; if there is none, does what `when_dry` says. An entry is spent once the server was
        asked, whatever becomes of it, unless the server refuses.

        # Errors
        `InputError` before anything is spent if an input does not fit; `MaterialError` if no
        material is ready and none may be made, if the entry is missing or used here or at the
        server, or if the state that the inference goes on with is gone; `NotAccepted` if the
        server's policy does not accept this mode, `PeerBusy` if it gives no answer now;
        `LinkError`; `PeerMisbehaved`.
        """
        filled, samples = fill(self.program, inputs)
        encoded = encode_input(self.program, filled)
        payload = [array.astype("<i8").tobytes() for array in encoded]
        if material is not None:
            self._check_step(self._route)
            revealed, report = self._session.native.infer(
                self._route.plan, material, payload, progress
            )
            return self._result(self._route, None, (material, revealed, report), samples)
        return self._result(*self._spend(payload, progress), samples)

    def restart(self) -> None:
        """Ends a sequence: of a program with state, the next inference is the first of another."""
        self._step = 0
        self._session.native.end_sequence()

    def _check_step(self, route: Route) -> None:
        """Raises `MaterialError` if the state is gone: nobody asked for another sequence."""
        if self.program.state and self._session.native.step(route.plan) != self._step:
            raise MaterialError(
                f"the state of step {self._step} is gone: an inference failed, the session was "
                "opened anew, or the material is of another suite. Call restart and begin again"
            )

    # Material -----------------------------------------------------------------------------------

    def _spend(
        self, payload: list[bytes], progress: Progress | None
    ) -> tuple[Route, Dry | None, Inference]:
        """Infers on the next entry: on which route, why on that one, and what came of it. Raises
        `MaterialError` if there is none and none may be made, or none came in time."""
        inference = self._take(self._route, payload, progress)
        if inference is not None:
            return self._route, None, inference
        if self._when_dry == REFUSE:
            raise self._refusal("")
        if self._when_dry == WAIT:
            return self._wait(payload, progress)
        if self._when_dry == MAKE and self.suite.refills:
            self._check_step(self._route)
            native = self._session.native
            answer = native.infer_unprepared(self._route.plan, payload, progress)
            return self._route, Dry("refilled", 0.0), ("", *answer)
        if self._fallback_route is None:
            return self._make_and_take(self._route, payload, progress, time.monotonic())
        return self._fall_back(self._fallback_route, payload, progress)

    def _take(
        self, route: Route, payload: list[bytes], progress: Progress | None
    ) -> Inference | None:
        """Infers on a ready entry of a route; None if there is none."""
        route.choose(self._session.native)
        self._check_step(route)
        return self._session.native.infer_next(route.plan, payload, progress)

    def _wait(
        self, payload: list[bytes], progress: Progress | None
    ) -> tuple[Route, Dry, Inference]:
        """Waits until another process has made an entry."""
        start = open_time = time.monotonic()
        while True:
            now = time.monotonic()
            if self._route.choose(self._session.native):
                if now - open_time > FRESH_SECONDS:
                    self._session.reopen()
                    open_time = time.monotonic()
                inference = self._take(self._route, payload, progress)
                if inference is not None:
                    return self._route, Dry("waited", now - start), inference
            if now - start > self._timeout:
                raise self._refusal(f" after {now - start:.0f} s")
            time.sleep(POLL_SECONDS)

    def _make_and_take(
        self,
        route: Route,
        payload: list[bytes],
        progress: Progress | None,
        start: float,
        reason: str | None = None,
    ) -> tuple[Route, Dry, Inference]:
        """Makes material until an entry is left by other processes that share the store."""
        while True:
            self._make(route, progress)
            seconds = time.monotonic() - start
            inference = self._take(route, payload, progress)
            if inference is not None:
                if route is self._route:
                    return route, Dry("made", seconds), inference
                return route, Dry("fell back", seconds, self.label, reason), inference

    def _fall_back(
        self, fallback_route: Route, payload: list[bytes], progress: Progress | None
    ) -> tuple[Route, Dry, Inference]:
        start = time.monotonic()
        inference = self._take(fallback_route, payload, progress)
        if inference is not None:
            return fallback_route, Dry("fell back", 0.0, self.label), inference
        try:
            return self._make_and_take(self._route, payload, progress, start)
        except PeerError as error:
            # A refusal ends a session.
            self._session.reopen()
            return self._make_and_take(fallback_route, payload, progress, start, str(error))

    def _refusal(self, since: str) -> MaterialError:
        return MaterialError(
            f"no material is ready for suite {self.label}{since}, and this client makes none: "
            "prepare some"
        )

    def _result(self, route: Route, dry: Dry | None, inference: Inference, samples: int) -> Result:
        # Without a name nothing was prepared.
        self._step += 1
        cost = self._costs.pop(inference[0], (None, ())) if inference[0] else (NOTHING, ())
        return read_result(
            self.program,
            route.suite,
            inference,
            samples,
            cost=cost,
            dry=dry,
        )

    def _make(self, route: Route, progress: Progress | None) -> str:
        material, report = self._session.native.prepare(route.plan, progress)
        self._session.warn_of_evicted()
        self._costs[material] = read_report(report)
        return material

    def close(self) -> None:
        """Ends the session; prepared material stays for the next."""
        self._session.native.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._session.leave()


def network_of(rtt: float | None) -> Link | None:
    """What is taken for the network when only its round trip is known: the bandwidth of `wan`."""
    if rtt is None:
        return None
    return Link(f"{1e6 * min(rtt, 10):.0f}us,{Link('wan').bits_per_second / 1e6:.0f}Mbit")
