"""Where the key of a party's state is from, and what is said when it cannot be had."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from privet.errors import Misuse
from privet.state_key import CREDENTIAL, VARIABLE, state_key

KEY = "0123456789abcdef" * 4
BYTES = bytes.fromhex(KEY)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key but a test's own."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def written(folder: Path, text: str = KEY) -> Path:
    path = folder / CREDENTIAL
    path.write_text(text)
    return path


def test_there_is_no_state_key_unless_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert state_key() is None
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert state_key() is None


@pytest.mark.parametrize("text", [KEY, f"{KEY}\n", KEY.upper()])
def test_a_state_key_comes_from_a_file_a_credential_or_a_command(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, text)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert state_key() == BYTES
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    monkeypatch.setenv(VARIABLE, f"file:{path}")
    assert state_key() == BYTES
    monkeypatch.setenv(VARIABLE, f"command:cat {shlex.quote(str(path))}")
    assert state_key() == BYTES


def test_the_variable_goes_before_the_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "f" * 64)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv(VARIABLE, f"file:{written(other)}")
    assert state_key() == BYTES


@pytest.mark.parametrize(
    "source", ["/etc/key", "file:", "command:", "command: ", "key:0123", KEY, "env:KEY"]
)
def test_other_places_are_refused_without_quoting_them(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever puts the key itself into the variable does not find it in a log."""
    monkeypatch.setenv(VARIABLE, source)
    with pytest.raises(Misuse, match=f"{VARIABLE} is neither file:PATH nor command") as excinfo:
        state_key()
    assert KEY not in str(excinfo.value)


@pytest.mark.parametrize("text", ["", KEY[1:], KEY + "0", "z" * 64, " ".join(KEY), "\u00e9" * 64])
def test_what_is_no_key_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"file:{written(tmp_path, text)}")
    with pytest.raises(Misuse, match="not 64 hexadecimal digits: `openssl rand"):
        state_key()


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "file:/nowhere/key")
    with pytest.raises(Misuse, match="/nowhere/key cannot be read: No such file"):
        state_key()


def test_a_command_that_fails_says_how_and_nothing_it_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = f"print({KEY!r}); raise SystemExit(3)"
    monkeypatch.setenv(VARIABLE, f"command:{shlex.join([sys.executable, '-c', script])}")
    with pytest.raises(Misuse, match="exit status 3") as excinfo:
        state_key()
    assert KEY not in str(excinfo.value)
    monkeypatch.setenv(VARIABLE, "command:/nowhere/program")
    with pytest.raises(Misuse, match="No such file"):
        state_key()
