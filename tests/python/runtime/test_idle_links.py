"""Which idle connections stay when there are too many, and which are broken."""

from __future__ import annotations

from privet.runtime.idle import IdleLinks


class Link:
    """A connection, broken or not."""

    def __init__(self) -> None:
        self.is_broken = False

    def stop(self) -> None:
        self.is_broken = True


def test_whoever_has_been_idle_longest_goes_first_and_of_a_peer_that_has_its_share_its_own() -> (
    None
):
    idle: IdleLinks[str] = IdleLinks(4)
    links = {name: Link() for name in ("a1", "b1", "a2", "a3", "c1", "d1")}

    def add(name: str) -> list[str]:
        before = {key for key, link in links.items() if link.is_broken}
        assert idle.add(name, name[0], links[name])
        return sorted({key for key, link in links.items() if link.is_broken} - before)

    assert [add(name) for name in ("a1", "b1", "a2")] == [[], [], []]
    assert add("a3") == ["a1"]
    assert add("c1") == []
    assert add("d1") == ["b1"]
    assert [idle.take(name) for name in ("a1", "b1", "a2", "a2")] == [False, False, True, False]
    assert not links["a2"].is_broken


def test_what_is_not_idle_is_not_broken() -> None:
    idle: IdleLinks[str] = IdleLinks(2)
    links = [Link() for _ in range(2)]
    for name, link in zip("ab", links, strict=True):
        idle.add(name, name, link)
    assert idle.take("a")
    idle.end(lambda name: name == "c")
    assert [link.is_broken for link in links] == [False, False]
    idle.end()
    assert [link.is_broken for link in links] == [False, True]
    assert not idle.take("b")


def test_nothing_is_kept_that_cannot_be_broken_or_where_there_is_no_room() -> None:
    assert not IdleLinks[str](2).add("a", "a", None)
    assert not IdleLinks[str](0).add("a", "a", Link())
    one: IdleLinks[str] = IdleLinks(1)
    first, second = Link(), Link()
    assert one.add("a", "a", first)
    assert one.add("b", "a", second)
    assert (first.is_broken, second.is_broken) == (True, False)
