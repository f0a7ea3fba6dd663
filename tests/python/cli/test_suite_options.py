"""`--suite` brings a suite's options with it, and those of another are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet import suites
from privet.cli import app
from privet.errors import Misuse
from privet.suites.options import fields_of

DIGITS = Path(__file__).parents[3] / "zoo" / "models" / "digits-cnn.onnx"

COMMANDS = ("run", "inspect", "compile")


def shown(*words: str) -> str:
    """The help of a command."""
    wide = {"COLUMNS": "200", "TERMINAL_WIDTH": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(app, [*words, "--help"], env=wide).output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_shared_options_and_a_line_for_each_suite(command: str) -> None:
    text = shown(command)
    assert "--calibration" in text
    for suite in suites.all_suites():
        assert suite.about[:40] in text
        flags = [field.flag for field in fields_of(suite)]
        assert not [flag for flag in flags if f" {flag} " in text]


@pytest.mark.parametrize("command", ["run", "infer", "prepare", "serve"])
def test_help_begins_with_few_options_and_an_example(command: str) -> None:
    text = shown(command)
    assert f"Example: privet {command} " in text
    first = text.partition(" Options ")[2].partition("\n╰")[0]
    flags = [line.split()[-1 if "*" in line else 0] for line in first.split("│") if "--" in line]
    assert 8 <= len(flags) <= 12, flags


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("suite", suites.names())
def test_help_of_a_suite_has_its_options_and_no_others(command: str, suite: str) -> None:
    text = shown(command, "--suite", suite)
    flags = {field.flag for field in fields_of(suites.suite_type(suite))}
    others = {
        field.flag for suite_type in suites.all_suites() for field in fields_of(suite_type)
    } - flags
    assert [flag for flag in flags if f" {flag} " not in text] == []
    assert suites.as_suite(suite).trust.adversary in text
    assert [flag for flag in others if f" {flag} " in text] == []


@pytest.mark.parametrize("words", [("--suite", "stream"), ("--suite=stream",)])
def test_an_option_of_another_suite_is_refused_by_name(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["inspect", str(DIGITS), *words, "--rounds", "log"])
    assert isinstance(result.exception, Misuse)
    assert "--rounds is an option of suite gmw, not of stream" in str(result.exception)
    result = CliRunner().invoke(app, ["inspect", str(DIGITS), "--cipher", "bfv"])
    assert "--cipher is an option of suite stream, not of gmw" in str(result.exception)


def test_options_reach_the_suite() -> None:
    words = ["inspect", str(DIGITS), "--suite", "fss", "--security", "malicious", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["security"] == "malicious"
    result = CliRunner().invoke(app, ["inspect", str(DIGITS), "--rounds", "few"])
    assert "rounds is 'few'; possible are auto, linear, log, blocks" in str(result.exception)
