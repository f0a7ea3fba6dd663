"""What a server accepts, and in which ways a result promises less than the default.

The rules are in `crates/suites/src/policy.rs`, whose types these are: a `Mode` is every choice of a
client that a server may forbid, a policy lists what is accepted of each, and a weakness is a way in
which a mode promises less than the default mode.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from privet._native import Guard, Policy, mode_of, weaknesses
from privet.errors import Misuse

ONE_BIT, DEALER, KEPT_WEIGHTS = "one-bit", "dealer", "kept-weights"
REVEALED_VALUES, LIGHT_FLOODING = "revealed-values", "light-flooding"

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Weakness:
    """A way in which a mode promises less than the default, by its name in policies."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Mode:
    """Every choice that a server may forbid; None where the suite does not have it."""

    suite: str
    security: str = "semi-honest"
    truncation: str | None = None
    correlations: str | None = None
    linear: str | None = None
    field: str | None = None
    encrypts: str | None = None
    scenario: str | None = None
    flooding: str | None = None

    @classmethod
    def labelled(cls, label: str) -> Mode:
        """The mode of a suite with its options, as material is labelled. Raises `Misuse` if there
        is no such suite."""
        return cls(**json.loads(mode_of(label)))

    @cached_property
    def text(self) -> str:
        """The mode in JSON."""
        return json.dumps(asdict(self))

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """In which ways it promises less than the default."""
        return tuple(Weakness(*fields) for fields in weaknesses(self.text))


STREAM = Mode("stream")
"""Suite `stream`, with either cipher."""


def make_policy(
    file: Path | None = None,
    *,
    dealer: bool = False,
    truncation: str = "exact",
    encrypts: str = "masks",
    flooding: str = "statistical",
    revealed_values: bool = False,
    weaker: Iterable[Weakness] = (),
    answers_per_hour: int | None = None,
) -> Policy:
    """The policy in a TOML file, or the default: exact truncations, no dealer, no encrypted weights
    at clients, statistical noise on results, and no suite that reveals values. Each argument
    accepts one weaker choice besides, and `weaker` those that it names. Raises `Misuse` if the file
    is no policy, or a choice is unknown."""
    for option, value, possible in (
        ("truncation", truncation, ("exact", ONE_BIT)),
        ("choice of what is encrypted", encrypts, ("masks", "weights")),
        ("flooding", flooding, ("statistical", "light")),
    ):
        if value not in possible:
            raise Misuse(f"the {option} is {value!r}; possible are {', '.join(possible)}")
    text = "{}"
    if file is not None:
        try:
            text = json.dumps(tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise Misuse(f"the policy {file} cannot be read as TOML: {error}") from error
    flags = {
        ONE_BIT: truncation == ONE_BIT,
        DEALER: dealer,
        KEPT_WEIGHTS: encrypts == "weights",
        LIGHT_FLOODING: flooding == "light",
        REVEALED_VALUES: revealed_values,
    }
    accepted = [
        *(name for name, is_allowed in flags.items() if is_allowed),
        *(weakness.name for weakness in weaker),
    ]
    try:
        return Policy(text, accepted, answers_per_hour)
    except Misuse as error:
        raise error if file is None else Misuse(f"{file}: {error}") from error


def client_name(text: str) -> str:
    """A client as this server knows it: the SHA-256 of a certificate, which programs also write in
    capitals and with colons, in plain hexadecimal; a common name as it is."""
    plain = text.replace(":", "").lower()
    return plain if is_fingerprint(plain) else text


def is_fingerprint(text: str) -> bool:
    """Whether a text reads as the SHA-256 of a certificate in plain hexadecimal."""
    return _FINGERPRINT.fullmatch(text) is not None


def accepts_anywhere(policy: Policy, choice: str, value: str) -> bool:
    """Whether any client may ask for this value of a choice."""
    rules = json.loads(policy.text())
    accepted = (rule["accepts"] or {} for rule in (rules, *rules["clients"].values()))
    return any(value in accepts.get(choice, ()) for accepts in accepted)


def uncounted(policy: Policy) -> Policy:
    """The same policy without limits on answers, for a process whose clients are counted by who
    starts it."""
    rules = json.loads(policy.text())
    for rule in (rules, *rules["clients"].values()):
        rule["answers_per_hour"] = None
    return Policy(json.dumps(rules))


__all__ = [
    "STREAM",
    "Guard",
    "Mode",
    "Policy",
    "Weakness",
    "accepts_anywhere",
    "client_name",
    "is_fingerprint",
    "make_policy",
    "uncounted",
]
