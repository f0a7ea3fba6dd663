"""States that are copied or set back: one spent marker is enough; without any, the ledger tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kills.stage import WAYS, Stage, infer, named, staged

from privet.compiler.compile import Compiled
from privet.suites import Fss, Gmw, MaterialSuite

LIKE_OTHERS = Gmw(linear="online"), Fss(security="malicious")
"""Ways whose entries lie in the same store as those of others: tested with the slow tests."""


@pytest.fixture(
    params=[
        pytest.param(way, marks=pytest.mark.slow if way in LIKE_OTHERS else ()) for way in WAYS
    ],
    ids=named,
)
def stage(
    request: pytest.FixtureRequest, tmp_path: Path, key_folder: Path, compiled: Compiled
) -> Iterator[Stage]:
    """A stage with nobody on it yet."""
    way: MaterialSuite = request.param
    with staged(tmp_path, key_folder, compiled, way) as stage:
        yield stage


def use_and_set_back(stage: Stage, *states: str) -> str:
    """How a second use of an entry ends, after these states were set back to before the first."""
    server, client = stage.start_server(), stage.start_client()
    material = client.ask({"do": "prepare"})["material"]
    for state in states:
        stage.copy(state, f"{state}-before")
    assert client.ask(infer(material))["event"] == "inferred"
    for party in (client, server):
        party.kill()
    for state in states:
        stage.copy(f"{state}-before", state)
    stage.start_server()
    answer = stage.start_client().ask(infer(material))
    return str(answer["event"])


@pytest.mark.parametrize("state", ["client", "server"])
def test_one_side_that_is_set_back_is_refused(stage: Stage, state: str) -> None:
    assert use_and_set_back(stage, state) == "refused"
    assert stage.audit().reused() == []


def test_the_ledger_sees_that_both_sides_were_set_back(stage: Stage) -> None:
    """The limit that the documentation states, and the control of everything here."""
    assert use_and_set_back(stage, "client", "server") == "inferred"
    wrong = stage.audit().reused()
    # With linear layers online a phase opens with a ciphertext, and all shares after it are fresh.
    alike = 0 if stage.way.refills else 1
    for party in ("client", "server"):
        assert sum(line.startswith(f"the {party} used") for line in wrong) == 1, wrong
        same = sum(line.startswith(f"the {party} said the same") for line in wrong)
        # What the server says first may be a few bits of a comparison, too few for the ledger.
        assert same == alike or (party == "server" and same == 0), wrong


def test_of_two_copies_of_a_client_one_is_served(stage: Stage) -> None:
    stage.start_server()
    first = stage.start_client()
    entries = [first.ask({"do": "prepare"})["material"] for _ in range(3)]
    first.kill()
    stage.copy("client", "copy")
    for material in entries:
        twins = [stage.start_client(state) for state in ("client", "copy")]
        for twin in twins:
            assert material in twin.ask({"do": "list"})["materials"]
        for twin in twins:
            twin.tell(infer(material))
        assert sorted(twin.answer()["event"] for twin in twins) == ["inferred", "refused"]
        for twin in twins:
            twin.kill()
    assert {use.material for use in stage.audit().uses} == set(entries)
    assert len(stage.audit().uses) == 2 * len(entries)
    assert stage.audit().reused() == []
