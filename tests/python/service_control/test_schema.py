"""Documents from outside: whatever they say, they are read or refused in words."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import Misuse
from privet.service.asks import NoticeBody, RequestBody, parameters
from privet.service.repository import ModelConfig
from privet.service.schema import (
    Integer,
    Number,
    Several,
    Sizes,
    Text,
    option,
    read,
    schema,
    setting,
    table,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@dataclass(frozen=True)
class Example:
    """All kinds once."""

    word: str = option(Text(("a", "b")), "a word", "a")
    text: str | None = option(Text(longest=5), "a text")
    count: int = option(Integer(1, 3), "a count", 1)
    share: float = option(Number(0, 1), "a share", 0.5)
    size: int = option(Sizes((1, 4)), "a size", 1)
    sizes: tuple[int, ...] = option(Several(Sizes((1, 4))), "sizes", (1,))
    words: tuple[str, ...] = option(Several(Text(("a", "b"))), "words", ("a",))


def documents(kind: type[Any]) -> st.SearchStrategy[Any]:
    """JSON that has some right names."""
    names = list(schema(kind)["properties"])
    values = JSON | st.sampled_from(["gmw", "fss", "linear", 1, 0.5, "a", ["a"], ["b", "a"]])
    return JSON | st.dictionaries(st.sampled_from(names), values, max_size=4)


@pytest.mark.parametrize("kind", [Example, NoticeBody, RequestBody, ModelConfig])
def test_whatever_is_read_fits_the_schema_and_the_rest_is_refused(kind: type[Any]) -> None:
    document_schema = schema(kind)

    @given(documents(kind))
    def check(document: Any) -> None:
        problem = None
        try:
            read(kind, document, "here")
        except Misuse as error:
            problem = str(error)
        if problem is not None:
            assert problem.startswith("here: ")
            return
        given_only = {name: value for name, value in document.items() if value is not None}
        jsonschema.validate(given_only, document_schema)

    check()


@given(st.dictionaries(st.sampled_from(["wait", "seen"]), st.text()))
def test_any_parameters_are_read_or_refused(query: dict[str, str]) -> None:
    from privet.service.asks import WaitForJobs

    with contextlib.suppress(Misuse):
        read(WaitForJobs, parameters(query), "the address")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("size=4", 4),
        ("sizes=4", [4]),
        ("sizes=1,4", [1, 4]),
        ("sizes=[4]", [4]),
        ("words=a,b", ["a", "b"]),
        ("text=12", 12),
    ],
)
def test_an_option_on_a_command_line(text: str, value: object) -> None:
    assert setting(Example, text) == (text.partition("=")[0], value)


def test_null_means_left_out() -> None:
    assert read(Example, {"count": None, "word": "b"}, "") == Example(word="b")


def test_a_table_of_options() -> None:
    lines = table(Example).splitlines()
    assert '| `words` | `["a"]` | words |' in lines
    assert "| `text` |  | a text |" in lines
