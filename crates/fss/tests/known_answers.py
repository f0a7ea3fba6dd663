"""Prints the known answers of `point.rs`: comparisons by definition, on a plain AES-128.

`python crates/fss/tests/known_answers.py`
"""

from __future__ import annotations

import sys

SEED = 5
BLOCK = (1 << 128) - 1


def _times(a: int, b: int) -> int:
    product = 0
    for bit in range(8):
        product ^= (a << bit) * (b >> bit & 1)
    for bit in range(14, 7, -1):
        product ^= (0x11B << (bit - 8)) * (product >> bit & 1)
    return product


def _substitute(byte: int) -> int:
    inverse = next((x for x in range(256) if _times(byte, x) == 1), 0)
    turned = [inverse << k | inverse >> (8 - k) for k in range(5)]
    return (turned[0] ^ turned[1] ^ turned[2] ^ turned[3] ^ turned[4] ^ 0x63) & 0xFF


SBOX = [_substitute(byte) for byte in range(256)]


def _round_keys(key: bytes) -> list[bytes]:
    words = [key[i : i + 4] for i in range(0, 16, 4)]
    constant = 1
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            word = bytes(SBOX[b] for b in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _times(constant, 2)
        words.append(bytes(a ^ b for a, b in zip(words[i - 4], word, strict=True)))
    return [b"".join(words[i : i + 4]) for i in range(0, 44, 4)]


def aes(round_keys: list[bytes], block: int) -> int:
    """AES-128 (FIPS 197); blocks are little-endian."""
    state = [a ^ b for a, b in zip(block.to_bytes(16, "little"), round_keys[0], strict=True)]
    for number in range(1, 11):
        state = [SBOX[state[(5 * i) % 16]] for i in range(16)]
        if number < 10:
            mixed = []
            for column in (state[i : i + 4] for i in range(0, 16, 4)):
                for row in range(4):
                    a, b, c, d = (column[(row + k) % 4] for k in range(4))
                    mixed.append(_times(a, 2) ^ _times(b, 3) ^ c ^ d)
            state = mixed
        state = [a ^ b for a, b in zip(state, round_keys[number], strict=True)]
    return int.from_bytes(bytes(state), "little")


# The first trees' key is the first block of the seed's stream.
PART = aes(_round_keys(SEED.to_bytes(16, "little")), 0)
TREE = _round_keys(PART.to_bytes(16, "little"))


def tree_hash(block: int) -> int:
    """`H(x) = P(s(x)) ^ s(x)` with `s(high, low) = (high ^ low, high)`."""
    high, low = block >> 64, block & (1 << 64) - 1
    mixed = (high ^ low) << 64 | high
    return aes(TREE, mixed) ^ mixed


def words(bits: int, roots: tuple[int, int], point: int, leaf: int) -> list[int]:
    """The correction words of one key."""
    nodes, difference = list(roots), roots[0] ^ roots[1]
    made = []
    for level in reversed(range(7, bits)):
        hashes = [tree_hash(node) for node in nodes]
        right = point >> level & 1
        word = hashes[0] ^ hashes[1] ^ (0 if right else difference)
        nodes = [
            hashed ^ (word if node & 1 else 0) ^ (node if right else 0)
            for hashed, node in zip(hashes, nodes, strict=True)
        ]
        made.append(word)
    return [*made, tree_hash(nodes[0]) ^ tree_hash(nodes[1]) ^ leaf]


if __name__ == "__main__":
    ROOTS = (0x0123456789ABCDEF0123456789ABCDEE, 0xFEDCBA98765432100F1E2D3C4B5A6979)
    for bits, point in ((10, 0x2A7), (3, 5)):
        leaf = BLOCK << (point & 127) & BLOCK
        made = [f"{word:#034x}" for word in words(bits, ROOTS, point, leaf)]
        sys.stdout.write(f"{bits} {point:#x} {made}\n")
