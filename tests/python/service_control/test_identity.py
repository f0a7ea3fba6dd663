"""Who a certificate is: nobody becomes an operator by the name in it that is another's mark."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from privet.service.control.identity import Gate

CERTIFICATE = b"the certificate of a client"
OTHER = hashlib.sha256(b"the operator's certificate").hexdigest()
OWN = hashlib.sha256(CERTIFICATE).hexdigest()


class Link:
    """A TLS connection whose peer has shown a certificate of this common name."""

    def __init__(self, name: str | None) -> None:
        self._name = name

    def getpeercert(self, binary_form: bool = False) -> Any:
        if binary_form:
            return CERTIFICATE
        return {"subject": ((("commonName", self._name),),) if self._name is not None else ()}


def request(name: str | None) -> web.Request:
    link = Link(name)
    transport = SimpleNamespace(get_extra_info=lambda _: link)
    return cast(web.Request, SimpleNamespace(transport=transport, headers={}))


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (OTHER, OTHER),
        (":".join(OTHER[i : i + 2] for i in range(0, 64, 2)).upper(), OTHER),
        (OTHER, OTHER.upper()),
        (OTHER, ":".join(OTHER[i : i + 2] for i in range(0, 64, 2))),
        # Without a name people call a client by the beginning of its fingerprint.
        (OWN[:16], None),
    ],
)
def test_a_name_that_reads_as_a_fingerprint_makes_no_operator(
    operator: str, name: str | None
) -> None:
    gate = Gate(operators=[operator])
    assert not gate.identify(request(name)).operator


def test_an_operator_is_known_by_name_or_by_fingerprint() -> None:
    """The control: what the names above would have to be."""
    assert Gate(operators=["olga"]).identify(request("olga")).operator
    assert Gate(operators=[OWN.upper()]).identify(request(None)).operator
    assert Gate(operators=[OTHER[:63]]).identify(request(OTHER[:63])).operator
