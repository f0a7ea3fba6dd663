"""The server: offers compiled models to clients, one thread for each session."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privet import _native
from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.errors import InvalidProgram, PrivetError, Short
from privet.runtime.acceptor import Acceptor, PartyService
from privet.runtime.credentials import Credentials, check_credentials
from privet.runtime.dealer import dialer
from privet.runtime.quantities import check_seconds, parse_size
from privet.runtime.revocation import Revoked
from privet.state_key import state_key
from privet.suites import Policy, make_policy
from privet.suites.costs import LayerCost, PhaseCost, read_report

if TYPE_CHECKING:
    from privet.compiler.program import Program, Weights


@dataclass(frozen=True)
class Finished:
    """A request that the server served, or a session that failed.

    `kind` is `described`, `kept` (the encrypted weights that the client keeps were named, and sent
    if it had not got them), `prepared`, `inferred` or `failed`; `client` the peer's fingerprint, or
    its address if it did not get that far.
    """

    kind: str
    client: str
    model: str | None = None
    material: str | None = None
    cost: PhaseCost | None = None
    layers: tuple[LayerCost, ...] = ()
    error: PrivetError | None = None


Listener = Callable[[Finished], None]

_log = logging.getLogger(__name__)


class Server(PartyService):
    """Serves programs over TLS, once `start` or `serve_forever` is called; use it as a context
    manager or call `close`.

        compiled = privet.compile("model.onnx", calibration=samples)
        with privet.Server(credentials, state="state") as server:
            server.add(compiled.program, compiled.weights)
            host, port = server.start().address

    `policy` says what is accepted, from whom and how often (`privet.make_policy`): by default exact
    truncations and nothing weaker, except that naming a dealer accepts what it deals. Whatever else
    a client asks is refused before anything is made.

    `state` is a directory that keeps material, and counts of answers where the policy limits them.
    `dealer` (`HOST:PORT`) makes material for clients that want it dealt; without one they are
    refused. `memory` (bytes, or such as `2GB`) limits the
    resident memory of this process: weights are kept as compactly as it takes, and jobs wait for
    one another; a program that does not fit is refused. `max_material` limits the material on disk:
    a preparation that would go beyond it is refused, and the client gets `PeerBusy`.

    `weights` is the form in which weights of linear layers are kept for encrypted products:
    `prepared`, transformed once, or `none`, transformed for each use. By default layers of up to
    64 MiB are prepared, within `memory`, which cannot be given as well.

    `revoked` is a file of certificates' fingerprints that are refused from their next request on,
    see `privet.runtime.revocation`.

    `on_finished` is called, from the session's thread, for every request served and every session
    that failed. Neither a failed session nor an `on_finished` that raises (which is logged) ever
    stops the server or another session.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        state: str | os.PathLike[str],
        policy: Policy | None = None,
        dealer: str | None = None,
        memory: int | str | None = None,
        weights: str | None = None,
        max_material: int | str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        timeout: float = 120.0,
        revoked: str | os.PathLike[str] | None = None,
        on_finished: Listener | None = None,
    ) -> None:
        check_credentials(credentials)
        check_seconds(timeout)
        way = dialer(dealer, credentials, timeout)
        limit = parse_size(memory)
        room = parse_size(max_material, "disk space")
        accepted = policy or make_policy(dealer=dealer is not None)
        store = str(Path(state) / "server")
        self._native = _native.Server(store, way, limit, room, accepted, state_key())
        self._on_finished, self._keep = on_finished, weights
        self._revoked = Revoked(revoked)
        super().__init__(
            Acceptor(
                credentials,
                host,
                port,
                timeout,
                self._session,
                self._failed,
                self._revoked,
                self._on_shortage,
            )
        )

    def add(self, program: Program, weights: Weights) -> str:
        """Offers a program from now on; its hash.

        # Errors
        `InvalidProgram` if the halves do not belong together; `Misuse` if a layer does not fit
        secure BFV parameters or the program the memory.
        """
        self._native.add(program.to_public_bytes(), weights.to_private_bytes(), None, self._keep)
        return program.program_hash

    def add_saved(self, folder: str | os.PathLike[str], *, warm: bool | None = None) -> Program:
        """Offers the program that `Compiled.save` wrote, without a copy of its weights in Python.

        With `warm`, its weights are made ready for preparations without a dealer now rather than in
        the first of them; None means to do that if this server has no dealer.

        # Errors
        As `add`; `InvalidProgram` if a file cannot be read.
        """
        from privet.compiler.program import Program

        program = Program.from_public_bytes(_read(folder, PUBLIC_FILE))
        self.add_checked(folder, warm=warm)
        return program

    def add_checked(self, folder: str | os.PathLike[str], *, warm: bool | None = None) -> str:
        """As `add_saved` for a program that was read before, by whoever started this process: only
        what runs it checks it again, and nothing of the compiler is loaded. Its hash."""
        public = _read(folder, PUBLIC_FILE)
        self._native.add(public, _read(folder, PRIVATE_FILE), warm, self._keep)
        return hashlib.sha256(public).hexdigest()

    def _session(self, connection: _native.Connection, client: str) -> None:
        def on_event(kind: str, model: str, material: str | None, report: str | None) -> None:
            cost, layers = read_report(report, by_server=True) if report else (None, ())
            self._notify(Finished(kind, client, model, material, cost, layers))

        def admit(_kind: str, *_request: str | None) -> str | None:
            return self._revoked.refuses(client)

        self._native.serve(connection, on_event, admit)

    def _failed(self, client: str, error: PrivetError) -> None:
        self._notify(Finished("failed", client, error=error))

    def _on_shortage(self, error: Short) -> None:
        """Hears that a client could not be accepted or served for want of something."""

    def _notify(self, finished: Finished) -> None:
        if self._on_finished is None:
            return
        try:
            self._on_finished(finished)
        except Exception:
            _log.exception("on_finished raised on %s", finished)


def _read(folder: str | os.PathLike[str], name: str) -> bytes:
    try:
        return (Path(folder) / name).read_bytes()
    except OSError as error:
        raise InvalidProgram(f"{error.filename} cannot be read: {error.strerror}") from error
