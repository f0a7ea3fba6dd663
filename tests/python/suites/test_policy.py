"""Rules for single clients reach the clients that they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privet.errors import Misuse
from privet.suites import Gmw, Guard, Mode, Policy, make_policy

CLIENT = "ab" * 32
COLONS = ":".join(["AB"] * 32)
"""As `openssl x509 -fingerprint -sha256` writes it."""

MODE = Mode.labelled(Gmw(rounds="log").label).text


def refusal(name: str, folder: Path) -> str | None:
    """Why the client may not ask, where a policy accepts nothing from who has this name."""
    rules = folder / "policy.toml"
    rules.write_text(f'[clients."{name}"]\naccepts = {{ suite = [] }}\n')
    return Guard(make_policy(rules), str(folder / "answers")).check(CLIENT, "ann", MODE)


@pytest.mark.parametrize("name", [CLIENT, CLIENT.upper(), COLONS, COLONS.lower(), "ann"])
def test_a_rule_reaches_its_client_however_its_fingerprint_is_written(
    name: str, tmp_path: Path
) -> None:
    assert "accepted for you: none" in str(refusal(name, tmp_path))


@pytest.mark.parametrize("name", [CLIENT.upper(), COLONS])
def test_a_policy_in_json_reaches_its_clients_as_well(name: str, tmp_path: Path) -> None:
    policy = Policy(json.dumps({"clients": {name: {"accepts": {"suite": []}}}}))
    assert "accepted for you: none" in str(Guard(policy, str(tmp_path)).check(CLIENT, None, MODE))


@pytest.mark.parametrize("name", ["Ann", "cd" * 32, "an:n"])
def test_a_rule_reaches_nobody_else(name: str, tmp_path: Path) -> None:
    assert refusal(name, tmp_path) is None


def test_two_rules_for_one_client_are_refused(tmp_path: Path) -> None:
    rules = tmp_path / "policy.toml"
    rules.write_text(f'[clients."{CLIENT}"]\n[clients."{COLONS}"]\n')
    with pytest.raises(Misuse, match="two rules"):
        make_policy(rules)
    rules.write_text("clients = 1\n")
    with pytest.raises(Misuse, match=r"policy.toml: this is no policy"):
        make_policy(rules)
