"""Checks that nothing outside `privet.suites`, and its Rust half `crates/suites`, knows a suite by
its name.

A suite is one module and a line in the registry only as long as nobody else spells its name: this
finds each string that is one, and each comparison of a suite's type, in the package's other parts
and in its data, and in the source of the other crates. Tests and comments may name suites.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "privet"
BELOW = "compiler"
"""Lies below the suites and cannot ask them: texts of its operators say which suites have one."""

DATA = (".json", ".toml")

_DATA = "python/privet/research"
_PAPERS = f"{_DATA}/papers/data"
EXCEPTIONS = {
    "crates/audit/src/decoders.rs": "feeds bytes to the decoders of suite `stream`",
    "crates/client/src/lib.rs": "exports the types of the suites that it can ask in",
    "crates/client/src/main.rs": "an example whose argument is a suite",
    "crates/client/src/suite.rs": "the suites that a client in Rust can ask in",
    "crates/py/src/stages.rs": "Python's stages of suite `stream`, which has a runtime of its own",
    "crates/py/src/stream.rs": "Python's half of suite `stream`",
    f"{_PAPERS}/beyond-latency.toml": "which suite stands for a scheme of the paper",
    f"{_PAPERS}/ppstream.toml": "which suite stands for the paper's",
    f"{_PAPERS}/seconnds.toml": "which suite stands for the paper's",
    f"{_PAPERS}/slytherin.toml": "which suite stands for the paper's",
    f"{_PAPERS}/swiftsnni.toml": "which suite its jobs were measured in",
    f"{_DATA}/report/data/schemes.toml": "schemes of a paper and the suites beside them",
    f"{_DATA}/report/data/study.toml": "what a study measures",
    f"{_DATA}/simulation/data/ours.toml": "measured jobs",
}
"""Files that name suites all the same, and why. One that names none is a fault as well."""

RUST_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)'|r(#*)"(?P<raw>.*?)"\1|"(?P<text>(?:[^"\\]|\\.)*)\"""",
    re.DOTALL,
)
"""A comment, a character or a string of Rust; groups hold the text of a string."""
RUST_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{\n.*?^\}$", re.DOTALL | re.MULTILINE)


def spelled(
    source: str, suites: Mapping[str, str], texts: bool = True
) -> Iterator[tuple[int, str]]:
    """The lines of a module that hold a suite's name as a string, as the start of one (`name-...`)
    or in a list (`name|...`), or ask whether something is of its type; with `texts`, also those
    that tell people of one suite. `suites` are types by name.
    """
    names, types = set(suites), set(suites.values())
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            if is_name(node.value, names) or (texts and mentions(node.value, names)):
                yield node.lineno, node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            type_name = ast.unparse(node.args[1]).rpartition(".")[2]
            if type_name in types:
                yield node.lineno, type_name


def is_name(text: str, names: Iterable[str]) -> bool:
    """Whether a string is a suite's name, begins with one (`name-...`), or lists some."""
    words = [word.split("-") for word in re.split("[,|]", text)]
    plain = all(part.isalnum() for word in words for part in word)
    return plain and any(word[0] in set(names) for word in words)


def mentions(text: str, names: Iterable[str]) -> bool:
    """Whether a text for people says something of one suite."""
    either = "|".join(names)
    return re.search(rf"\b[Ss]uites? `?({either})\b|`({either})`", text) is not None


def spelled_in_rust(source: str, names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines of a Rust file, but for its tests, with a string that is a suite's name, begins
    with one (also as labels do, `name ...`), lists some or tells people of one, or with a path to a
    suite's module."""
    vocabulary = set(names)
    either = "|".join(vocabulary)

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    source = RUST_TESTS.sub(blank, source)
    for match in RUST_LITERAL.finditer(source):
        text = match["text"] if match["raw"] is None else match["raw"]
        if text is not None and (
            is_name(text.replace(" ", "-"), vocabulary)
            or mentions(text, vocabulary)
            or re.search(rf"\bsuites? ({either})\b|[\[|]({either})[\]|]", text)
        ):
            yield source.count("\n", 0, match.start()) + 1, text
    code = RUST_LITERAL.sub(blank, source)
    for match in re.finditer(rf"\bprivet_suites::(?:\{{[^;]*?\b)?(?:{either})\b", code):
        yield code.count("\n", 0, match.end()) + 1, match[0]


def spelled_in_data(path: Path, names: Iterable[str]) -> Iterator[str]:
    """The keys and strings of a file of data that name a suite."""
    text = path.read_text(encoding="utf-8")
    content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    vocabulary = set(names)
    for word in strings(content):
        if is_name(word, vocabulary) or mentions(word, vocabulary):
            yield word


def strings(content: Any) -> Iterator[str]:
    """All keys and strings of what JSON or TOML hold."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield key
            yield from strings(value)
    elif isinstance(content, list):
        for value in content:
            yield from strings(value)


def types(package: Path = PACKAGE) -> dict[str, str]:
    """The types of the suites by the names that they say."""
    names = {}
    for path in sorted((package / "suites").rglob("*.py")):
        for definition in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for node in definition.body if isinstance(definition, ast.ClassDef) else ():
                if (
                    isinstance(definition, ast.ClassDef)
                    and isinstance(node, ast.AnnAssign)
                    and ast.unparse(node.target) == "name"
                    and isinstance(node.value, ast.Constant)
                ):
                    names[str(node.value.value)] = definition.name
    return names


def faults(package: Path) -> list[str]:
    """One line for each name of a suite in a file outside `privet.suites`."""
    suite_names = types(package)
    return [
        f"{place.as_posix()}:{line}: names a suite, {name!r}"
        for path in sorted(package.rglob("*.py"))
        if (place := path.relative_to(package)).parts[0] != "suites"
        for line, name in spelled(
            path.read_text(encoding="utf-8"), suite_names, texts=place.parts[0] != BELOW
        )
    ]


def rust_and_data(root: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Files of Rust and data below `root` that name a suite, each with one place."""
    for path in sorted((root / "crates").glob("*/src/**/*.rs")):
        place = path.relative_to(root)
        if place.parts[1] != "suites" and not {"tests", "tests.rs"} & set(place.parts):
            for line, name in spelled_in_rust(path.read_text(encoding="utf-8"), names):
                yield place.as_posix(), f"{place.as_posix()}:{line}: names a suite, {name!r}"
    package = root / "python" / "privet"
    for path in sorted(file for file in package.rglob("*") if file.suffix in DATA):
        if path.relative_to(package).parts[0] != "suites":
            place = path.relative_to(root)
            for name in spelled_in_data(path, names):
                yield place.as_posix(), f"{place.as_posix()}: names a suite, {name!r}"


def other_faults(
    root: Path, names: Iterable[str], exceptions: Mapping[str, str] = EXCEPTIONS
) -> list[str]:
    """One line for each name of a suite in Rust outside `crates/suites` and in the package's data,
    but for the exceptions, and for each exception that names no suite."""
    places = list(rust_and_data(root, names))
    unneeded = sorted(set(exceptions) - {place for place, _ in places})
    return [fault for place, fault in places if place not in exceptions] + [
        f"{place}: names no suite, and is an exception" for place in unneeded
    ]


def main() -> int:
    """Checks this repository."""
    violations = [*faults(PACKAGE), *other_faults(ROOT, types())]
    for fault in violations:
        print(fault, file=sys.stderr)
    if not violations:
        places = f"privet.suites, crates/suites and {len(EXCEPTIONS)} exceptions"
        print(f"suites: {len(types())} are named in {places} alone")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
