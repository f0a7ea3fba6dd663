"""The examples run as they stand, and every language gets the gateway's answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.gateways import IMAGES, Gateway, expected, gateway
from tests.e2e.services import put_digits, serving
from tests.e2e.test_commands import key_folder

__all__ = ["key_folder"]

EXAMPLES = Path(__file__).parents[2] / "examples"
OIP = EXAMPLES / "oip"
LANGUAGES = {
    "python": [sys.executable, str(OIP / "client.py")],
    "javascript": ["node", str(OIP / "client.mjs")],
    "go": ["go", "run", str(OIP / "client.go")],
    "java": ["java", str(OIP / "Client.java")],
}
MORE = {"java": ["input", "1,1,8,8"]}


def output(command: list[str], given: str = "") -> str:
    """What a command prints, which must end well, where `privet` is that of this interpreter."""
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    }
    done = subprocess.run(command, input=given, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_a_hospital_asks_about_an_image() -> None:
    assert "class 7" in output(["sh", str(EXAMPLES / "hospital" / "run.sh")])


def test_a_bank_decides_on_a_loan() -> None:
    assert "granted: yes" in output([sys.executable, str(EXAMPLES / "bank" / "credit.py")])


def test_a_reader_asks_a_transformer_about_a_sentence() -> None:
    assert "about: tkinter" in output([sys.executable, str(EXAMPLES / "text" / "classify.py")])


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory, key_folder: Path) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("service")
    put_digits(folder / "repository")
    with serving(folder, key_folder) as scene:  # noqa: SIM117
        with gateway(scene.address, key_folder, folder / "client") as running:
            yield running


@pytest.mark.parametrize(
    "language",
    # Compilers take longer than all the rest.
    [pytest.param(it, marks=[pytest.mark.slow] * (it in ("go", "java"))) for it in LANGUAGES],
)
def test_a_language_asks_a_gateway(language: str, front: Gateway) -> None:
    command = LANGUAGES[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    words = [*command, f"http://{front.places['rest']}", "digits", *MORE.get(language, [])]
    numbers = " ".join(map(str, IMAGES[0].ravel()))
    logits = np.array(output(words, numbers).split(), dtype=np.float64)
    np.testing.assert_allclose(logits, expected(IMAGES[:1])[0], atol=0.1)
