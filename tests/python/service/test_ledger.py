"""The records of material: each piece is given out once, and records follow the stores."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import MaterialError, PrivetError
from privet.service.executor import Piece
from privet.service.ledger import Ledger

NUMBERS = itertools.count()


def piece(made: float = 0.0, bytes: int = 10, **fields: str) -> Piece:
    """A piece of a new name."""
    usual = {"client": "anna", "program": "digits", "suite": "gmw"} | fields
    return Piece(f"{next(NUMBERS):032x}", bytes=bytes, made=made, **usual)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def test_a_piece_is_taken_once(ledger: Ledger) -> None:
    one = piece()
    ledger.add(one, "alpha", expires=100, now=1)
    assert [it.material for it in ledger.ready("anna", "digits", "gmw", 5)] == [one.material]
    record = ledger.take(one.material, "anna", "digits", "gmw", now=5)
    assert (record.machine, record.bytes) == ("alpha", 10)
    with pytest.raises(MaterialError, match="is consumed"):
        ledger.take(one.material, "anna", "digits", "gmw", now=6)
    assert ledger.ready("anna", "digits", "gmw", 6) == []
    ledger.give_back(one.material, now=7)
    ledger.take(one.material, "anna", "digits", "gmw", now=8)
    with pytest.raises(MaterialError, match="recorded already"):
        ledger.add(one, "alpha", expires=100, now=9)


@pytest.mark.parametrize(
    ("client", "program", "suite", "now", "why"),
    [
        ("berta", "digits", "gmw", 5, "no material"),
        ("anna", "letters", "gmw", 5, "another program"),
        ("anna", "digits", "fss", 5, "another program or suite"),
        ("anna", "digits", "gmw", 100, "is expired"),
    ],
)
def test_foreign_and_stale_pieces_are_refused(
    client: str, program: str, suite: str, now: float, why: str, ledger: Ledger
) -> None:
    one = piece()
    ledger.add(one, "alpha", expires=100, now=1)
    with pytest.raises(MaterialError, match=why):
        ledger.take(one.material, client, program, suite, now)
    ledger.take(one.material, "anna", "digits", "gmw", now=99)


def test_what_was_given_out_does_not_expire(ledger: Ledger) -> None:
    taken, kept, fresh = piece(), piece(), piece()
    for one, expires in ((taken, 100), (kept, 100), (fresh, 101)):
        ledger.add(one, "alpha", expires, now=1)
    ledger.take(taken.material, "anna", "digits", "gmw", now=50)
    assert [it.material for it in ledger.expire(100)] == [kept.material]
    assert ledger.expire(100) == []
    assert ledger.counts() == {"consumed": 1, "expired": 1, "ready": 1}
    ledger.give_back(kept.material, now=100)
    assert ledger.counts()["expired"] == 1


def test_the_oldest_go_first_until_the_rest_fits(ledger: Ledger) -> None:
    pieces = [piece(made=made, bytes=10) for made in (3, 1, 2)]
    elsewhere = piece(made=0, bytes=1000)
    for one in pieces:
        ledger.add(one, "alpha", 100, now=4)
    ledger.add(elsewhere, "beta", 100, now=4)
    assert ledger.evict("alpha", 30, now=5) == []
    evicted = [it.material for it in ledger.evict("alpha", 15, now=5)]
    assert evicted == [pieces[1].material, pieces[2].material]
    assert (ledger.bytes("alpha"), ledger.bytes("beta")) == (10, 1000)


def test_records_follow_the_store(ledger: Ledger) -> None:
    kept, gone, used, moved, unknown = piece(), piece(), piece(), piece(), piece(made=7)
    for one in (kept, gone, used):
        ledger.add(one, "alpha", 100, now=1)
    ledger.add(moved, "beta", 100, now=1)
    ledger.take(used.material, "anna", "digits", "gmw", now=2)
    # The store still has the piece that was taken: the service died before its job began.
    stale = ledger.reconcile("alpha", [kept, used, moved, unknown], lifetime=50, now=10)
    assert set(stale) == {used.material, moved.material}
    states = {it: getattr(ledger.find(it.material), "state", None) for it in (kept, gone, used)}
    assert list(states.values()) == ["ready", "lost", "consumed"]
    found = ledger.find(unknown.material)
    assert found is not None
    assert (found.state, found.machine, found.expires) == ("ready", "alpha", 57)
    other = ledger.find(moved.material)
    assert other is not None
    assert (other.state, other.machine) == ("ready", "beta")


def test_a_lost_machine_takes_its_pieces_with_it(ledger: Ledger) -> None:
    one, other = piece(), piece()
    ledger.add(one, "alpha", 100, now=1)
    ledger.add(other, "beta", 100, now=1)
    assert ledger.lose("alpha", now=2) == 1
    with pytest.raises(MaterialError, match="is lost"):
        ledger.take(one.material, "anna", "digits", "gmw", now=3)
    # When it comes back, the client has given its half up: the piece never serves again.
    assert ledger.reconcile("alpha", [one], lifetime=50, now=4) == [one.material]
    assert ledger.forget(before=3) == 1
    assert ledger.find(one.material) is None


def test_records_survive_and_have_one_writer(tmp_path: Path) -> None:
    path, one = tmp_path / "ledger.sqlite", piece()
    ledger = Ledger(path)
    ledger.add(one, "alpha", 100, now=1)
    with pytest.raises(PrivetError, match="another service"):
        Ledger(path)
    ledger.close()
    ledger = Ledger(path)
    assert ledger.counts() == {"ready": 1}
    ledger.close()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(PrivetError, match="no ledger"):
        Ledger(path)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "take", "back", "expire", "evict", "lose", "reconcile"]),
        st.integers(0, 5),
        st.integers(1, 30),
    ),
    max_size=40,
)


@given(STEPS)
def test_no_order_of_events_gives_a_piece_out_twice(steps: list[tuple[str, int, int]]) -> None:
    """Against a model: what was taken and not given back is never taken again."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, now = Ledger(Path(folder) / "l"), 0.0
        pieces: list[Piece] = []
        taken, ended = set[str](), set[str]()
        for action, which, amount in steps:
            now += 1
            one = pieces[which % len(pieces)] if pieces else None
            match action:
                case "add":
                    pieces.append(piece(made=now, bytes=amount))
                    ledger.add(pieces[-1], "alpha", now + amount, now)
                case "take" if one is not None:
                    try:
                        ledger.take(one.material, "anna", "digits", "gmw", now)
                    except MaterialError:
                        continue
                    assert one.material not in taken | ended
                    taken.add(one.material)
                case "back" if one is not None:
                    ledger.give_back(one.material, now)
                    taken.discard(one.material)
                case "expire":
                    ended |= {it.material for it in ledger.expire(now)}
                case "evict":
                    ended |= {it.material for it in ledger.evict("alpha", amount, now)}
                    assert ledger.bytes("alpha") <= amount
                case "lose":
                    ledger.lose("alpha", now)
                    ended |= {it.material for it in pieces} - taken
                case "reconcile":
                    stale = ledger.reconcile("alpha", pieces, 30, now)
                    assert set(stale) == {it.material for it in pieces} & (taken | ended)
        ledger.close()
