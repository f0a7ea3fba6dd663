"""What Privet is made of: the crates and Go modules in the wheel, the packages that it needs.

Each is read from what is locked or installed, so that the bill says what is there, not what was
meant to be.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
CRATE = "privet-py"
EXTRAS = ("serve", "gateway")

CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Licences of packages whose metadata has no SPDX expression, by the classifier that they bear."""

TEXTS = (
    ("Apache License", "Apache-2.0"),
    ("Mozilla Public License", "MPL-2.0"),
    ("GNU ", "GPL"),
    ("Permission is hereby granted, free of charge", "MIT"),
    ("Neither the name of", "BSD-3-Clause"),
    ("Redistribution and use in source and binary forms", "BSD-2-Clause"),
    ("Permission to use, copy, modify, and/or distribute", "ISC"),
)
"""Words of a licence's text by which Go modules are told apart, in this order."""


@dataclass(frozen=True, order=True)
class Component:
    """A dependency as a package URL names it; `license` is an SPDX expression, empty if unknown."""

    kind: str
    name: str
    version: str
    license: str
    sha256: str = ""

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:{self.kind}/{self.name}@{self.version}"


def _run(command: Sequence[str], folder: Path = ROOT) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def crates() -> list[Component]:
    """The crates that the extension module is linked from or built with."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    metadata = json.loads(_run(command))
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = {
        node["id"]: [
            dependency["pkg"]
            for dependency in node["deps"]
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    queue = [id for id in packages if packages[id]["name"] == CRATE]
    ids = set(queue)
    while queue:
        new = set(edges[queue.pop()]) - ids
        ids |= new
        queue += new
    sums = dict(_checksums((ROOT / "Cargo.lock").read_text()))
    return [
        Component(
            "cargo",
            package["name"],
            package["version"],
            (package["license"] or "").replace("/", " OR ").replace("  ", " "),
            sums[package["name"], package["version"]],
        )
        for package in (packages[id] for id in ids)
        if package["source"]
    ]


def _checksums(lock: str) -> Iterator[tuple[tuple[str, str], str]]:
    pattern = r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = [^\n]+\nchecksum = "([0-9a-f]{64})"'
    for name, version, sha256 in re.findall(pattern, lock):
        yield (name, version), sha256


def modules() -> list[Component]:
    """The Go modules that the programs of suite `ckks` are linked from, and Go itself."""
    shape = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
    command = ["go", "list", "-deps", "-f", shape, "./cmd/privet-ckks"]
    lines = {line for line in _run(command, ROOT / "ckks").splitlines() if line}
    components = []
    for line in lines:
        path, version, folder = line.split("\t")
        texts = [file.read_text() for file in sorted(Path(folder).glob("LICEN[CS]E*"))]
        components.append(Component("golang", path, version, _license_of(texts)))
    version = _run(["go", "env", "GOVERSION"], ROOT / "ckks").strip().removeprefix("go")
    return [*components, Component("golang", "std", version, "BSD-3-Clause")]


def _license_of(texts: Sequence[str]) -> str:
    for text in texts[:1]:
        words = " ".join(text.split())
        for phrase, license in TEXTS:
            if phrase in words:
                return license
    return ""


def packages(root: str = "privet", extras: Sequence[str] = EXTRAS) -> list[Component]:
    """The Python packages that `pip install privet[serve,gateway]` brings, as installed here."""
    components: dict[str, Component] = {}
    queue = [(root, tuple(extras))]
    while queue:
        name, extra_names = queue.pop()
        for text in importlib.metadata.requires(name) or []:
            requirement = Requirement(text)
            marker = requirement.marker
            if marker and not any(
                marker.evaluate({"extra": extra}) for extra in (*extra_names, "")
            ):
                continue
            key = canonicalize_name(requirement.name)
            if key not in components and key != root:
                distribution = importlib.metadata.distribution(key)
                license = _license(distribution)
                components[key] = Component("pypi", key, distribution.version, license)
                queue.append((key, tuple(requirement.extras)))
    return list(components.values())


def _license(distribution: importlib.metadata.Distribution) -> str:
    metadata = distribution.metadata
    for expression in metadata.get_all("License-Expression") or []:
        return str(expression)
    for classifier in metadata.get_all("Classifier") or []:
        if license := CLASSIFIERS.get(classifier.rpartition(" :: ")[2]):
            return license
    words = " ".join(metadata.get_all("License") or []).strip()
    spdx_ids = {"Apache 2.0": "Apache-2.0", "3-Clause BSD License": "BSD-3-Clause"}
    return spdx_ids.get(words, words if len(words.split()) == 1 else "")
