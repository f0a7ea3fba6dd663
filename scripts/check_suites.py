"""Checks that nothing outside `privet.suites` knows a suite by its name.

A suite is one module and a line in the registry only as long as nobody else spells its name: this
finds each string that is one, and each comparison of a suite's type, in the package's other parts.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "privet"
BELOW = "compiler"
"""Lies below the suites and cannot ask them: texts of its operators say which suites have one."""


def spelled(
    source: str, suites: Mapping[str, str], texts: bool = True
) -> Iterator[tuple[int, str]]:
    """The lines of a module that hold a suite's name as a string, as the start of one (`name-...`)
    or in a list (`name|...`), or ask whether something is of its type; with `texts`, also those
    that tell people of one suite. `suites` are types by name.
    """
    known, types = set(suites), set(suites.values())
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            words = [word.split("-") for word in re.split("[,|]", node.value)]
            plain = all(part.isalnum() for word in words for part in word)
            if (plain and any(word[0] in known for word in words)) or (
                texts and mentions(node.value, known)
            ):
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            asked = ast.unparse(node.args[1]).rpartition(".")[2]
            if asked in types:
                yield node.lineno, asked


def mentions(text: str, names: Iterable[str]) -> bool:
    """Whether a text for people says something of one suite."""
    either = "|".join(names)
    return re.search(rf"\b[Ss]uites? `?({either})\b|`({either})`", text) is not None


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


def faults(package: Path) -> list[str]:
    """One line for each name of a suite in a file outside `privet.suites`."""
    known = types(package)
    return [
        f"{place.as_posix()}:{line}: names a suite, {name!r}"
        for path in sorted(package.rglob("*.py"))
        if (place := path.relative_to(package)).parts[0] != "suites"
        for line, name in spelled(
            path.read_text(encoding="utf-8"), known, texts=place.parts[0] != BELOW
        )
    ]


def main() -> int:
    """Checks this repository."""
    found = faults(PACKAGE)
    for fault in found:
        print(fault, file=sys.stderr)
    if not found:
        print(f"suites: {len(types())} are named in privet.suites alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
