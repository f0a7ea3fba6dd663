"""How a check ended: passed, failed, or not made at all."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Verdict:
    """`word` is `passed`, `failed` or `not checked`; `why` says what was seen."""

    word: str
    why: str
    title: str = ""

    @classmethod
    def passed(cls, why: str) -> Verdict:
        """All is well."""
        return cls("passed", why)

    @classmethod
    def failed(cls, why: str) -> Verdict:
        """Something is wrong."""
        return cls("failed", why)

    @classmethod
    def unchecked(cls, why: str) -> Verdict:
        """Nothing is known."""
        return cls("not checked", why)

    def named(self, title: str) -> Verdict:
        """The same of the check `title`."""
        return replace(self, title=title)

    def __str__(self) -> str:
        return f"{self.title}: {self.word}: {self.why}"


def exit_code(verdicts: list[Verdict], strict: bool) -> int:
    """1 if a check failed; with `strict` also if one was not made."""
    bad = {"failed", "not checked"} if strict else {"failed"}
    return int(any(verdict.word in bad for verdict in verdicts))
