"""`privet keys`: certificates for a first try."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from privet.cli.console import Console
from privet.keys import ALWAYS_NAMED, ROLES, VALIDITY_DAYS, KeyPaths, fingerprint, issue, make


def keys(
    directory: Annotated[
        Path, typer.Argument(help="Where to write the files; created if missing.", file_okay=False)
    ],
    server_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Host name or address under which clients reach the server; may be repeated. "
            f"Always included: {', '.join(ALWAYS_NAMED)}.",
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=825, help="How long the certificates are valid.")
    ] = VALIDITY_DAYS,
    members: Annotated[
        int,
        typer.Option(min=0, max=20, help="Also a certificate for each member of a cohort."),
    ] = 0,
    keep_ca_key: Annotated[
        bool,
        typer.Option("--keep-ca-key", help="Also write ca.key, which can issue more certificates."),
    ] = False,
    client: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Issue NAME.pem and NAME.key for another client instead, by the kept ca.key; give "
            "the option again for more.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Make a private certificate authority and a certificate for each party; or one for another
    client."""
    if client:
        for name in client:
            _print_identity(name, *issue(directory, name, days=days), as_json)
        return
    paths = make(
        directory,
        server_name or (),
        days=days,
        members=members,
        keep_ca_key=keep_ca_key,
        force=force,
    )
    if as_json:
        typer.echo(json.dumps(_as_object(paths)))
    else:
        _show(paths)


def _print_identity(name: str, certificate: Path, key: Path, as_json: bool) -> None:
    fields = {"client": name, "certificate": str(certificate), "key": str(key)}
    fields["fingerprint"] = fingerprint(certificate)
    if as_json:
        typer.echo(json.dumps(fields))
        return
    typer.echo(
        f"{name} needs {certificate.with_name('ca.pem')}, {certificate} as client.pem, "
        f"{key} as client.key\n  certificate's SHA-256 {fields['fingerprint']}"
    )


def _as_object(paths: KeyPaths) -> dict[str, object]:
    def party(certificate: Path, key: Path) -> dict[str, str]:
        return {
            "certificate": str(certificate),
            "key": str(key),
            "fingerprint": fingerprint(certificate),
        }

    return {
        "ca": str(paths.ca),
        "ca_key": str(paths.ca_key) if paths.ca_key else None,
        **{role: party(*paths.of(role)) for role in ROLES},
    }


def _show(paths: KeyPaths) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for party in ROLES:
        certificate, key = paths.of(party)
        files = " ".join(map(str, (paths.ca, certificate, key)))
        holder = {
            "dealer": "A dealer, if you use one,",
            "operator": "An operator who watches a service",
        }.get(party, Text.assemble("The ", (party, "bold")))
        console.print(Text.assemble(holder, f" needs {files}"))
        console.print(f"  certificate's SHA-256 {fingerprint(certificate)}", style="dim")
    if paths.ca_key:
        warning = f"{paths.ca_key} can issue certificates that both parties trust: move it away."
        console.print(Text(f"Warning: {warning}", style="bold yellow"))
    else:
        console.print("The authority's key was not kept: no further certificate can be issued.")
