"""What hides values from the model provider, as both organisations must name it alike."""

from __future__ import annotations

from dataclasses import dataclass

from privet.errors import Misuse
from privet.suites import CIPHERS, KEY_BITS, Stream


@dataclass(frozen=True)
class Cipher:
    """A cipher: `paillier`, under keys of `key_bits`, or `bfv`, whose keys never meet a tensor.

    Under Paillier a tensor's rows are ciphertexts, and a worker makes the noise that hides what it
    returns. Over BFV they are masked values: what hides them was prepared ahead, a material entry
    for each request (`privet.stream.blinding`).
    """

    name: str = CIPHERS[0]
    key_bits: int = KEY_BITS[0]

    def __post_init__(self) -> None:
        if self.name not in CIPHERS:
            raise Misuse(f"the cipher is {' or '.join(CIPHERS)}, not {self.name!r}")

    @property
    def masked(self) -> bool:
        """Whether tensors are masked values, and each request needs a material entry."""
        return self.name == "bfv"

    @property
    def config(self) -> str:
        """The suite's config with it in JSON, as the native half reads it."""
        return Stream(cipher=self.name, key_bits=None if self.masked else self.key_bits).text

    @property
    def code(self) -> tuple[int, int]:
        """As greetings name it: a number, and the bits of keys that go through the pipeline."""
        return CIPHERS.index(self.name) + 1, 0 if self.masked else self.key_bits

    def __str__(self) -> str:
        return "BFV" if self.masked else f"Paillier with keys of {self.key_bits} bits"


PAILLIER = Cipher()
BFV = Cipher("bfv")
