"""How errors leave the command line."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console as RichConsole
from rich.text import Text

from privet import cli
from privet.cli import show
from privet.cli.failures import report
from privet.errors import (
    InputError,
    LinkError,
    MaterialError,
    Misuse,
    ModelError,
    OverflowRisk,
    PeerError,
    PeerMisbehaved,
    PrivetError,
    Problem,
    UnsupportedModel,
    error_named,
)

STEERS = "\x1b[2J\x1b]0;title\x07\x9b[31m\u202e\r"

UNSUPPORTED = UnsupportedModel([Problem("node_7", "LSTM", "it loops", "Unroll it")])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError("disk full"), 1),
        (PrivetError("odd"), 1),
        (InputError("a NaN"), 2),
        (Misuse("bits = 99"), 2),
        (UNSUPPORTED, 3),
        (PeerMisbehaved("garbage"), 4),
        (LinkError("gone"), 4),
        (MaterialError("spent"), 4),
    ],
)
def test_families_have_their_exit_codes(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error, as_json=False) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == f"error: {error}\n"


def test_control_characters_from_a_peer_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(PeerMisbehaved(f"gone{STEERS}\nsecond line"), as_json=False)
    assert capsys.readouterr().err == "error: gone[2J]0;title[31m\nsecond line\n"
    scores = np.array([[0.5, 4.0]])
    show.prediction(show.make_console(), {"y": scores}, ["cat", f"[/]dog{STEERS}"], False)
    assert capsys.readouterr().out.startswith("Prediction: [/]dog[2J]0;title[31m (score 4.0000")
    # Printed as it is, it would.
    RichConsole().print(Text(f"gone{STEERS}"))
    assert "\x1b[2J" in capsys.readouterr().out


def test_an_address_in_use_is_told_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with pytest.raises(OSError, match="in use") as excinfo:
            socket.create_server(listener.getsockname())
        assert report(excinfo.value, as_json=False) == 1
    assert "end it, or give another address" in capsys.readouterr().err
    # An address of documents (RFC 5737), which no machine has.
    with pytest.raises(OSError, match="assign requested") as excinfo:
        socket.create_server(("192.0.2.1", 0))
    report(excinfo.value, as_json=False)
    assert "this machine has no such address" in capsys.readouterr().err


def test_programs_get_the_fields_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    report(UNSUPPORTED, as_json=True)
    output = capsys.readouterr()
    assert output.err == ""
    error = json.loads(output.out)["error"]
    assert error["type"] == "UnsupportedModel"
    assert error["message"] == str(UNSUPPORTED)
    assert error["problems"] == [
        {"node": "node_7", "operator": "LSTM", "why": "it loops", "instead": "Unroll it"}
    ]


def test_programs_get_numbers_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    risk = OverflowRisk("too wide", layer="conv_3", magnitude=1.5, bits_needed=41)
    report(risk, as_json=True)
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["layer"], error["magnitude"], error["bits_needed"]) == ("conv_3", 1.5, 41)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("InputError", InputError),
        ("UnsupportedModel", ModelError),
        ("OverflowRisk", ModelError),
        ("JobFailed", PeerError),
        ("PermissionError", PrivetError),
        ("printable", PrivetError),
    ],
)
def test_an_error_of_another_process_keeps_its_family(name: str, family: type[PrivetError]) -> None:
    error = error_named(name, "why")
    assert (type(error), str(error)) == (family, "why")


def test_a_message_is_never_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    report(Misuse("shape [1, 3] and [bold]"), as_json=False)
    assert capsys.readouterr().err == "error: shape [1, 3] and [bold]\n"


@pytest.mark.parametrize(("flags", "is_json"), [([], False), (["--json"], True)])
def test_main_reports_what_a_command_raises(
    flags: list[str],
    is_json: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise LinkError("the server is gone")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr(sys, "argv", ["privet", "run", *flags])
    with pytest.raises(SystemExit) as excinfo:
        cli.run_command()
    assert excinfo.value.code == 4
    output = capsys.readouterr()
    assert "the server is gone" in (output.out if is_json else output.err)
    assert not (output.err if is_json else output.out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "absent.onnx"], "file 'absent.onnx' does not exist"),
        (["run"], "Missing argument 'MODEL.onnx'"),
        (["inspect", "model.onnx", "--bits", "many"], "Invalid value for '--bits'"),
        (["doctor", "--unknown"], "No such option: --unknown"),
        (["unknown"], "No such command 'unknown'"),
    ],
)
def test_a_wrong_call_is_told_to_programs_too(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").touch()
    monkeypatch.setattr(sys, "argv", ["privet", *words, "--json"])
    with pytest.raises(SystemExit) as excinfo:
        cli.run_command()
    assert excinfo.value.code == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["type"] == "Misuse"
    assert message in error["message"]


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_bug_keeps_its_traceback(
    flags: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It keeps its traceback, and programs still read an object."""

    def fail(**_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr(sys, "argv", ["privet", "run", *flags])
    with pytest.raises(ZeroDivisionError):
        cli.run_command()
    output = capsys.readouterr().out
    expected = {"error": {"type": "ZeroDivisionError", "message": "a bug"}}
    assert json.loads(output) == expected if flags else not output
