"""Suite `stream`: encryption for linear layers, permuted values in the clear for the rest
(PP-Stream)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from privet._native import Connection, Guard, Link, StreamPlan
from privet.errors import Misuse
from privet.suites.base import Job, LocalJob, LocalResult, Planned, Trust
from privet.suites.costing import Costed, Costing, LinkUse, Trial
from privet.suites.costs import Load
from privet.suites.options import choice, switch
from privet.suites.policy import Mode
from privet.suites.precision import Precision
from privet.suites.security import security
from privet.suites.single import Answer, ProgramHost, SingleJobSuite
from privet.suites.stream import costing
from privet.suites.text import size

if TYPE_CHECKING:
    from privet.compiler.program.public import Program

STREAM_TRUST = (
    "values are revealed up to order: the client sees the numbers of every tensor before an "
    "activation, in a random order, and may learn of the weights by them"
)
"""What a result of this suite rests on beyond the two parties' following the protocol."""

KEY_BITS = (2048, 3072)
"""Sizes of Paillier keys."""

CIPHERS = ("paillier", "bfv")
"""What hides values from the model provider; the first as in PP-Stream, the second recommended."""


BFV, PAILLIER = "bfv", "paillier"

PHASES, SIDES = ("offline", "online"), ("client", "server")

FIXED_BYTES, COPIES = 256 << 20, 4
"""Memory of a session at the server until it was measured: tables, and how often what passes is
held at once."""


@dataclass(frozen=True, kw_only=True)
class Stream(Costed, SingleJobSuite):
    """The choices of suite `stream`.

    `cipher` hides values from the server: `bfv` pays ahead and is much faster, `paillier`, under
    keys of `key_bits`, is that of PP-Stream. With `packed` the samples of a batch share Paillier's
    plaintexts; the client then sees which of their values belong together.
    """

    cipher: str = choice(
        BFV,
        (BFV, PAILLIER),
        "What hides values from the server: `bfv`, or `paillier` as in PP-Stream, which is much "
        "slower.",
        "the cipher",
    )
    key_bits: int | None = choice(
        None, KEY_BITS, "Bits of the client's Paillier key; by default 2048.", "the key's size"
    )
    packed: bool = switch(
        "With Paillier, in `privet run`: samples of a batch share plaintexts, and their order.",
        "packed",
    )

    name: ClassVar[str] = "stream"
    about: ClassVar[str] = (
        "by encryption for linear layers alone: weaker, since values are revealed up to order"
    )
    precision: ClassVar[Precision] = Precision(smooth="function")
    reach: ClassVar[str] = "whole"
    trials: ClassVar[tuple[Trial, ...]] = (
        Trial(("breast", "mnist-1"), ("stream", "stream-3072")),
        Trial(("m1",), ("stream",)),
        Trial(("breast", "mnist-1"), ("stream-packed",), (1, 8, 32)),
        Trial(("breast", "mnist-1", "mnist-2", "m1"), ("stream-bfv",), (1, 8)),
    )

    def check(self) -> None:
        if self.cipher != PAILLIER:
            for option, value in (("packed", self.packed), ("key_bits", self.key_bits)):
                if value:
                    raise Misuse(f"{option} is for cipher paillier: ask for that cipher as well")

    @classmethod
    def settings(cls) -> Sequence[Stream]:
        """As `Costed`: the paper's own, which names the suite, and what differs from it."""
        return [
            cls(cipher=PAILLIER),
            cls(cipher=PAILLIER, key_bits=3072),
            cls(cipher=PAILLIER, packed=True),
            cls(),
        ]

    @property
    def kind(self) -> str:
        words = [self.name]
        if self.cipher == BFV:
            words.append(BFV)
        if self.key_bits not in (None, KEY_BITS[0]):
            words.append(str(self.key_bits))
        if self.packed:
            words.append("packed")
        return "-".join(words)

    def link_use(self, phase: str) -> LinkUse:
        masks = self.cipher == BFV and phase == "offline"
        return costing.MASKED if masks else costing.STREAMED

    def cost(self, program: Program, samples: int = 1) -> Costing:
        self.check_supports(program)
        figures = self.figures(program, samples if self.packed else 1)
        return costing.cost(program, figures, masks=self.cipher == BFV)

    @property
    def bits(self) -> int:
        """Bits of the client's key, if it has one."""
        return self.key_bits or KEY_BITS[0]

    @property
    def text(self) -> str:
        """The choices in JSON, as the native half reads them."""
        return json.dumps(self.to_json())

    @property
    def trust(self) -> Trust:
        return Trust(
            "client and server must not collude",
            "semi-honest client and server",
            "the client learns its prediction, and the numbers of every tensor before an "
            "activation in a random order; the server learns nothing of input or prediction",
            f"{STREAM_TRUST}; packed samples share it" if self.packed else STREAM_TRUST,
        )

    @property
    def mode(self) -> Mode:
        return Mode(self.name)

    @property
    def label(self) -> str:
        if self.cipher != PAILLIER:
            return f"{self.name} {self.cipher}"
        return f"{self.name} {self.cipher} {self.bits}" + (" packed" if self.packed else "")

    @classmethod
    def labelled(cls) -> Sequence[Stream]:
        keys = [(bits, packed) for bits in KEY_BITS for packed in (False, True)]
        paillier = [cls(cipher=PAILLIER, key_bits=bits, packed=packed) for bits, packed in keys]
        return [cls(), *paillier]

    @classmethod
    def served(cls) -> Sequence[Stream]:
        """As `Suite`: with either cipher, and nothing packed, as a job's samples are a program's
        batch."""
        return [suite for suite in cls.labelled() if not suite.packed]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "truncation": "exact",
            "cipher": self.cipher,
            "key_bits": self.bits if self.cipher == PAILLIER else None,
        }

    @property
    def jobs(self) -> tuple[Job, ...]:
        product = "masks" if self.cipher == BFV else "noise"
        pair = ("client", "server")
        return Job("prepare", product, pair, ahead=False), Job("infer", "prediction", pair)

    def runs(self, program: Program) -> bool:
        try:
            return super().runs(program) and bool(self.figures(program))
        except Misuse:
            return False

    def compiled_batch(self, batch: int) -> int:
        return 1 if self.packed else batch

    def figures(self, program: Program, samples: int = 1) -> dict[str, Any]:
        """What one inference takes on `samples` that share plaintexts.

        # Errors
        `Misuse` if a layer does not run in this suite, or a plaintext has no room for the samples.
        """
        figures: dict[str, Any] = json.loads(self._planned(program, samples).forecast())
        return figures

    def _planned(self, program: Program, samples: int = 1) -> StreamPlan:
        return StreamPlan(program.to_public_bytes(), self.text, samples)

    def plan(self, program: Program, link: Link | None = None) -> Planned:
        figures = self.figures(program)
        budget = partial(security, self._planned(program))
        account = tuple(exchanges(figures, program.program_hash))
        document = {"trust": self.trust.caution, "plan": figures}
        return Planned(self, document, budget, account)

    def load(self, public: bytes) -> Load:
        from privet.compiler.program.public import Program

        plan = self.figures(Program.from_public_bytes(public))
        passing = sum(plan[f"{phase}_bytes_{side}"] for phase in PHASES for side in SIDES)
        return Load(passing, FIXED_BYTES + COPIES * passing)

    @classmethod
    def host(cls, public: bytes, private: bytes, guard: Guard) -> ProgramHost:
        from privet.suites.stream.single import StreamHost

        return StreamHost(public, private, guard)

    def infer(self, connection: Connection, public: bytes, inputs: Sequence[bytes]) -> Answer:
        from privet.suites.stream.single import infer

        return infer(connection, public, self.text, inputs)

    def run_local(self, job: LocalJob) -> LocalResult:
        from privet.suites.stream.local import run_local

        return run_local(self, job)


def exchanges(plan: Mapping[str, Any], program_hash: str) -> tuple[str, ...]:
    """What an inference takes."""
    bits = plan["key_bits"]
    cipher = "BFV" if bits is None else f"Paillier with keys of {bits} bits"
    traffic = size(plan["online_bytes_client"]), size(plan["online_bytes_server"])
    hides, opens = ("masks", "opens") if bits is None else ("encrypts", "decrypts")
    facts = (
        f"Suite stream, {cipher}, {plan['exchanges']} exchanges of permuted values; "
        f"program {program_hash[:16]}.",
        f"The client {hides} {plan['encryptions']:,} values ({traffic[0]}) and {opens} "
        f"{plan['decryptions']:,} ({traffic[1]}).",
    )
    if bits is not None:
        return facts
    ahead = size(plan["offline_bytes_client"]), size(plan["offline_bytes_server"])
    return (*facts, f"Ahead of time the client sends {ahead[0]} and the server {ahead[1]}.")
