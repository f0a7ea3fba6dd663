"""Prints the constants of known.rs: a toy key, ciphertexts and a dot product by plain integers.

python known.py
"""

import random
import sys


def is_prime(n: int) -> bool:
    """Miller and Rabin's test to the first twelve primes."""
    small = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if any(n % prime == 0 for prime in small):
        return n in small
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    for base in small:
        x = pow(base, (n - 1) >> twos, n)
        if x == 1:
            continue
        for _ in range(twos):
            if x == n - 1:
                break
            x = x * x % n
        else:
            return False
    return True


def safe_prime(bits: int) -> int:
    """A safe prime with its highest two bits set."""
    while True:
        half = random.getrandbits(bits - 1) | 3 << (bits - 3) | 1
        if is_prime(half) and is_prime(2 * half + 1):
            return 2 * half + 1


random.seed(2024)
p, q = safe_prime(256), safe_prime(256)
n = p * q
messages = [0, 1, -1, 1 << 62, -(1 << 63), 123456789]
weights = [5, -7, 524287, 11]
ciphertexts = [(1 + m * n) * pow(random.randrange(1, n), n, n * n) % (n * n) for m in messages]
dot = 1
for ciphertext, weight in zip(ciphertexts[:3] + ciphertexts[5:], weights, strict=True):
    dot = dot * pow(ciphertext, weight, n * n) % (n * n)

out = [f'const PRIMES: [&str; 2] = ["{p:064x}", "{q:064x}"];']
for name, values in ("CIPHERTEXTS", ciphertexts), ("DOT", [dot]):
    out.append(f"const {name}: [&str; {len(values)}] = [")
    out.extend(f'    "{value:0256x}",' for value in values)
    out.append("];")
sys.stdout.write("\n".join(out) + "\n")
