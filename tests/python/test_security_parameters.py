"""Estimates of lattice attacks have their known answers, and the documented keys are current."""

from __future__ import annotations

import re

import pytest
from scripts.lattice import (
    SECURE_BITS,
    Lwe,
    estimate,
    matzov,
    sieve_2018,
    unique_shortest,
)
from scripts.security_tables import MODELS, PAGE, bfv_rows, ckks_rows, plans, rendered

# The unique shortest vector's column in table 1 of the Homomorphic Encryption Standard (2018):
# ternary secrets, classical attacks, 128 bits.
STANDARD_2018 = {
    (1024, 27): 131.6,
    (2048, 54): 129.7,
    (4096, 109): 128.1,
    (8192, 218): 128.5,
    (16384, 438): 128.1,
    (32768, 881): 128.5,
}

# Table 5.2 of the Security Guidelines (2024): the largest modulus with 128 bits.
GUIDELINES_2024 = {2048: 53, 4096: 106, 8192: 214, 16384: 430, 32768: 868, 65536: 1747}

QUICK = [name for name in MODELS if name != "resnet20"]


@pytest.mark.parametrize("row", STANDARD_2018)
def test_the_standards_estimates_are_reproduced(row: tuple[int, int]) -> None:
    bits = unique_shortest(Lwe(row[0], row[1]), sieve_2018)
    assert abs(bits - STANDARD_2018[row]) < 0.5


@pytest.mark.parametrize("dimension", GUIDELINES_2024)
def test_the_guidelines_moduli_are_the_largest_with_128_bits(dimension: int) -> None:
    limit = GUIDELINES_2024[dimension]
    assert SECURE_BITS <= estimate(Lwe(dimension, limit)).bits < SECURE_BITS + 2
    assert estimate(Lwe(dimension, limit * 1.02)).bits < SECURE_BITS, "the control is not flagged"


def test_sparse_secrets_fall_to_hybrid_attacks() -> None:
    # Bossuat, Mouchet, Troncoso-Pastoriza and Hubaux (EUROCRYPT 2021) have 128 bits here.
    attack = estimate(Lwe(1 << 16, 1546, weight=192))
    assert abs(attack.bits - SECURE_BITS) < 2
    assert attack.attack == "dual hybrid"
    assert estimate(Lwe(1 << 16, 1546)).bits > attack.bits + 10


def test_the_limit_for_bootstrappings_sparse_secret_has_128_bits() -> None:
    assert estimate(Lwe(1 << 16, 121, weight=32)).bits >= SECURE_BITS
    assert unique_shortest(Lwe(1 << 15, 917), matzov) < SECURE_BITS, "a key that there once was"


@pytest.mark.go
def test_the_documented_keys_are_those_of_the_plans() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    for row in ckks_rows(plans(QUICK)):
        assert row in page, "run `python -m scripts.security_tables`"


def test_every_documented_key_has_128_bits() -> None:
    page = PAGE.read_text(encoding="utf-8")
    block = re.search(r"<!-- bfv -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert block is not None
    for row in bfv_rows(block.group(1)):
        assert row in page, "run `python -m scripts.security_tables`"
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.endswith(" |")]
    bits = [int(row[-1].strip("> ")) for row in rows if row[-1].strip("> ").isdigit()]
    assert len(bits) > 100
    assert min(bits) >= SECURE_BITS


@pytest.mark.slow
@pytest.mark.go
def test_the_whole_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rendered(page, plans()) == page, "run `python -m scripts.security_tables`"
