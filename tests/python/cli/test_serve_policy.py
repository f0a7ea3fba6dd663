"""Policies that `privet serve` cannot keep with its executor."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.services import put_digits
from tests.e2e.test_commands import privet

from privet.suites import make_policy
from privet.suites.policy import accepts_anywhere


def test_rules_of_clients_are_searched_for_what_they_accept(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[clients."weights".accepts]\ntruncation = ["one-bit"]\n')
    assert not accepts_anywhere(make_policy(file), "encrypts", "weights")
    assert accepts_anywhere(make_policy(file), "truncation", "one-bit")
    assert accepts_anywhere(make_policy(encrypts="weights"), "encrypts", "weights")


@pytest.mark.parametrize("words", [("--encrypts", "weights"), ("--accept", "policy.toml")])
def test_no_weights_are_kept_of_a_cluster(
    tmp_path: Path, key_folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    put_digits(tmp_path / "repository")
    Path("policy.toml").write_text('[clients.ann.accepts]\nencrypts = ["masks", "weights"]\n')
    options = ("--keys", key_folder, "--listen", "127.0.0.1:0", "--executor", "ray")
    reply = privet("serve", "repository", *options, "--check", *words, code=2)
    assert "run without Ray" in reply["error"]["message"]
