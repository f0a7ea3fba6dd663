"""The local endpoint: where applications bring plaintext, and nothing but this client sees it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from privet.errors import Misuse
from privet.gateway.oip.exchange import Exchange
from privet.gateway.oip.rest import application
from privet.gateway.oip.rpc import handlers
from privet.runtime.credentials import authorities, check_dates, trust_authorities
from privet.runtime.listening import HANDSHAKE_SECONDS, ListenerBounds, RenewedTls
from privet.runtime.revocation import Revoked
from privet.service.http import serving

MOST_BYTES = 256 << 20
"""The largest request."""

IDLE_MILLISECONDS = 600_000
"""How long a connection of gRPC may stay open without a call."""

AGE_MILLISECONDS = 600_000
"""After how long a connection of gRPC takes no more calls, so that each caller shows its
certificate again; calls under way go on."""

LISTENERS = 2
"""Those of a gateway: REST and gRPC. They share the files that the process may open."""

CLOSING_SECONDS = 10.0
"""How long calls under way may take once the endpoint closes."""


@dataclass(frozen=True)
class EndpointKeys:
    """PEM files of the endpoint's own TLS: certificate, key, and the authority of the clients that
    may come (anybody without it)."""

    certificate: Path
    key: Path
    clients: Path | None = None

    def context(self) -> ssl.SSLContext:
        """For HTTP. Raises `Misuse` if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.clients is not None:
                trust_authorities(context, self.clients)
                context.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ssl.SSLError) as error:
            raise Misuse(f"{self.certificate} and its key cannot be used: {error}") from error
        check_dates(self.certificate)
        return context

    def grpc(self) -> Any:
        """The same for gRPC, as a configuration of its certificates. Raises `Misuse` if a file
        cannot be used."""
        roots = None
        if self.clients is not None:
            texts = map(ssl.DER_cert_to_PEM_cert, authorities(self.clients))
            roots = "".join(texts).encode()
        pair = (self.key.read_bytes(), self.certificate.read_bytes())
        return grpc.ssl_server_certificate_configuration([pair], roots)


class EndpointTls(RenewedTls):
    """The endpoint's own TLS for connections to come, as `reload` read its files last. Raises
    `Misuse` if a file cannot be used."""

    def __init__(self, keys: EndpointKeys) -> None:
        self._keys = keys
        super().__init__(keys.context)

    def reload(self) -> None:
        """Reads the files; what was read before stays where one cannot be used. Raises `Misuse`
        then."""
        certificates = self._keys.grpc()
        super().reload()
        self._certificates = certificates

    def grpc(self) -> Any:
        """For gRPC, which asks at each connection whether there are others."""
        certificates = self._certificates

        def renewed() -> Any:
            nonlocal certificates
            if self._certificates is certificates:
                return None
            certificates = self._certificates
            return certificates

        required = self._keys.clients is not None
        return grpc.dynamic_ssl_server_credentials(certificates, renewed, required)


def check_place(host: str, tls: EndpointTls | None) -> None:
    """Raises `Misuse` if plaintext would be taken from other machines without TLS."""
    with contextlib.suppress(ValueError):
        if host == "localhost" or ipaddress.ip_address(host).is_loopback:
            return
    if tls is None:
        raise Misuse(
            f"{host} is not this machine alone: inputs come to the gateway as they are, so listen "
            "on 127.0.0.1, or give it TLS of its own"
        )


@contextlib.asynccontextmanager
async def serve_rest(
    exchange: Exchange,
    host: str,
    port: int,
    tls: EndpointTls | None = None,
    revoked: Revoked | None = None,
) -> AsyncIterator[int]:
    """Serves the protocol over HTTP meanwhile, to clients that are not `revoked`; gives the port.
    Raises `Misuse` as `check_place`; `OSError` if nobody can listen there."""
    check_place(host, tls)
    app = application(exchange, MOST_BYTES, revoked)
    bounds = ListenerBounds.of_process(LISTENERS)
    async with serving(
        app, host, port, tls, shutdown=CLOSING_SECONDS, bounds=bounds, cancel=True
    ) as (_, bound):
        yield bound


@contextlib.asynccontextmanager
async def serve_grpc(
    exchange: Exchange,
    host: str,
    port: int,
    tls: EndpointTls | None = None,
    revoked: Revoked | None = None,
    bounds: ListenerBounds | None = None,
) -> AsyncIterator[int]:
    """Serves the protocol over gRPC meanwhile, to clients that are not `revoked`; gives the port.
    Connections beyond all of `bounds` are closed at once. Raises what `serve_rest` does."""
    check_place(host, tls)
    max_sockets = (bounds or ListenerBounds.of_process(LISTENERS)).sockets
    sizes = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
    server = grpc.aio.server(
        options=[
            ("grpc.so_reuseport", 0),
            ("grpc.server_handshake_timeout_ms", int(HANDSHAKE_SECONDS * 1000)),
            ("grpc.max_connection_idle_ms", IDLE_MILLISECONDS),
            ("grpc.max_connection_age_ms", AGE_MILLISECONDS),
            ("grpc.max_allowed_incoming_connections", max_sockets),
            *((size, MOST_BYTES) for size in sizes),
        ]
    )
    server.add_generic_rpc_handlers((handlers(exchange, revoked, tls),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if tls is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(address, tls.grpc())
    except RuntimeError as error:
        raise OSError(f"nobody can listen at {host}:{port}: {error}") from error
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(CLOSING_SECONDS)
        await asyncio.sleep(0)
