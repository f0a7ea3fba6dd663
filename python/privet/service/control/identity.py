"""Who calls: the client's certificate, and a bearer token where tokens are asked for.

A client is named by the SHA-256 fingerprint of its certificate, as everywhere in Privet; material
and jobs belong to that name. Tokens come on top of certificates, never instead of them: a service
whose authority signs for many uses can admit some of those certificates.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from aiohttp import web
from cryptography import x509

from privet.errors import Misuse
from privet.keys import OPERATOR_NAME
from privet.runtime.credentials import Credentials, common_name
from privet.runtime.revocation import Reread, Revoked
from privet.service.control.calls import Refusal
from privet.suites import client_name, is_fingerprint

_LINE = re.compile(r"([0-9a-f]{64})\s+(\S+)(?:\s+(operator))?")


@dataclass(frozen=True)
class Identity:
    """A caller: `client` is its certificate's fingerprint, `certified` the common name in it, and
    `name` what people call it."""

    client: str
    name: str
    operator: bool
    certified: str | None = None


@dataclass(frozen=True)
class Token:
    """A line of the file of tokens: SHA-256 of one, whose it is, and whether an operator's."""

    digest: str
    name: str
    operator: bool


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Tokens from a file: `SHA256 NAME` or `SHA256 NAME operator` a line; `#` begins a comment.
    Raises `Misuse` if it cannot be read, or a line is something else; the error names the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise Misuse(f"the tokens {path} cannot be read: {error}") from error
    tokens = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise Misuse(
                f"{path}, line {number}: needs the token's SHA-256 in 64 hexadecimal digits, a "
                "name, and for an operator the word operator"
            )
        if match[1] == hashlib.sha256(b"").hexdigest():
            raise Misuse(f"{path}, line {number}: this is the SHA-256 of no token at all")
        tokens.append(Token(match[1], match[2], match[3] is not None))
    return tuple(tokens)


def tls(keys: Path) -> ssl.SSLContext:
    """TLS 1.3 for the control plane: shows `server.pem`, and lets in whom `ca.pem` has signed.
    Raises `Misuse` if a file is missing or no certificate, or the server's is not valid now."""
    return Credentials.from_directory(keys, "server").tls_server()


class Gate:
    """Tells who calls, or refuses.

    `operators` are common names or fingerprints of certificates that may see the operator's page,
    metrics and events. With `tokens` (or a file of them, read again when it changes), every caller
    needs one of them besides. Whose certificate is on the list of the `revoked` is refused.

    Raises `Misuse` if the file of tokens cannot be read.
    """

    def __init__(
        self,
        operators: Iterable[str] = (OPERATOR_NAME,),
        tokens: tuple[Token, ...] | Path = (),
        revoked: Revoked | None = None,
    ) -> None:
        self._operators = frozenset(map(client_name, operators))
        self._file = Reread(tokens, read_tokens) if isinstance(tokens, Path) else None
        self._fixed = () if isinstance(tokens, Path) else tokens
        self._revoked = revoked or Revoked()
        self._token_in: WeakKeyDictionary[ssl.SSLObject, tuple[str, str | None]] = (
            WeakKeyDictionary()
        )
        self._tokens()

    def identify(self, request: web.Request) -> Identity:
        """The caller of a request. Raises `Refusal` 401 if a token is needed and none of ours was
        shown; 403 if the certificate was revoked; 503 if the file of tokens has become
        unreadable."""
        transport = request.transport
        link = transport.get_extra_info("ssl_object") if transport else None
        if link is None:
            raise Refusal(401, "no certificate", "a client certificate is needed")
        client, certified = self._certificate(link)
        why = self.refuses(client)
        if why is not None:
            raise Refusal(403, "revoked", why)
        name = certified or client[:16]
        operator = client in self._operators or (
            # A name that reads as a fingerprint is not the certificate that has it.
            certified is not None
            and not is_fingerprint(client_name(certified))
            and certified in self._operators
        )
        if self._file is None and not self._fixed:
            return Identity(client, name, operator, certified)
        token = self._token(request.headers.get("Authorization", ""))
        return Identity(client, token.name, operator or token.operator, certified)

    def client(self, request: web.Request) -> str:
        """The fingerprint of the certificate that a caller showed, welcome or not; empty if none
        is there any more."""
        transport = request.transport
        link = transport.get_extra_info("ssl_object") if transport else None
        try:
            return self._certificate(link)[0] if link is not None else ""
        except Refusal:
            return ""

    def is_operator(self, request: web.Request) -> bool:
        """Whether an operator calls, as certificates and tokens are now."""
        try:
            return self.identify(request).operator
        except Refusal:
            return False

    def _certificate(self, link: ssl.SSLObject) -> tuple[str, str | None]:
        """Fingerprint and common name, which stay what they are while a connection lasts."""
        if (identity := self._token_in.get(link)) is not None:
            return identity
        certificate = link.getpeercert(binary_form=True)
        if certificate is None:
            raise Refusal(401, "no certificate", "a client certificate is needed")
        fingerprint_and_name = (
            hashlib.sha256(certificate).hexdigest(),
            common_name(link.getpeercert()),
        )
        self._token_in[link] = fingerprint_and_name
        return fingerprint_and_name

    def refuses(self, client: str) -> str | None:
        """Why the client of this fingerprint may ask nothing any more; None if it may."""
        return self._revoked.refuses(client)

    def _tokens(self) -> tuple[Token, ...]:
        return self._fixed if self._file is None else self._file.value()

    def _token(self, header: str) -> Token:
        try:
            tokens = self._tokens()
        except Misuse as error:
            text = "the file of tokens cannot be read here: nobody is let in"
            raise Refusal(503, "tokens", text, 5.0) from error
        digest = hashlib.sha256(_token_in(header)).hexdigest()
        # All are compared, in constant time, so that the time tells nothing of any of them.
        matches = [token for token in tokens if hmac.compare_digest(token.digest, digest)]
        if not matches:
            raise Refusal(
                401,
                "no token",
                "this service asks for a token: Authorization: Bearer TOKEN",
                # A browser asks its user, and sends the token as a password. Each scheme has a line
                # of its own: Chromium reads one in a line, and finds two to be none.
                headers=[
                    ("WWW-Authenticate", 'Basic realm="privet", charset="UTF-8"'),
                    ("WWW-Authenticate", "Bearer"),
                ],
            )
        return matches[0]


def _token_in(header: str) -> bytes:
    """The token in a header: a bearer's, or the password of a user of any name."""
    scheme, _, value = header.partition(" ")
    raw = value.strip().encode(errors="surrogateescape")
    if scheme.lower() == "bearer":
        return raw
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            return base64.b64decode(raw, validate=True).partition(b":")[2]
    return b""


LOCAL = "localhost"


def certificate_name(certificate: Path) -> str:
    """The first host name in a certificate that is not this machine's own; `localhost` if it has no
    other. Raises `Misuse` if it cannot be read, or names no host."""
    try:
        x509_certificate = x509.load_pem_x509_certificate(certificate.read_bytes())
        names_in = x509_certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except (OSError, ValueError, x509.ExtensionNotFound) as error:
        raise Misuse(f"{certificate} names no host ({error}); give --server-name") from error
    names = names_in.get_values_for_type(x509.DNSName)
    names += [str(address) for address in names_in.get_values_for_type(x509.IPAddress)]
    if not names:
        raise Misuse(f"{certificate} names no host; give --server-name")
    return next((name for name in names if name not in (LOCAL, "127.0.0.1", "::1")), names[0])
