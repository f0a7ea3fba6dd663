"""One file, the environment and options, in this order, with the command itself as the schema."""

from __future__ import annotations

import contextlib
import re
import socket
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.e2e.services import put_digits
from tests.e2e.test_commands import DIGITS, key_folder, privet
from typer.testing import CliRunner

from privet.cli import app, configuration
from privet.cli.commands import COMMANDS
from privet.errors import Misuse

__all__ = ["key_folder"]


def taken(document: str, tmp_path: Path, name: str = "serve") -> dict[str, Any]:
    """What a command takes from a file."""
    path = tmp_path / "privet.toml"
    path.write_text(document)
    return configuration.defaults(COMMANDS[name].load(name), name, path)


def test_names_are_those_of_options_and_arguments(tmp_path: Path) -> None:
    document = """
    [serve]
    models = "repository"
    answers_per_hour = 7
    operator = ["alice"]
    input_range = [0, 1]
    set = ["rounds=log"]
    reveal_values = true
    [gateway]
    server = "https://127.0.0.1:7480"
    """
    assert taken(document, tmp_path) == {
        "models": "repository",
        "answers_per_hour": 7,
        "operator": ["alice"],
        "input_range": [0, 1],
        "options_set": ["rounds=log"],
        "reveal_values": True,
    }
    assert taken(document, tmp_path, "gateway") == {"server": "https://127.0.0.1:7480"}
    assert taken(document, tmp_path, "dealer") == {}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[serve", "cannot be read as TOML"),
        ("serve = 1", r"write \[serve\]"),
        ("[server]\nlisten = 'x'", r"server is not known; known are the tables \[serve\], "),
        ("listen = 'x'", "listen is not known"),
        ("[serve]\nlisen = ''", "lisen is not known; known are models, keys, listen"),
        ("[serve]\nconfig = 'x'", "config is not known"),
        ("[serve]\ncores = '2'", "cores is '2'; it needs to be a whole number"),
        ("[serve]\ncores = true", "cores is True; it needs to be a whole number"),
        ("[serve]\noperator = 'alice'", "operator is 'alice'; it needs to be a list"),
        ("[serve]\nreveal_values = 1", "it needs to be true or false"),
        ("[serve]\nlisten = 7480", "it needs to be a text in quotes"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(document: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=message):
        taken(document, tmp_path)


def test_the_environment_goes_before_the_file_and_options_before_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = COMMANDS["serve"].load("serve")
    file = tmp_path / "privet.toml"
    file.write_text(
        f"[serve]\nmodels = '.'\nkeys = '{tmp_path}'\nlisten = 'of-file:1'\nstate = 's'\n"
    )
    monkeypatch.setenv("PRIVET_SERVE_LISTEN", "of-environment:1")
    monkeypatch.setenv("PRIVET_SERVE_STATE", "of-environment")
    words = ["--config", str(file), "--state", "of-option"]
    with mock.patch.object(command, "callback", None):
        context = command.make_context("serve", words)
    values = {name: str(context.params[name]) for name in ("keys", "listen", "state")}
    assert values == {"keys": str(tmp_path), "listen": "of-environment:1", "state": "of-option"}
    with pytest.raises(Exception, match="Missing"):  # the control: the file was needed
        command.make_context("serve", words[2:])


def test_the_environment_has_the_names_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = COMMANDS["serve"].load("serve")
    monkeypatch.setenv("PRIVET_SERVE_MODELS", str(tmp_path))
    monkeypatch.setenv("PRIVET_SERVE_SET", "rounds=log; cores=2")
    monkeypatch.setenv("PRIVET_SERVE_JSON", "true")
    monkeypatch.setenv("PRIVET_SERVE_INPUT_RANGE", "0 1")
    monkeypatch.setenv("PRIVET_SERVE_OPERATOR", "privet operator; ann;")
    # What Kubernetes sets for a Service that is called `privet-serve`.
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP_ADDR"):
        monkeypatch.setenv(f"PRIVET_SERVE_{name}", "elsewhere")
    with mock.patch.object(command, "callback", None):
        context = command.make_context("serve", ["--keys", str(tmp_path)])
    names = ("models", "options_set", "as_json", "input_range", "operator")
    assert [context.params[name] for name in names] == [
        tmp_path,
        ["rounds=log", "cores=2"],
        True,
        (0.0, 1.0),
        ["privet operator", "ann"],
    ]


@pytest.mark.parametrize(
    ("variables", "line", "message"),
    [
        ({"LISEN": "x"}, "", "the variable PRIVET_SERVE_LISEN is not known; known are "),
        ({"CONFIG": "x"}, "", "the variable PRIVET_SERVE_CONFIG is not known"),
        ({"QUEUE": "many"}, "", r"'--queue': .*integer \(the variable PRIVET_SERVE_QUEUE\)$"),
        ({}, "grace = -5", r"'--grace': .*0.1 \(the file .*privet.toml, \[serve\]\)$"),
        ({"GRACE": "5"}, "grace = -5", ""),
    ],
)
def test_a_value_that_is_refused_is_said_with_its_place(
    variables: dict[str, str],
    line: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key_folder: Path,
) -> None:
    (tmp_path / "privet.toml").write_text(f"[serve]\n{line}\n")
    for name, value in variables.items():
        monkeypatch.setenv(f"PRIVET_SERVE_{name}", value)
    place = f"127.0.0.1:{free_ports(1)[0]}"
    words: list[object] = ["serve", tmp_path, "--keys", key_folder, "--listen", place, "--check"]
    answer = privet(*words, "--config", tmp_path / "privet.toml", code=2 if message else 0)
    assert not message or re.search(message, answer["error"]["message"])


def test_check_finds_nothing_and_then_what_is_wrong(key_folder: Path, tmp_path: Path) -> None:
    put_digits(tmp_path / "repository")
    file = tmp_path / "privet.toml"
    file.write_text(f"[serve]\nkeys = '{key_folder}'\nstate = '{tmp_path / 'state'}'\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words: list[object] = ["serve", tmp_path / "repository", "--config", file, "--check"]
    words += ["--listen", f"127.0.0.1:{port}"]
    assert privet(*words) == {"event": "checked"}
    assert not (tmp_path / "state").exists()
    with socket.create_server(("127.0.0.1", port)):
        assert privet(*words, code=1)["error"]["type"] == "OSError"
    (tmp_path / "repository" / "digits" / "config.toml").write_text("bits = 5\n")
    assert "bits is 5" in privet(*words, code=2)["error"]["message"]
    file.write_text(f"[serve]\nkeys = '{tmp_path}'\n")
    assert "server.pem cannot be read" in privet(*words, code=2)["error"]["message"]


def test_other_commands_do_not_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVET_RUN_SUITE", "magic")
    result = CliRunner().invoke(app, ["run", str(DIGITS), "--input", "absent.npy", "--json"])
    assert "magic" not in result.output


def free_ports(count: int) -> list[int]:
    """The first of so many ports in a row that nobody has."""
    with contextlib.ExitStack() as stack:
        while True:
            first = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                for port in range(first + 1, first + count):
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
                return [first + number for number in range(count)]


def test_check_looks_at_all_addresses_files_and_keys(
    key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_digits(tmp_path / "repository")
    control, probe, *workers = free_ports(5)
    place = "127.0.0.1:"
    words: list[object] = ["serve", tmp_path / "repository", "--keys", key_folder, "--check"]
    words += ["--state", tmp_path / "state", "--listen", f"{place}{control}", "--workers", 2]
    usual = {"--probe": f"{place}{probe}", "--first-port": workers[0]}

    def message(code: int = 2, **changes: object) -> str:
        named = {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
        options = [word for entry in {**usual, **named}.items() for word in entry]
        answer = privet(*words, *options, code=code)
        return str(answer.get("error", answer).get("message", ""))

    assert message(0, audit=tmp_path / "audit.log", dealer="localhost:7401") == ""
    assert list(tmp_path.iterdir()) == [tmp_path / "repository"]  # and nothing was made
    for busy in (probe, workers[1]):
        with socket.create_server(("127.0.0.1", busy)):
            assert "in use" in message(1)
    for answer in (message(probe=f"{place}{control}"), message(first_port=control - 1)):
        assert f"{place}{control} is to serve for two things" in answer
    assert f"0.0.0.0:{control} is to serve for two things" in message(probe=f"0.0.0.0:{control}")
    assert "none beyond 65535" in message(first_port=65_535)
    assert "is not HOST:PORT" in message(dealer="nowhere")
    assert "its folder is not there" in message(audit=tmp_path / "none" / "audit.log")
    (tmp_path / "file").write_text("")
    assert "cannot be written" in message(state=tmp_path / "file" / "state")
    monkeypatch.setenv("PRIVET_STATE_KEY", f"file:{tmp_path / 'none'}")
    assert "the state key" in message()


def test_check_says_that_a_folder_has_no_models(key_folder: Path, tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    words = ["serve", str(tmp_path), "--keys", str(key_folder), "--listen", listen, "--check"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, "has no models yet" in result.output) == (0, True)
