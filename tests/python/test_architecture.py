"""Parts use only parts below them, and the checks that say so see one that does not."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    """A development script, loaded as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


direction = script("check_direction")
files = script("check_files")
suites = script("check_suites")
LAYERS = tomllib.loads((ROOT / "scripts" / "layers.toml").read_text())


def crates(*edges: tuple[str, str], kind: str | None = None) -> dict[str, object]:
    """What `cargo metadata` would print for crates with these dependencies."""
    packages: dict[str, list[dict[str, object]]] = {"privet-ring": [], "privet-ot": []}
    for user, target in edges:
        packages.setdefault(user, []).append({"name": target, "kind": kind})
    return {"packages": [{"name": n, "dependencies": d} for n, d in packages.items()]}


def tree(root: Path, **sources: str) -> dict[str, Path]:
    """A Python package `privet` below `root`; `__` in a key stands for a folder."""
    package = root / "privet"
    for name, source in sources.items():
        path = package.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return {"privet": package}


def python_faults(sources: dict[str, Path]) -> list[str]:
    order = direction.Order(LAYERS["python"])
    return list(direction.faults(order, direction.python_edges(sources)))


def crate_faults(metadata: dict[str, object]) -> list[str]:
    order = direction.Order(LAYERS["crates"])
    return list(direction.faults(order, direction.crate_edges(metadata)))


def test_this_repository_runs_one_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert direction.main() == 0, capsys.readouterr().err


def test_every_crate_has_a_place() -> None:
    names = {crate for row in LAYERS["crates"] for crate in row}
    places = ("crates/*/Cargo.toml", "crates/*/tests/Cargo.toml", "benches/*/Cargo.toml")
    manifests = [tomllib.loads(path.read_text()) for place in places for path in ROOT.glob(place)]
    assert names == {manifest["package"]["name"] for manifest in manifests}


def test_a_crate_may_use_what_lies_below() -> None:
    assert crate_faults(crates(("privet-ot", "privet-ring"), ("privet-ot", "serde"))) == []


@pytest.mark.parametrize("kind", [None, "dev", "build"])
def test_a_crate_edge_that_runs_up_is_named(kind: str | None) -> None:
    (fault,) = crate_faults(crates(("privet-ring", "privet-ot"), kind=kind))
    assert "`privet-ring` uses `privet-ot`, which lies above it" in fault


def test_a_crate_without_a_place_is_named() -> None:
    (fault,) = crate_faults(crates(("privet-fog", "privet-ring")))
    assert "`privet-fog` has no place" in fault


def test_a_module_may_use_what_lies_below(tmp_path: Path) -> None:
    sources = tree(
        tmp_path,
        compiler__passes__fold="import os\nimport privet.compiler.graph.node",
        compiler__graph__node="",
    )
    assert python_faults(sources) == []


@pytest.mark.parametrize(
    "statement",
    [
        "import privet.compiler.passes",
        "import privet.compiler.passes.fold as fold",
        "from privet.compiler import passes",
        "from privet.compiler.passes import fold",
        "from privet.compiler.passes.fold import apply",
        "from ..passes import fold",
        "from .. import passes",
        "def later():\n    from privet.compiler.passes import fold",
        "if TYPE_CHECKING:\n    from privet.compiler.passes import fold",
    ],
)
def test_an_import_that_runs_up_is_named(tmp_path: Path, statement: str) -> None:
    sources = tree(
        tmp_path,
        compiler__graph__node=statement,
        compiler__passes__fold="",
        compiler__passes____init__="",
    )
    (fault,) = python_faults(sources)
    assert "`privet.compiler.graph` uses `privet.compiler.passes`, which lies above it" in fault
    assert f"node.py:{statement.count(chr(10)) + 1}:" in fault


def test_parts_that_share_a_row_stay_apart(tmp_path: Path) -> None:
    (fault,) = python_faults(
        tree(tmp_path, service__queue="import privet.planner.record", planner__record="")
    )
    assert "lies beside it" in fault


def go_faults(root: Path, statement: str) -> list[str]:
    """What is wrong with a program whose `wire` has this statement."""
    folder = root / "internal" / "wire"
    folder.mkdir(parents=True)
    (folder / "bits.go").write_text(f"package wire\n\n{statement}\n")
    (folder / "bits_test.go").write_text('package wire\n\nimport "privet/ckks/internal/cohort"\n')
    order = direction.Order(LAYERS["go"])
    return list(direction.faults(order, direction.go_edges(root)))


@pytest.mark.parametrize(
    "statement",
    [
        'import "privet/ckks/internal/plan"',
        'import (\n\t"fmt"\n\n\t"privet/ckks/internal/plan"\n)',
        'import schedule "privet/ckks/internal/plan"',
    ],
)
def test_a_go_import_that_runs_up_is_named(tmp_path: Path, statement: str) -> None:
    (fault,) = go_faults(tmp_path, statement)
    assert "`wire` uses `plan`, which lies above it" in fault
    line = statement.split("privet/ckks")[0].count("\n") + 3
    assert f"bits.go:{line}:" in fault


def test_a_go_package_may_use_what_lies_below(tmp_path: Path) -> None:
    assert go_faults(tmp_path, 'import "privet/ckks/internal/wire"') == []


def test_every_go_package_has_a_place() -> None:
    names = {package for row in LAYERS["go"] for package in row}
    folders = {path.name for path in (ROOT / "ckks" / "internal").iterdir() if path.is_dir()}
    assert names == folders | {"cmd"}


def test_nothing_below_uses_the_facade(tmp_path: Path) -> None:
    (fault,) = python_faults(tree(tmp_path, suites__gmw="from privet import run"))
    assert "`privet.suites` uses `privet`, which lies above it" in fault


def test_the_command_line_may_use_the_facade(tmp_path: Path) -> None:
    assert python_faults(tree(tmp_path, cli__run="from privet import run, errors")) == []


def test_a_module_without_a_place_is_named(tmp_path: Path) -> None:
    (fault,) = python_faults(tree(tmp_path, gossip="import privet.errors", errors=""))
    assert "`privet.gossip` has no place" in fault


def test_long_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "long.rs").write_text("//\n" * (files.LIMIT_LINES + 1))
    (tmp_path / "full.rs").write_text("//\n" * files.LIMIT_LINES)
    (tmp_path / "data.json").write_text("\n" * 9999)
    names = [Path(name) for name in ("long.rs", "full.rs", "data.json")]
    (offence,) = files.offences(tmp_path, names)
    assert offence.startswith("long.rs: 701 lines")


@pytest.mark.parametrize("name", ["utils.py", "common/ring.rs", "a/helpers.rs", "misc.py"])
def test_vague_names_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / name).write_text("")
    (offence,) = files.offences(tmp_path, [Path(name)])
    assert "says nothing" in offence


def test_this_repository_has_readable_files() -> None:
    assert list(files.offences(ROOT, files.repository_files(ROOT))) == []


def test_this_repository_names_suites_in_one_place() -> None:
    assert suites.main() == 0


@pytest.mark.parametrize(
    "statement",
    [
        'if suite == "gmw": pass',
        'ways = ("fss-malicious",)',
        "isinstance(suite, suites.Ckks)",
        'help("not in suite `gmw`")',
    ],
)
def test_whoever_names_a_suite_is_named(tmp_path: Path, statement: str) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "all.py").write_text(
        "".join(
            f'class {class_name}:\n    """A suite."""\n    name: ClassVar[str] = "{name}"\n'
            for name, class_name in (("gmw", "Gmw"), ("fss", "Fss"), ("ckks", "Ckks"))
        )
    )
    (tmp_path / "cli.py").write_text(f'"""Suite gmw."""\n\n{statement}\n')
    assert [fault.partition(": ")[0] for fault in suites.faults(tmp_path)] == ["cli.py:3"]
    (tmp_path / "cli.py").write_text('"""Suite gmw."""\n\nways = ("log",)\n')
    assert suites.faults(tmp_path) == []


KNOWN = ("gmw", "fss", "ckks", "stream")


def replace_section(root: Path, name: str, text: str) -> None:
    """Writes a file below `root`."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.mark.parametrize(
    "statement",
    [
        'if suite == "gmw" {}',
        'let label = r#"fss malicious exact"#;',
        'let known = ["ckks"];',
        'fail("only suite gmw can");',
        'println!("[gmw|fss]");',
        "use privet_suites::{config, stream};",
        "privet_suites::gmw::Config::default();",
    ],
)
def test_rust_that_names_a_suite_is_named(tmp_path: Path, statement: str) -> None:
    source = '//! Suite "gmw".\nfn act() {\n    %s\n}\n#[cfg(test)]\nmod tests {\n    "gmw"\n}\n'
    for other in ("suites/src/gmw.rs", "ot/src/tests.rs", "ot/tests/whole.rs", "ot/src/tests/a.rs"):
        replace_section(tmp_path, f"crates/{other}", source % statement)
    replace_section(
        tmp_path, "crates/client/src/suite.rs", source % 'say("a stream of bytes", fss::leaves);'
    )
    assert suites.other_faults(tmp_path, KNOWN, {}) == []
    replace_section(tmp_path, "crates/client/src/suite.rs", source % statement)
    (fault,) = suites.other_faults(tmp_path, KNOWN, {})
    assert fault.startswith("crates/client/src/suite.rs:3: names a suite, ")
    excepted = {"crates/client/src/suite.rs": "asks in it"}
    assert suites.other_faults(tmp_path, KNOWN, excepted) == []
    replace_section(tmp_path, "crates/client/src/suite.rs", source % "")
    (fault,) = suites.other_faults(tmp_path, KNOWN, excepted)
    assert "names no suite" in fault


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("some.toml", '[[runs]]\nsettings = ["gmw-log"]\n'),
        ("some.toml", "[fss]\nseconds = 1\n"),
        ("some.json", '{"rows": [{"said": "not in suite `ckks`"}]}'),
    ],
)
def test_data_that_names_a_suite_is_named(tmp_path: Path, name: str, text: str) -> None:
    replace_section(tmp_path, f"python/privet/suites/data/{name}", text)
    replace_section(
        tmp_path, "python/privet/planner/prices.toml", 'kind = "a stream of bytes"\n# gmw\n'
    )
    assert suites.other_faults(tmp_path, KNOWN, {}) == []
    replace_section(tmp_path, f"python/privet/planner/{name}", text)
    (fault,) = suites.other_faults(tmp_path, KNOWN, {})
    assert fault.startswith(f"python/privet/planner/{name}: names a suite, ")
