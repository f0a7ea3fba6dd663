"""Every way of serving refuses what its policy does not accept, and serves it where it does.

What a session does with a policy is tested in `crates/suites/tests/whole/policy.rs`; this is about
the ways of serving, each as its users start it, and about what clients are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.processes import listening
from tests.e2e.test_commands import privet
from tests.python.stream import models

from privet import keys
from privet.compiler.compile import Compiled, compile
from privet.errors import Misuse, NotAccepted, PeerBusy, PeerError, PrivetError
from privet.runtime import Client, Credentials, Server
from privet.stream.cipher import BFV
from privet.stream.pair import pair
from privet.suites import Fss, Gmw, Policy, make_policy

MODELS = Path(__file__).parents[2] / "zoo" / "models"
DIGITS, SEVEN = MODELS / "digits-cnn.onnx", MODELS / "digit-7.png"
SMOOTH = MODELS / "digits-smooth" / "square.onnx"


@pytest.fixture(scope="module")
def digits() -> Compiled:
    return compile(DIGITS, input_range=(0, 1))


@pytest.fixture
def ask(
    digits: Compiled, key_folder: Path, tmp_path: Path
) -> Callable[[Policy | None, dict[str, Any]], Any]:
    """Asks a new server with a policy, whose state outlives it, for one prediction."""
    sample = np.zeros((1, 1, 8, 8), np.float32)

    def run(policy: Policy | None, options: dict[str, Any]) -> Any:
        with Server(
            Credentials.from_directory(key_folder, "server"), state=tmp_path, policy=policy
        ) as server:
            server.add(digits.program, digits.weights)
            server.start()
            credentials = Credentials.from_directory(key_folder, "client")
            with Client(*server.address, credentials, state=tmp_path, **options) as client:
                return client.infer([sample])

    return run


def test_a_server_accepts_exact_truncations_alone_unless_it_is_told(
    ask: Callable[..., Any], tmp_path: Path
) -> None:
    one_bit = {"suite": Gmw(truncation="one-bit")}
    assert ask(None, {}).weaknesses == ()
    with pytest.raises(NotAccepted, match=r"does not accept truncation one-bit.*for you: exact"):
        ask(None, one_bit)
    options = {"suite": Fss(), "dealer": "127.0.0.1:1"}
    with pytest.raises(NotAccepted, match=r"does not accept correlations dealer.*parties"):
        ask(None, options)
    assert list((tmp_path / "server" / "ready").iterdir()) == []
    answer = ask(make_policy(truncation="one-bit"), one_bit)
    assert [weakness.name for weakness in answer.weaknesses] == ["one-bit"]
    assert (answer.mode.truncation, answer.mode.suite) == ("one-bit", "gmw")


def test_answers_are_counted_over_modes_and_restarts(ask: Callable[..., Any]) -> None:
    policy = make_policy(truncation="one-bit", answers_per_hour=2)
    ask(policy, {})
    ask(policy, {"suite": Gmw(truncation="one-bit")})
    for options in ({}, {"suite": Gmw(truncation="one-bit")}, {"suite": Gmw(linear="online")}):
        with pytest.raises(PeerBusy, match=r"2 answers in an hour.*try again in \d+ seconds"):
            ask(policy, options)
    # The material of two refused inferences was kept at both sides, and serves once it may.
    assert ask(make_policy(), {}).offline is None


def test_clients_have_rules_of_their_own(ask: Callable[..., Any], tmp_path: Path) -> None:
    rules = tmp_path / "policy.toml"
    rules.write_text('named_only = true\n[clients."somebody else"]\nanswers_per_hour = 3\n')
    with pytest.raises(NotAccepted, match="serves clients that it names alone"):
        ask(make_policy(rules), {})
    rules.write_text(
        'named_only = true\n[clients."privet client".accepts]\ntruncation = ["one-bit"]\n'
    )
    assert ask(make_policy(rules), {"suite": Gmw(truncation="one-bit")}).weaknesses
    with pytest.raises(NotAccepted, match="truncation exact: accepted for you: one-bit"):
        ask(make_policy(rules), {})
    rules.write_text("accept = 1\n")
    with pytest.raises(Misuse, match="this is no policy: unknown field"):
        make_policy(rules)
    rules.write_text('[accepts]\nsuites = ["gmw"]\n')
    with pytest.raises(Misuse, match=r'there is no choice "suites": possible are suite, [a-z, ]+$'):
        make_policy(rules)


def test_the_commands_name_what_they_accept_and_got(key_folder: Path, tmp_path: Path) -> None:
    words = ["serve", DIGITS, "--keys", key_folder, "--input-range", 0, 1]
    words += ["--state", tmp_path / "server"]
    arguments = ["--keys", key_folder, "--state", tmp_path / "client", "--input", SEVEN]
    with listening(*words) as (_, address):
        assert privet("infer", address, *arguments)["weaknesses"] == []
        reply = privet("infer", address, *arguments, "--truncation", "one-bit", code=4)
        assert reply["error"]["type"] == "NotAccepted"
    with listening(*words, "--truncation", "one-bit", "--answers-per-hour", 1) as (_, address):
        report = privet("infer", address, *arguments, "--truncation", "one-bit")
        assert report["weaknesses"] == ["one-bit"]
        reply = privet("infer", address, *arguments, "--timeout", 3, code=4)
        assert reply["error"]["type"] == "PeerBusy"


def test_a_stream_is_served_only_where_values_may_be_revealed(
    key_folder: Path, tmp_path: Path
) -> None:
    compiled = models.perceptron()
    compiled.save(tmp_path / "program")
    sample = np.zeros((1, 6))

    async def ask(policy: Policy | None, times: int) -> None:
        async with pair(tmp_path / "program", key_folder, cipher=BFV, policy=policy) as parties:
            for _ in range(times):
                await parties.data.integers([sample])

    with pytest.raises(PrivetError, match="does not accept suite stream"):
        asyncio.run(ask(make_policy(), 1))
    # By default this helper accepts the suite. Another start finds what was counted.
    asyncio.run(ask(None, 2))
    limited = make_policy(revealed_values=True, answers_per_hour=2)
    asyncio.run(ask(limited, 1))
    with pytest.raises(PeerError, match="2 answers in an hour"):
        asyncio.run(ask(limited, 2))


def test_a_server_of_suite_ckks_floods_lightly_only_if_both_sides_say_so(
    key_folder: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    words = ["serve", SMOOTH, "--suite", "ckks", "--keys", key_folder]
    words += ["--state", tmp_path / "state", "--input-range", 0, 1]
    arguments = ["--suite", "ckks", "--keys", key_folder, "--input", tmp_path / "x.npy"]
    with listening(*words, "--flooding", "light") as (_, address):
        error = privet("infer", address, *arguments, code=4)["error"]
        assert error["type"] == "NotAccepted"
        assert "floods its results lightly" in error["message"]
        report = privet("infer", address, *arguments, "--flooding", "light")
        assert report["weaknesses"] == ["light-flooding"]
    with listening(*words, "--answers-per-hour", 1) as (_, address):
        assert privet("infer", address, *arguments)["weaknesses"] == []
    with listening(*words, "--answers-per-hour", 1) as (_, address):
        error = privet("infer", address, *arguments, code=4)["error"]
        assert error["type"] == "PeerBusy"
        assert "1 answers in an hour" in error["message"]


def test_a_server_of_suite_ckks_turns_a_revoked_client_away(
    key_folder: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    path = tmp_path / "revoked"
    path.write_text("")
    words = ["serve", SMOOTH, "--suite", "ckks", "--keys", key_folder]
    words += ["--state", tmp_path / "state", "--input-range", 0, 1, "--revoked", path]
    arguments = ["--suite", "ckks", "--keys", key_folder, "--input", tmp_path / "x.npy"]
    with listening(*words) as (_, address):
        assert privet("infer", address, *arguments)["weaknesses"] == []
        path.write_text(keys.fingerprint(key_folder / "client.pem"))
        error = privet("infer", address, *arguments, code=4)["error"]
        assert error["type"] == "NotAccepted"
        assert "this certificate was revoked" in error["message"]
