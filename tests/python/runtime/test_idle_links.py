"""Which idle connections stay when there are too many, and which are broken."""

from __future__ import annotations

import time

from privet.runtime.idle import LIFE_SECONDS, IdleLinks


class Link:
    """A connection, broken or not."""

    def __init__(self) -> None:
        self.is_broken = False

    def stop(self) -> None:
        self.is_broken = True


def test_whoever_has_been_idle_longest_goes_first_and_of_a_peer_that_has_its_share_its_own() -> (
    None
):
    idle: IdleLinks = IdleLinks(4)
    links = {name: Link() for name in ("a1", "b1", "a2", "a3", "c1", "d1")}

    def add(name: str) -> list[str]:
        before = {key for key, link in links.items() if link.is_broken}
        assert idle.add(name, name[0], links[name], time.monotonic())
        return sorted({key for key, link in links.items() if link.is_broken} - before)

    assert [add(name) for name in ("a1", "b1", "a2")] == [[], [], []]
    assert add("a3") == ["a1"]
    assert add("c1") == []
    assert add("d1") == ["b1"]
    assert [idle.take(name) for name in ("a1", "b1", "a2", "a2")] == [False, False, True, False]
    assert not links["a2"].is_broken


def test_what_is_not_idle_is_not_broken() -> None:
    idle: IdleLinks = IdleLinks(2)
    links = [Link() for _ in range(2)]
    for name, link in zip("ab", links, strict=True):
        idle.add(name, name, link, time.monotonic())
    assert idle.take("a")
    idle.end(lambda name: name == "c")
    assert [link.is_broken for link in links] == [False, False]
    idle.end()
    assert [link.is_broken for link in links] == [False, True]
    assert not idle.take("b")


def test_nothing_is_kept_that_cannot_be_broken_or_where_there_is_no_room() -> None:
    assert not IdleLinks(2).add("a", "a", None, time.monotonic())
    assert not IdleLinks(0).add("a", "a", Link(), time.monotonic())
    one: IdleLinks = IdleLinks(1)
    first, second = Link(), Link()
    assert one.add("a", "a", first, time.monotonic())
    assert one.add("b", "a", second, time.monotonic())
    assert (first.is_broken, second.is_broken) == (True, False)


def test_a_connection_is_given_up_for_a_peer_that_comes() -> None:
    idle = IdleLinks(4)
    links = {name: Link() for name in ("a1", "b1", "b2")}
    for name, link in links.items():
        idle.add(name, name[0], link, time.monotonic())
    assert [idle.give_up("c"), idle.give_up("b"), idle.give_up()] == [False, True, True]
    assert [link.is_broken for link in links.values()] == [True, True, False]


def test_nothing_is_kept_that_is_old_or_after_the_end() -> None:
    idle, link = IdleLinks(4), Link()
    assert not idle.add("old", "a", Link(), time.monotonic() - LIFE_SECONDS - 1)
    assert idle.add("new", "a", link, time.monotonic())
    idle.close()
    assert link.is_broken
    assert not idle.add("late", "a", Link(), time.monotonic())
