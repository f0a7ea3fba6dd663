"""The bill of materials: CycloneDX 1.6 as JSON, with nothing in it of the time or the machine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .component import Component


def bill(version: str, components: Iterable[Component]) -> str:
    """The bill of Privet `version`; the same components give the same bytes."""
    root = f"pkg:pypi/privet@{version}"
    unique = sorted(set(components))
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "privet",
                "version": version,
                "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [_entry(component) for component in unique],
        "dependencies": [{"ref": root, "dependsOn": [component.purl for component in unique]}],
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _entry(component: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": component.purl,
        "name": component.name,
        "version": component.version,
        "purl": component.purl,
    }
    if component.license:
        entry["licenses"] = [{"expression": component.license}]
    if component.sha256:
        entry["hashes"] = [{"alg": "SHA-256", "content": component.sha256}]
    return entry
