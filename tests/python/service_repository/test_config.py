"""`config.toml`: what it may say, and what its mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet.errors import Misuse
from privet.service.repository import ModelConfig, read_config
from privet.suites import Stream


def read(folder: Path, text: str) -> ModelConfig:
    (folder / "config.toml").write_text(text)
    return read_config(folder)


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert read_config(tmp_path) == ModelConfig()


def test_everything_that_may_be_said(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
        description = "Handwritten digits"
        versions = [1, 3]
        bits = 41
        scale = 13
        batch = 8
        cores = 2
        calibration = "samples.npy"
        input_range = [0, 1]
        shapes = { image = [1, 3, 64, 64] }
        suites = ["fss", "gmw"]
        security = ["semi-honest"]
        rounds = ["log"]
        [limits]
        requests_per_minute = 30
        queued = 5
        queued_per_client = 2
        notices_per_client = 0
        timeout = 12.5
        """,
    )
    assert config.versions == (1, 3)
    assert (config.bits, config.scale, config.batch, config.cores) == (41, 13, 8, 2)
    assert config.input_range == (0.0, 1.0)
    assert config.shapes == (("image", (1, 3, 64, 64)),)
    assert config.suites == ("fss", "gmw")
    assert (config.limits.requests_per_minute, config.limits.timeout) == (30, 12.5)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", ["bfv", "paillier 2048", "paillier 3072"]),
        ('cipher = ["paillier", "bfv"]', ["paillier 2048", "paillier 3072", "bfv"]),
        ("key_bits = [3072]", ["bfv", "paillier 3072"]),
        ('cipher = ["paillier"]\nkey_bits = [3072, 2048]', ["paillier 3072", "paillier 2048"]),
    ],
)
def test_ciphers_that_clients_may_choose_and_the_first_for_who_does_not(
    tmp_path: Path, text: str, labels: list[str]
) -> None:
    config = read(tmp_path, f'suites = ["stream"]\n{text}')
    offered = [suite.label for suite in config.offered(Stream)]
    assert offered == [f"stream {label}" for label in labels]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("bitz = 3", ["bitz is not known", "bits", "scale", "limits"]),
        ("bits = 60", ["bits is 60", "16 to 50"]),
        ("bits = true", ["bits is True", "whole number"]),
        ("bits = 37.0", ["bits is 37.0", "whole number"]),
        ('suites = ["magic"]', ["suites", "magic", "gmw", "fss"]),
        ('suites = ["gmw", "gmw"]', ["suites", "each value once"]),
        ("suites = []", ["suites", "1 to"]),
        ('versions = "latest"', ["versions", "newest", "all", "[1, 3]"]),
        ("input_range = [1, 0]", ["input_range", "lowest number first"]),
        ('calibration = "../../secret.npy"', ["calibration", "match"]),
        ("[limits]\nqueue = 3", ["limits", "queue is not known", "queued_per_client"]),
        ("[limits]\ntimeout = nan", ["limits", "timeout"]),
        ("limits = 3", ["limits", "named fields"]),
        ("bits = \nscale = 3", ["cannot be read as TOML", "line 1"]),
        ('suites = ["stream"]\nkey_bits = [2500]', ["key_bits", "2048, 3072"]),
        ('suites = ["gmw"]\nsecurity = ["malicious"]', ["malicious", "fss"]),
    ],
)
def test_a_mistake_is_told_with_the_file_and_what_is_possible(
    tmp_path: Path, text: str, parts: list[str]
) -> None:
    with pytest.raises(Misuse) as excinfo:
        read(tmp_path, text)
    for part in ["config.toml", *parts]:
        assert part in str(excinfo.value)
