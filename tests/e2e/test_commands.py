"""The commands as two hosts would run them: real processes, real sockets, JSON on stdout."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from privet.cli import app, run_command

MODELS = Path(__file__).parents[2] / "zoo" / "models"
DIGITS = MODELS / "digits-cnn.onnx"
SEVEN = MODELS / "digit-7.png"
PRIVET = [sys.executable, "-c", "from privet.cli import main; main()"]


def privet(*words: object, code: int = 0) -> dict[str, Any]:
    """Runs a command with `--json` and returns its object; it must end with `code`.

    The command runs in this process: what starting another adds, a second or two, is tested once.
    """
    stdout = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["privet", *map(str, words), "--json"]),
        redirect_stdout(stdout),
        pytest.raises(SystemExit) as excinfo,
    ):
        run_command()
    assert (excinfo.value.code or 0) == code, stdout.getvalue()
    result: dict[str, Any] = json.loads(stdout.getvalue())
    return result


def test_a_command_is_a_process(tmp_path: Path) -> None:
    """It prints and ends as `privet` says."""
    build = ["zoo", "build", "heart", "-o", tmp_path]
    for words, code in ((build, 0), (["run", DIGITS, "--suite", "magic"], 2)):
        command = [*PRIVET, *map(str, words), "--json"]
        process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (process.returncode, json.loads(process.stdout)) == (code, privet(*words, code=code))


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder)
    return folder


def modules(pid: int) -> list[int]:
    """The children of a process that run a module of Python."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if b"\0-m\0" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_deaf_to_ctrl_c(pid: int) -> bool:
    blocked = Path(f"/proc/{pid}/status").read_text().partition("SigBlk:")[2].split()[0]
    return bool(int(blocked, 16) & 1 << signal.SIGINT - 1)


@pytest.mark.parametrize(("command", "code"), [("run", 130), ("serve", 0)])
def test_ctrl_c_stops_a_command_and_its_processes(
    command: str, code: int, key_folder: Path, tmp_path: Path
) -> None:
    """A terminal sends the signal to all of them; only the first hears it, and ends the others."""
    words = ["--keys", key_folder, "--state", tmp_path, "--listen", "127.0.0.1:0"]
    arguments = [command, DIGITS, *(words if command == "serve" else ["--link", "wan"])]
    with subprocess.Popen(
        [*PRIVET, *map(str, arguments)],
        start_new_session=True,
        # Shells let their background jobs ignore the signal, and this test may run in one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (children := modules(process.pid)):
            assert process.poll() is None
            time.sleep(0.02)
        assert is_deaf_to_ctrl_c(children[0])
        os.killpg(process.pid, signal.SIGINT)
        errors = process.communicate(timeout=120)[1]
    assert "Traceback" not in errors
    assert process.returncode == code


def test_a_command_that_is_terminated_leaves_no_keys_and_inputs(tmp_path: Path) -> None:
    """They lie in a folder for its processes, which stayed, with weights."""
    with subprocess.Popen(
        [*PRIVET, "run", str(DIGITS), "--input", str(SEVEN), "--link", "wan"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not modules(process.pid):
            assert process.poll() is None
            time.sleep(0.02)
        assert list(tmp_path.glob("*/keys"))
        process.terminate()
        errors = process.communicate(timeout=60)[1]
    assert "Traceback" not in errors
    assert process.returncode == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())


def test_run_prints_what_programs_need() -> None:
    result = privet("run", DIGITS, "--input", SEVEN)
    assert list(result)[:4] == ["model", "suite", "security", "rounds"]
    assert int(np.argmax(result["output"])) == 7
    assert result["argmax_agrees"] is True
    assert result["max_abs_error"] < 0.1
    assert result["max_fixed_point_error"] >= 0
    for phase in ("offline", "online"):
        cost = result[phase]
        assert cost.pop("bytes_dealer") == 0
        assert cost.pop("cpu_seconds") > 0
        assert (cost.pop("bytes_setup"), cost.pop("seconds_setup")) == (0, 0)
        assert set(cost) == {"seconds", "bytes_client", "bytes_server", "rounds", "peak_rss_mb"}
        assert min(cost.values()) > 0
    assert result["layers"]


def test_results_without_samples_say_so(tmp_path: Path) -> None:
    """And those with samples, or with a proof, do not."""
    samples = ("--calibration", str(MODELS / "digits-cnn-samples.npy"))
    for options, basis in (((), "random"), (samples, "samples")):
        command = [*PRIVET, "run", str(DIGITS), "--input", str(SEVEN), *options]
        process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert ("Not calibrated" in process.stdout) == (basis == "random")
        assert privet("run", DIGITS, "--input", SEVEN, *options)["calibration"] == basis
        report = privet("compile", DIGITS, tmp_path / basis, *options)
        assert report["calibration"] == basis
        assert report["ranges"]["sound"] is False
    wide = ("--bits", str(report["ranges"]["sound_bits"]), "--sound", *samples)
    proved = privet("compile", DIGITS, tmp_path / "sound", *wide)
    assert proved["calibration"] == "sound"
    assert all(layer["sound"] for layer in proved["ranges"]["layers"])


def test_a_proof_that_fails_names_the_layer(tmp_path: Path) -> None:
    command = [*PRIVET, "compile", str(DIGITS), str(tmp_path / "p"), "--sound"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode != 0
    assert "layer norm3" in process.stderr
    assert "--bits 44" in " ".join(process.stderr.split())
    assert not (tmp_path / "p").exists()


def test_run_prints_for_people() -> None:
    command = [*PRIVET, "run", str(DIGITS), "--input", str(SEVEN), "--rounds", "log", "--layers"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    for part in (
        "Prediction: 7",
        "agrees",
        "offline",
        "online",
        "peak memory",
        "norm1",
        "log rounds",
    ):
        assert part in text


def test_wrong_inputs_are_named(tmp_path: Path) -> None:
    vector = tmp_path / "x.npy"
    for array, part in (
        (np.zeros((1, 1, 9, 9)), "shape"),
        (np.full((1, 1, 8, 8), np.nan), "NaN"),
        (np.zeros((1, 1, 8, 8), dtype=complex), "type"),
    ):
        np.save(vector, array)
        reply = privet("run", DIGITS, "--input", vector, code=2)
        assert reply["error"]["type"] == "InputError"
        assert part in reply["error"]["message"]
    np.save(vector, np.array([{}], dtype=object), allow_pickle=True)
    assert privet("run", DIGITS, "--input", vector, code=2)["error"]["type"] == "InputError"
    assert privet("run", DIGITS, "--suite", "magic", code=2)["error"]["type"] == "Misuse"
    assert privet("run", DIGITS, "--rounds", "few", code=2)["error"]["type"] == "Misuse"
    overflow = privet("compile", DIGITS, tmp_path / "p", "--bits", "24", code=3)["error"]
    assert overflow["type"] == "OverflowRisk"
    assert overflow["layer"] in overflow["message"]


def test_a_link_slows_a_run_down_and_decides_on_its_rounds() -> None:
    link = {"rtt_ms": 10.0, "bits_per_second": 100_000_000}
    for options, rounds in (((), "blocks"), (("--rounds", "linear"), "linear")):
        words = ["--link", "10ms,100Mbit", *options]
        expected = privet("inspect", DIGITS, *words)
        result = privet("run", DIGITS, "--input", SEVEN, *words)
        for report in (expected, result):
            assert report["rounds"] == rounds
            assert report["link"] == link
        assert int(np.argmax(result["output"])) == 7
        assert result["online"]["seconds"] > 0.95 * expected["online_delay"]
        assert expected["online_delay"] > 0.0049 * result["online"]["rounds"]
    plain = privet("run", DIGITS, "--input", SEVEN)
    assert plain["rounds"] == "linear"
    assert plain["link"] is None
    wrong = privet("run", DIGITS, "--link", "moon", code=2)["error"]
    assert wrong["type"] == "Misuse"
    assert "20ms,100Mbit" in wrong["message"]


def test_inspect_tells_the_material(tmp_path: Path) -> None:
    report = privet("inspect", DIGITS)
    assert report["supported"] == {"gmw": True, "fss": True, "ckks": False, "stream": True}
    correlations = report["forecast"]["correlations"]
    assert (
        sum(correlations[name] for name in correlations if name.startswith(("eights", "sixteens")))
        > 0
    )
    assert [node["operator"] for node in report["nodes"]].count("Conv") == 4
    result = privet("run", DIGITS, "--input", SEVEN)
    for phase in ("offline", "online"):
        for party in ("client", "server"):
            assert result[phase][f"bytes_{party}"] == report["forecast"][f"{phase}_bytes_{party}"]


def test_inspect_lists_every_problem_at_once(tmp_path: Path) -> None:
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in "xy"
    )
    nodes = [
        onnx.helper.make_node("Acos", ["x"], ["inner"], name="first"),
        onnx.helper.make_node("Tan", ["inner"], ["y"], name="second"),
    ]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "two problems", [x], [y]))
    onnx.save(model, tmp_path / "two.onnx")
    report = privet("inspect", tmp_path / "two.onnx", code=3)
    assert report["supported"] == dict.fromkeys(("gmw", "fss", "ckks", "stream"), False)
    operators = {problem["operator"] for problem in report["problems"]}
    assert operators == {"Acos", "Tan"}
    assert all(
        problem["node"] and problem["why"] and problem["instead"] for problem in report["problems"]
    )


def test_inspect_shows_what_runs_where(tmp_path: Path) -> None:
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in "xy"
    )
    nodes = [
        onnx.helper.make_node("Sigmoid", ["x"], ["gate"], name="gate"),
        onnx.helper.make_node("Relu", ["x"], ["high"], name="high"),
        onnx.helper.make_node("Mul", ["high", "gate"], ["y"], name="gated"),
    ]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "gated", [x], [y]))
    onnx.save(model, tmp_path / "gated.onnx")
    words = ("inspect", tmp_path / "gated.onnx", "--all-suites")
    verdicts = {verdict["suite"]: verdict for verdict in privet(*words)["suites"]}
    assert set(verdicts) == {"gmw", "fss", "ckks", "stream"}
    assert verdicts["fss"]["options"] == {}
    assert verdicts["gmw"]["options"] == {}
    assert "gated" in [problem["node"] for problem in verdicts["stream"]["problems"]]
    assert verdicts["stream"]["options"] is None
    table = CliRunner().invoke(app, [str(word) for word in words]).stdout
    assert "gated (mul): it multiplies two private tensors" in table


def test_the_zoo_is_listed_and_built(tmp_path: Path) -> None:
    listing = subprocess.run(
        [*PRIVET, "zoo", "list"], capture_output=True, text=True, check=True
    ).stdout
    assert "squeezenet" in listing
    report = privet("zoo", "build", "mnist-1", "-o", tmp_path)
    assert Path(report["path"]).stat().st_size == report["bytes"]
