"""Checks that dependencies run one way: no crate and no Python module uses what lies above it.

The order is written down in `layers.toml`. Crate edges come from `cargo metadata` (development and
build dependencies count too), Python and Go edges from the imports of every file, wherever in the
file they stand (in Go, tests aside, which may look from anywhere). Exit code 1 and one line per bad
edge if anything runs back up, sideways, or to a part that has no place in the order.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LAYERS = Path(__file__).with_name("layers.toml")


@dataclass(frozen=True)
class Edge:
    """`user` depends on `dependency`; `place` is where a person finds it, such as a file and a
    line."""

    user: str
    dependency: str
    place: str


class Order:
    """Rows of parts from the ground up."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        self._row = {part: row for row, parts in enumerate(rows) for part in parts}

    def fault(self, edge: Edge) -> str | None:
        """What is wrong with `edge`, as one line for a person, or None if it points downwards."""
        for part in (edge.user, edge.dependency):
            if part not in self._row:
                return f"{edge.place}: `{part}` has no place in {LAYERS.name}"
        if edge.user == edge.dependency or self._row[edge.dependency] < self._row[edge.user]:
            return None
        way = "beside" if self._row[edge.dependency] == self._row[edge.user] else "above"
        return f"{edge.place}: `{edge.user}` uses `{edge.dependency}`, which lies {way} it"


def crate_edges(metadata: Mapping[str, Any]) -> Iterator[Edge]:
    """Edges between the workspace's own crates, from what `cargo metadata --no-deps` prints."""
    members = {package["name"] for package in metadata["packages"]}
    for package in metadata["packages"]:
        for dependency in package["dependencies"]:
            if dependency["name"] in members:
                place = f"crates ({dependency['kind'] or 'normal'} dependency)"
                yield Edge(package["name"], dependency["name"], place)


def part_of(module: str) -> str:
    """The part a dotted module belongs to: `privet.runtime.pool` is in `privet.runtime`, and
    `privet.compiler.graph.conv` in `privet.compiler.graph`."""
    names = module.split(".")
    depth = 1 if names[0] != "privet" else 3 if names[1:2] == ["compiler"] else 2
    return ".".join(names[:depth])


def imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """Absolute dotted names that `tree`, the source of `module`, imports, with their lines.

    `from a import b` gives `a.b`, because `b` may be a submodule.
    """
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                yield ".".join([*stem, alias.name]), node.lineno


def submodules(folder: Path, prefix: str) -> set[str]:
    """Dotted names directly below `prefix`: files and folders alike, and the compiled `_native`."""
    names = {path.stem for path in folder.glob("*.py")} | {
        path.stem for path in folder.glob("*.pyi")
    }
    names |= {path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    names_below = {f"{prefix}.{name}" for name in (names | {"_native"}) - {"__init__"}}
    inner = folder / "compiler"
    return names_below | submodules(inner, f"{prefix}.compiler") if inner.is_dir() else names_below


def python_edges(sources: Mapping[str, Path]) -> Iterator[Edge]:
    """Edges between the parts found below each folder of `sources` (dotted prefix to folder)."""
    modules = {name for prefix, folder in sources.items() for name in submodules(folder, prefix)}
    for prefix, folder in sources.items():
        for path in sorted(folder.rglob("*.py")):
            names = [prefix, *path.relative_to(folder).with_suffix("").parts]
            is_package = names[-1] == "__init__"
            module = ".".join(names[:-1] if is_package else names)
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
            for name, line in imported(tree, module, is_package):
                if name.split(".")[0] in sources:
                    # A name that is no submodule belongs to the facade: `from privet import run`.
                    part = part_of(name) if part_of(name) in modules else name.split(".")[0]
                    yield Edge(part_of(module), part, f"{path}:{line}")


_GO_IMPORT = re.compile(r'^\s*(?:import\s+)?(?:\w+\s+)?"privet/ckks/internal/(\w+)', re.MULTILINE)


def go_edges(folder: Path) -> Iterator[Edge]:
    """Edges between the packages below `folder`/internal, and from the commands in `folder`/cmd."""
    for path in sorted(folder.rglob("*.go")):
        home, *inner = path.relative_to(folder).parts
        if home not in ("internal", "cmd") or path.name.endswith("_test.go"):
            continue
        user = inner[0] if home == "internal" else home
        text = path.read_text(encoding="utf-8")
        for match in _GO_IMPORT.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            yield Edge(user, match[1], f"{path}:{line}")


def faults(order: Order, edges: Iterable[Edge]) -> list[str]:
    """One line for each edge that does not point downwards, sorted and without repeats."""
    return sorted({fault for edge in edges if (fault := order.fault(edge))})


def main() -> int:
    """Checks this repository."""
    layers = tomllib.loads(LAYERS.read_text(encoding="utf-8"))
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    folders = {prefix: ROOT / folder for prefix, folder in layers["sources"].items()}
    crates = list(crate_edges(metadata))
    python = list(python_edges({prefix: path for prefix, path in folders.items() if path.is_dir()}))
    go_imports = list(go_edges(ROOT / "ckks"))
    violations = [
        fault
        for language, edges in (("crates", crates), ("python", python), ("go", go_imports))
        for fault in faults(Order(layers[language]), edges)
    ]
    for fault in violations:
        print(fault.replace(f"{ROOT}/", ""), file=sys.stderr)
    if not violations:
        counts = f"{len(crates)} crate edges, {len(python)} Python and {len(go_imports)} Go imports"
        print(f"direction: {counts}, all downwards")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
