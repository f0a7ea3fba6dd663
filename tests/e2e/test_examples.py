"""The examples run as they stand, and every language gets the gateway's answer."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.e2e.gateways import IMAGES, Gateway, expected, gateway
from tests.e2e.services import put_digits, serving
from tests.e2e.test_commands import key_folder

from privet.compiler.program import Program
from privet.compiler.program.public import ProgramOperation, ProgramValue

__all__ = ["key_folder"]

EXAMPLES = Path(__file__).parents[2] / "examples"
OIP = EXAMPLES / "oip"
RESEARCH = EXAMPLES / "research" / "beaver.py"
LANGUAGES = {
    "python": [sys.executable, str(OIP / "client.py")],
    "javascript": ["node", str(OIP / "client.mjs")],
    "go": ["go", "run", str(OIP / "client.go")],
    "java": ["java", str(OIP / "Client.java")],
}
MORE = {"java": ["input", "1,1,8,8"]}


def output(command: list[str], stdin: str = "") -> str:
    """What a command prints, which must end well, where `privet` is that of this interpreter."""
    environment = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    }
    process = subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment)
    assert process.returncode == 0, process.stderr + process.stdout
    return process.stdout


def test_a_hospital_asks_about_an_image() -> None:
    assert "class 7" in output(["sh", str(EXAMPLES / "hospital" / "run.sh")])


def test_a_bank_decides_on_a_loan() -> None:
    assert "granted: yes" in output([sys.executable, str(EXAMPLES / "bank" / "credit.py")])


def test_a_reader_asks_a_transformer_about_a_sentence() -> None:
    assert "about: tkinter" in output([sys.executable, str(EXAMPLES / "text" / "classify.py")])


def test_a_researcher_tries_a_protocol() -> None:
    stdout = output([sys.executable, str(RESEARCH)])
    assert "learns: 1 7 4 6 of digits 1 7 4 6" in stdout
    # Four images, 256 features: two projections, a product, a readout; and shares at both ends.
    openings = 2 * (4 * 64 + 64 * 256) + 2 * (4 * 256) + (4 * 256 + 256 * 10)
    ends = 4 * 64 + 4 * 10
    assert f"online: {2 * (4 * 4 + 8 * openings) + 2 * 4 + 8 * ends:,} B, 5 rounds" in stdout
    triples = 2 * (4 * 64 + 64 * 256 + 4 * 256) + 3 * (4 * 256) + (4 * 256 + 256 * 10 + 4 * 10)
    assert f"offline: {4 * 4 + 8 * triples:,} B from the dealer" in stdout
    assert "for research, not for deployment" in stdout


@pytest.fixture
def protocol(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("beaver", RESEARCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "beaver", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("masked", [True, False], ids=["dealt", "control without masks"])
def test_a_server_does_not_see_the_image(
    protocol: ModuleType, monkeypatch: pytest.MonkeyPatch, masked: bool
) -> None:
    """The server adds what the client opens to its own share: the input, where no mask covers it.

    The control is a triple of zeros, with which the same attack finds every number.
    """
    dense = {"weight": "w", "weight_shape": [64, 10], "bias": None}
    operation = ProgramOperation("dense", "", (0,), 1, dense)
    values = (ProgramValue((1, 64), 0), ProgramValue((1, 10), 0))
    program = Program("", 64, 0, 4, "", (), (), values, (operation,))
    image = np.arange(64, dtype=np.uint64).reshape(1, 64)
    weight = np.arange(640, dtype=np.uint64).reshape(64, 10)
    links = [Pipe() for _ in range(3)]
    channels = [[protocol.Channel(end) for end in link] for link in links]
    with monkeypatch.context() as without:
        if not masked:
            without.setattr(protocol, "uniform", lambda shape: np.zeros(shape, np.uint64))
        protocol.deal(program, channels[0][0], channels[1][0])
    ((_, shapes),) = protocol.triples(program)
    shares = protocol.uniform((1, 64))
    products: dict[str, Any] = {}
    arrays: list[Any] = []

    def run(name: str, dealer: Any, peer: Any, weights: Any, share: Any) -> None:
        triples = iter([dealer.receive(*shapes)])
        party = protocol.Party(program, weights, peer, triples)
        products[name] = party.compute(operation, [share])

    client, server = channels[2]
    hear = server.receive

    def heard(*shapes: Any) -> Any:
        arrays.extend(hear(*shapes))
        return arrays

    monkeypatch.setattr(server, "receive", heard)
    threads = [
        Thread(target=run, args=("client", channels[0][1], client, None, image - shares)),
        Thread(target=run, args=("server", channels[1][1], server, {"w": weight}, shares)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(products["client"] + products["server"], image @ weight)
    equal = int((arrays[0] + shares == image).sum())
    assert equal == (0 if masked else 64)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory, key_folder: Path) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("service")
    put_digits(folder / "repository")
    with serving(folder, key_folder) as scene:  # noqa: SIM117
        with gateway(scene.address, key_folder, folder / "client") as gateway_process:
            yield gateway_process


@pytest.mark.parametrize(
    "language",
    # Compilers take longer than all the rest.
    [
        pytest.param(language, marks=[pytest.mark.slow] * (language in ("go", "java")))
        for language in LANGUAGES
    ],
)
def test_a_language_asks_a_gateway(language: str, front: Gateway) -> None:
    command = LANGUAGES[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    words = [*command, f"http://{front.places['rest']}", "digits", *MORE.get(language, [])]
    numbers = " ".join(map(str, IMAGES[0].ravel()))
    logits = np.array(output(words, numbers).split(), dtype=np.float64)
    np.testing.assert_allclose(logits, expected(IMAGES[:1])[0], atol=0.1)
