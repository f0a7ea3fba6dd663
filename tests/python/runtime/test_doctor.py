"""What `privet doctor` finds: nothing on a good machine, and each thing that is wrong by name."""

from __future__ import annotations

import json
import resource
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet import keys as certificates
from privet.cli import app
from privet.cli.commands import EXTRAS, not_installed
from privet.runtime import doctor


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    certificates.make(folder)
    return folder


def test_fresh_keys_and_state_are_well(keys: Path, tmp_path: Path) -> None:
    assert {finding.state for finding in doctor.key_folder(keys)} == {"ok"}
    assert doctor.state_folder(tmp_path / "new" / "state").state in ("ok", "note")


def test_keys_that_others_read_are_wrong(tmp_path: Path) -> None:
    certificates.make(tmp_path / "keys", keep_ca_key=True)
    key = tmp_path / "keys" / "server.key"
    key.chmod(0o644)
    wrong = [finding for finding in doctor.key_folder(tmp_path / "keys") if finding.state != "ok"]
    assert [(finding.state, finding.about) for finding in wrong] == [
        ("wrong", "keys"),
        ("note", "keys"),
    ]
    assert wrong[0].advice.endswith(f"chmod 600 {key}")
    assert "ca.key" in wrong[1].found


def test_certificates_that_are_none_and_folders_that_are_not_there_are_wrong(
    tmp_path: Path,
) -> None:
    (tmp_path / "server.pem").write_text("none")
    for folder in (tmp_path, tmp_path / "absent"):
        assert [finding.state for finding in doctor.key_folder(folder)] == ["wrong"]


def test_state_that_others_read_is_wrong(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert "chmod 700" in doctor.state_folder(tmp_path).advice


def test_a_taken_address_is_wrong_and_a_free_one_ok() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert doctor.can_listen("127.0.0.1", port).state == "wrong"
    assert doctor.can_listen("127.0.0.1", 0).state == "ok"


def test_processors_without_instructions_are_a_note(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags\t\t: fpu aes avx2 pclmulqdq\n")
    assert doctor.instructions(cpuinfo).state == "ok"
    cpuinfo.write_text("flags\t\t: fpu avx2 pclmulqdq\n")
    finding = doctor.instructions(cpuinfo)
    assert (finding.state, "aes" in finding.advice) == ("note", True)


@pytest.mark.parametrize(
    ("limits", "state", "words"),
    [
        ((1024, 1 << 20), "ok", ""),  # a service takes the hard limit
        ((1024, resource.RLIM_INFINITY), "ok", ""),
        ((1024, 1024), "note", "about 512 connections"),
        ((40, 40), "wrong", "needs 68"),
    ],
)
def test_few_open_files_are_a_note_and_too_few_wrong(
    limits: tuple[int, int], state: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    finding = doctor.descriptors()
    assert (finding.state, words in finding.advice) == (state, True)


@pytest.mark.parametrize(
    ("pattern", "hard", "state"), [("|/dumps", 0, "note"), ("|/dumps", 1, "ok"), ("core", 0, "ok")]
)
def test_dumps_to_a_program_in_spite_of_a_limit_of_0_are_a_note(
    pattern: str, hard: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pattern").write_text(pattern)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, hard))
    assert doctor.core_dumps(tmp_path / "pattern").state == state


def test_the_command_ends_with_1_if_something_is_wrong(keys: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "--keys", str(tmp_path / "absent"), "--json"])
    assert result.exit_code == 1
    states = {
        finding["about"]: finding["state"] for finding in json.loads(result.output)["findings"]
    }
    assert states["keys"] == "wrong"
    assert "instructions" in states
    output = CliRunner().invoke(app, ["doctor", "--keys", str(keys)]).output
    assert "privet[serve]" in output


def test_a_missing_package_is_named_with_its_extra() -> None:
    for module, extra in EXTRAS.items():
        error = not_installed(ModuleNotFoundError("no", name=f"{module}.part"))
        assert f"pip install 'privet[{extra}]'" in str(error)
    assert not_installed(ModuleNotFoundError("no", name="privet.nothing")) is None
