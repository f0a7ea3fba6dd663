"""Tokens one after the other, between processes over TLS: cache shared, numbers the executor's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.python.zoo.decoders import CONTEXT, compiled, token_by_token

import privet
from privet.compiler.executor import execute
from privet.errors import MaterialError, Misuse
from privet.runtime import Credentials
from privet.runtime.generate import Sampling, TokenStep, context_of, generate, steps
from privet.suites import Suite

PROMPT = [3, 1, 4]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> privet.Compiled:
    return compiled(token_by_token, tmp_path_factory.mktemp("decoder"))


def check(decoder: privet.Compiled, steps: list[TokenStep], prompt: list[int]) -> None:
    """Panics unless every step has the executor's integers, and the cost of any other step."""
    state, token = None, prompt[0]
    for step in steps:
        inputs = {"input_ids": [[token]], "position_ids": [[step.position]]}
        result = execute(decoder.program, decoder.weights, inputs, state=state)
        assert np.array_equal(step.integers[0], result.integers[0])
        assert step.is_prompt == (step.position + 1 < len(prompt))
        token, state = step.token, result.state
    costs = [
        (record.online.bytes_client, record.online.bytes_server, record.online.rounds)
        for record in steps
    ]
    assert len(set(costs)) == 1


@pytest.mark.parametrize("suite", [privet.Fss(), privet.Gmw()], ids=lambda suite: suite.name)
def test_steps_are_the_executors_at_a_cost_that_does_not_grow(
    decoder: privet.Compiled, suite: Suite
) -> None:
    steps = list(generate(decoder, PROMPT, CONTEXT - 2, suite=suite))
    assert [step.position for step in steps] == list(range(CONTEXT))
    assert [step.token for step in steps[:2]] == PROMPT[1:]
    check(decoder, steps, PROMPT)
    with pytest.raises(Misuse, match="in all"):
        list(generate(decoder, PROMPT, CONTEXT - 1, suite=suite))


def test_a_client_whose_state_is_gone_does_not_begin_anew_unasked(
    decoder: privet.Compiled, tmp_path: Path
) -> None:
    from privet import keys

    keys.make(tmp_path / "keys", ())
    decoder.save(tmp_path / "program")
    server_keys, client_keys = (
        Credentials.from_directory(tmp_path / "keys", name) for name in ("server", "client")
    )
    with privet.Server(server_keys, state=tmp_path / "s") as server:
        server.add_saved(tmp_path / "program")
        server.start()
        port = server.address[1]
        with (
            privet.Client("127.0.0.1", port, client_keys, state=tmp_path / "c") as client,
            privet.Client("127.0.0.1", port, client_keys, state=tmp_path / "d") as other,
        ):
            first = next(steps(client, PROMPT, 1))
            # The other session of the same client has a state of its own.
            second = list(steps(other, PROMPT, 1))
            assert np.array_equal(first.integers[0], second[0].integers[0])
            inputs = {"input_ids": [[1]], "position_ids": [[1]]}
            assert np.array_equal(client.infer(inputs).integers[0], second[1].integers[0])
            # An attacker on the link breaks it: the client connects anew, and has no state.
            client._session.reopen()
            ready = client.prepare()
            with pytest.raises(MaterialError, match="state of step 2 is gone"):
                client.infer(inputs)
            assert client.ready() == ready
            # The control: asked to begin anew, it does.
            assert np.array_equal(next(steps(client, PROMPT, 1)).integers[0], first.integers[0])


def test_the_context_is_that_of_positions_in_whatever_order_inputs_are(
    decoder: privet.Compiled,
) -> None:
    program = decoder.program
    other = replace(program, inputs=program.inputs[::-1])
    assert context_of(program) == context_of(other) == CONTEXT
    with pytest.raises(Misuse, match="decoder"):
        context_of(replace(program, state=()))


def test_the_client_chooses_by_scores() -> None:
    scores = np.array([0.0, 3.0, 2.0, -1.0])
    assert Sampling().choose(scores) == 1
    tokens = [Sampling(1.0, 2, seed).choose(scores) for seed in range(200)]
    assert set(tokens) == {1, 2}
    # Softmax gives the second 27 of 100.
    assert 30 < tokens.count(2) < 80
    assert {Sampling(5.0, None, seed).choose(scores) for seed in range(200)} == {0, 1, 2, 3}
    assert Sampling(1.0, seed=7).choose(scores) == Sampling(1.0, seed=7).choose(scores)
    for options in ({"temperature": -1.0}, {"top_k": 0}):
        with pytest.raises(Misuse):
            Sampling(**options)
