"""One wheel is enough: installed where there is no Rust, Go or compiler, it predicts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from scripts import wheel as checks
from tests.e2e.processes import listening
from tests.e2e.test_commands import DIGITS, SEVEN

from privet import keys

ROOT = Path(__file__).parents[2]
MOST_MEGABYTES = 250
"""What the client takes on disk with all it needs; 200 were measured, half of it numpy."""

MOST_CLIENT_MEGABYTES = 10
"""What the program `privet-client` takes with all that it needs."""

pytestmark = [pytest.mark.slow, pytest.mark.go]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(["make", "wheel", f"DIST={folder}"], cwd=ROOT, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Installs the wheel with an extra into a fresh environment, with versions of this one."""
    frozen = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--exclude", "privet"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    constraints = tmp_path_factory.mktemp("pip") / "constraints.txt"
    constraints.write_text("\n".join(line for line in frozen.splitlines() if "==" in line))

    def installed(extra: str = "", python: str = sys.executable) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run(
            [
                *(folder / "bin" / "python", "-m", "pip", "install", "--quiet"),
                *("--disable-pip-version-check", "--only-binary", ":all:"),
                *("--constraint", constraints, f"privet{extra} @ {wheel.as_uri()}"),
            ],
            check=True,
        )
        return folder

    return installed


def privet(environment: Path, *words: object) -> Any:
    """What a command says, with nothing on the PATH but the environment itself."""
    process = subprocess.run(
        [str(environment / "bin" / "privet"), *map(str, words), "--json"],
        capture_output=True,
        text=True,
        env={"PATH": str(environment / "bin"), "HOME": str(environment)},
        cwd=environment,
        check=False,
    )
    assert process.stdout, process.stderr
    return json.loads(process.stdout)


def test_the_wheel_is_what_it_says_and_a_wrong_one_is_seen(wheel: Path, tmp_path: Path) -> None:
    assert checks.problems(wheel) == []
    renamed = tmp_path / wheel.name.replace("manylinux_2_", "manylinux_2_1")
    shutil.copy(wheel, renamed)
    assert "auditwheel says" in checks.problems(renamed)[0]


def test_runs_and_infers_without_tools(install: Callable[..., Path]) -> None:
    server, client = install("[serve]"), install()
    size = sum(path.stat().st_size for path in (client / "lib").rglob("*") if path.is_file())
    assert size / 1e6 < MOST_MEGABYTES, size

    run = privet(server, "run", DIGITS, "--input-range", 0, 1, "--input", SEVEN)
    assert run["argmax_agrees"]
    missing = privet(client, "run", DIGITS)
    assert "pip install 'privet[serve]'" in missing["error"]["message"]

    model = server / "nn5.onnx"
    model.write_bytes(
        Path(privet(server, "zoo", "build", "nn5", "-o", server)["path"]).read_bytes()
    )
    privet(client, "keys", client / "keys")
    for suite, file in (("gmw", DIGITS), ("ckks", model)):
        service = ["serve", file, "--keys", client / "keys", "--input-range", 0, 1]
        service += ["--suite", suite, "--state", server / suite]
        with listening(*service, program=[str(server / "bin" / "privet")]) as (_, address):
            words = ["infer", address, "--suite", suite, "--keys", client / "keys"]
            answer = privet(client, *words, "--input", SEVEN)
            assert len(answer["output"][0]) == 10


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_newer_pythons_load_it(version: str, install: Callable[..., Path]) -> None:
    python = shutil.which(f"python{version}")
    runs = python and subprocess.run([python, "-c", "import venv"], capture_output=True).returncode
    if runs != 0:
        pytest.skip(f"there is no Python {version} here")
    environment = install(python=str(python))
    findings = privet(environment, "doctor")["findings"]
    assert {"about": "privet-ckks", "state": "ok", "found": "there", "advice": ""} in findings


def test_the_client_alone_is_one_small_program_and_predicts(
    tmp_path: Path, figures: list[str]
) -> None:
    subprocess.run(["make", "client-wheel", f"DIST={tmp_path}"], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("privet_client-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (text,) = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
        assert archive.read(text) == (ROOT / "LICENSE").read_bytes()
    client = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", client], check=True)
    files = set(client.rglob("*"))
    start = time.monotonic()
    pip = [str(client / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
    seconds = time.monotonic() - start
    size = sum(path.stat().st_size for path in set(client.rglob("*")) - files if path.is_file())
    figures.append(
        f"client alone: wheel {wheel.stat().st_size / 1e6:.1f} MB, installed {size / 1e6:.1f} MB "
        f"in {seconds:.1f} s"
    )
    assert size / 1e6 < MOST_CLIENT_MEGABYTES

    keys.make(tmp_path / "keys", ())
    image = np.load(DIGITS.with_suffix(".npz"))["inputs"][:1]
    (reference,) = onnxruntime.InferenceSession(DIGITS).run(None, {"input": image})
    service = ["serve", DIGITS, "--name", "digits", "--keys", tmp_path / "keys"]
    service += ["--input-range", 0, 1, "--state", tmp_path / "server", "--listen", "127.0.0.1:0"]
    with listening(*service) as (_, address):
        url = f"https://localhost:{address.rpartition(':')[2]}"
        words = [client / "bin" / "privet-client", url, tmp_path / "keys", tmp_path / "state"]
        process = subprocess.run(
            [*map(str, words), "digits", "gmw"],
            input=" ".join(map(str, image.ravel())),
            capture_output=True,
            text=True,
            env={},
            check=True,
        )
    logits = [float(line.partition(" ")[2]) for line in process.stdout.splitlines()]
    np.testing.assert_allclose(logits, reference[0], rtol=0, atol=0.1)
