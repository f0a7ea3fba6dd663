"""Checks that nothing outside `privet.suites` knows a suite by its name.

A suite is one module and a line in the registry only as long as nobody else spells its name: this
finds each string that is one, and each comparison of a suite's type, in the package's other parts.
Files that still do are listed in `suites.toml`; the list may only shrink, so that one that no
longer needs to be there is an error, too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "privet"
LIST = Path(__file__).with_name("suites.toml")


def spelled(source: str, suites: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """The lines of a module that hold a suite's name as a string or as the start of one
    (`name-...`), or ask whether something is of its type; `suites` are types by name."""
    known, types = set(suites), set(suites.values())
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            words = node.value.split("-")
            if words[0] in known and all(word.isalnum() for word in words):
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            asked = ast.unparse(node.args[1]).rpartition(".")[2]
            if asked in types:
                yield node.lineno, asked


def types(package: Path = PACKAGE) -> dict[str, str]:
    """The types of the suites by the names that they say."""
    found = {}
    for path in sorted((package / "suites").rglob("*.py")):
        for of in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for node in of.body if isinstance(of, ast.ClassDef) else ():
                if (
                    isinstance(of, ast.ClassDef)
                    and isinstance(node, ast.AnnAssign)
                    and ast.unparse(node.target) == "name"
                    and isinstance(node.value, ast.Constant)
                ):
                    found[str(node.value.value)] = of.name
    return found


def faults(package: Path, allowed: Iterable[str]) -> list[str]:
    """One line for each name in a file that is not allowed to have one, and for each file that is
    allowed in vain."""
    known, left, found = types(package), set(allowed), []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package).as_posix()
        if place.startswith("suites/"):
            continue
        lines = list(spelled(path.read_text(encoding="utf-8"), known))
        if place in left:
            left.discard(place)
            if not lines:
                found.append(f"{place}: names no suite any more: take it off {LIST.name}")
        else:
            found += [f"{place}:{line}: names a suite, {name!r}" for line, name in lines]
    return found + [f"{place}: is on {LIST.name} and does not exist" for place in sorted(left)]


def main() -> int:
    """Checks this repository."""
    allowed = tomllib.loads(LIST.read_text(encoding="utf-8"))["allowed"]
    found = faults(PACKAGE, allowed)
    for fault in found:
        print(fault, file=sys.stderr)
    if not found:
        print(f"suites: {len(types())} are named in privet.suites, and in {len(allowed)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
