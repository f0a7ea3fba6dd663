"""Asks a service as an operator, for its state and more: for `privet top` and scripts."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from privet.errors import LinkError, Misuse
from privet.runtime.credentials import Credentials
from privet.runtime.quantities import split_address


class Watch:
    """A connection to the control plane at `address` (`HOST:PORT`), as an operator.

    `keys` is a directory with `ca.pem`, `ROLE.pem` and `ROLE.key`; `token` a bearer token, where
    the service asks for one. `server_name` is checked against the server's certificate.
    """

    def __init__(
        self,
        address: str,
        keys: Path,
        role: str = "operator",
        token: str | None = None,
        server_name: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        self._host, self._port = split_address(address)
        self._name = server_name or self._host
        self._timeout = timeout
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tls = Credentials.from_directory(keys, role).tls()
        self._connection: http.client.HTTPSConnection | None = None

    def state(self) -> dict[str, Any]:
        """The state, as `/v2/state` tells it. Raises what `ask` does."""
        return self.ask("GET", "/v2/state")

    def ask(self, method: str, path: str) -> dict[str, Any]:
        """What the service answers to a call without a body. Raises `LinkError` if the service does
        not answer; `Misuse` if it refuses."""
        connection = self._connection or _Named(
            self._name, self._host, self._port, timeout=self._timeout, context=self._tls
        )
        try:
            connection.request(method, path, headers=self._headers)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise LinkError(f"{self._host}:{self._port} does not answer: {error}") from error
        self._connection = connection
        if response.status != 200:
            raise Misuse(f"{self._host}:{self._port} refuses: {answer.get('error')}")
        return answer

    def close(self) -> None:
        """Closes the connection; the next call opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class _Named(http.client.HTTPSConnection):
    """A connection to a host whose certificate bears another name."""

    def __init__(self, name: str, host: str, port: int, **options: Any) -> None:
        self._name, self._link = name, options["context"]
        super().__init__(host, port, **options)

    def connect(self) -> None:
        """Connects, and checks the name."""
        http.client.HTTPConnection.connect(self)
        self.sock = self._link.wrap_socket(self.sock, server_hostname=self._name)
