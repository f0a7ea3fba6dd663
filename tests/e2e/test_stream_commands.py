"""`privet pipeline` and `privet study leakage`, as users run them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.python.stream import models
from typer.testing import CliRunner

from privet.cli import app
from privet.compiler.executor import execute
from privet.errors import LinkError, Misuse

ROOT = Path(__file__).resolve().parents[2]
MODEL = str(ROOT / "zoo/models/breast-mlp.onnx")
DATA = str(ROOT / "zoo/models/breast-mlp.npz")


def report_of(*words: str) -> dict[str, object]:
    """What a command prints for programs."""
    result = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    report: dict[str, object] = json.loads(result.stdout)
    return report


def test_a_provider_that_may_serve_nobody_does_not_start(key_folder: Path) -> None:
    """It served, and refused whoever came."""
    words = ["pipeline", "provider", MODEL, "--keys", str(key_folder), "--listen", "127.0.0.1:0"]
    result = CliRunner().invoke(app, [*words, "--input-range", "-1", "1"])
    assert isinstance(result.exception, Misuse)
    assert "--reveal-values accepts" in str(result.exception)


@pytest.mark.timeout(20)
def test_a_model_provider_that_is_not_there_is_told_at_once(
    key_folder: Path, tmp_path: Path
) -> None:
    """The data provider tried for a minute, with five lines of log a second."""
    np.save(tmp_path / "x.npy", np.zeros((1, 6)))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["pipeline", "data", address, "--keys", str(key_folder), "--input"]
    result = CliRunner().invoke(app, [*words, str(tmp_path / "x.npy")])
    assert isinstance(result.exception, LinkError)
    assert f"nobody listens at {address}" in str(result.exception)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("cipher", [pytest.param("paillier", marks=pytest.mark.slow), "bfv"])
def test_two_organisations_by_their_commands(cipher: str, key_folder: Path, tmp_path: Path) -> None:
    compiled = models.perceptron()
    onnx.save(compiled.source, tmp_path / "model.onnx")
    samples = []
    for seed in range(3):
        samples.append(np.random.default_rng(seed).uniform(-1, 1, (1, 6)))
        np.save(tmp_path / f"{seed}.npy", samples[-1])
    command = [sys.executable, "-c", "from privet.cli import main; main()", "pipeline"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown_keys = ["--keys", str(key_folder), "--cipher", cipher]
    keys = [*shown_keys, "--json"]
    words = ["provider", str(tmp_path / "model.onnx"), "--listen", "127.0.0.1:0", *keys]
    words += ["--input-range", "-1", "1", "--reveal-values"]
    with subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, text=True, env=environment
    ) as provider:
        try:
            assert provider.stdout is not None
            listening = json.loads(provider.stdout.readline())
            assert len(listening["threads"]) == 3
            words = ["data", listening["address"], "--program-hash", listening["program_hash"]]
            for seed in range(3):
                words += ["--input", str(tmp_path / f"{seed}.npy")]
            inference = subprocess.run(
                [*command, *words, *keys], capture_output=True, env=environment, timeout=90
            )
            assert inference.returncode == 0, inference.stderr
            printout = subprocess.run(
                [*command, *words, *shown_keys], capture_output=True, env=environment, timeout=90
            )
            assert printout.returncode == 0, printout.stderr
            refusal = subprocess.run(
                [*command, *words[:2], "--program-hash", "0" * 64, *words[4:], *keys],
                capture_output=True,
                env=environment,
                timeout=90,
            )
            assert b"another program" in refusal.stdout
        finally:
            provider.send_signal(signal.SIGTERM)
        assert provider.wait(30) == 0
    ahead = b"material entries in" if cipher == "bfv" else b"Ahead of them: a key in"
    assert ahead in b" ".join(printout.stdout.split())
    report = json.loads(inference.stdout)
    assert "revealed up to order" in report["trust"]
    assert listening["cipher"] == report["cipher"] == cipher
    assert report["offline"]["seconds"] > 0
    assert report["offline"]["entries"] >= (3 if cipher == "bfv" else 0)
    for sample, outputs in zip(samples, report["outputs"], strict=True):
        expected = execute(compiled.program, compiled.weights, [sample]).outputs["y"]
        assert np.allclose(outputs["y"], expected, atol=2**-10)


def test_stages_are_listed_with_their_threads() -> None:
    servers = ["--server", "a:4:model", "--server", "b:2:data"]
    report = report_of("pipeline", "stages", MODEL, *servers)
    stages, plans = report["stages"], report["allocations"]
    assert isinstance(stages, list)
    assert isinstance(plans, dict)
    assert [stage["side"] for stage in stages] == ["data", *["model", "data"] * 3]
    for plan in plans.values():
        assert sum(plan["threads"][1::2]) <= 8
        assert sum(plan["threads"][0::2]) <= 4
    result = CliRunner().invoke(app, ["pipeline", "stages", MODEL, *servers])
    assert "slowest stage" in result.stdout


def test_what_is_prepared_ahead_is_shown_apart() -> None:
    report = report_of("pipeline", "stages", MODEL, "--cipher", "bfv")
    offline, stages = report["offline"], report["stages"]
    assert isinstance(offline, dict)
    assert isinstance(stages, list)
    assert offline["seconds"] > max(stage["seconds"] for stage in stages)
    assert offline["bytes_data"] > 0
    result = CliRunner().invoke(app, ["pipeline", "stages", MODEL, "--cipher", "bfv"])
    assert "Ahead of each request" in result.stdout


def test_scaling_prints_the_papers_table() -> None:
    report = report_of("pipeline", "scale", MODEL, "--calibration", DATA)
    accuracies = report["accuracies"]
    assert isinstance(accuracies, list)
    assert report["factor"] == 10 ** (len(accuracies) - 1)
    result = CliRunner().invoke(app, ["pipeline", "scale", MODEL, "--calibration", DATA])
    assert "10^0" in result.stdout
    assert "original" in result.stdout
    assert f"--weight-scale {report['bits']}" in result.stdout


def test_leakage_is_printed_plainly() -> None:
    report = report_of("study", "leakage", MODEL)
    assert "revealed up to order" in str(report["trust"])
    stdout = CliRunner().invoke(app, ["study", "leakage", MODEL]).stdout
    assert "fresh permutation" in stdout
    assert "cyclic shift" in stdout
    assert "Weaker trust" in stdout
