"""The name by which clients check the server's certificate."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from privet.errors import Misuse

LOCAL = "localhost"


def certificate_name(certificate: Path) -> str:
    """The first host name in a certificate that is not this machine's own; `localhost` if it has
    no other.

    # Errors
    `Misuse` if it cannot be read, or names no host.
    """
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        found = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound) as error:
        raise Misuse(f"{certificate} names no host ({error}); give --server-name") from error
    names = found.get_values_for_type(x509.DNSName)
    names += [str(address) for address in found.get_values_for_type(x509.IPAddress)]
    if not names:
        raise Misuse(f"{certificate} names no host; give --server-name")
    return next((name for name in names if name not in (LOCAL, "127.0.0.1", "::1")), names[0])
