"""How many bits of work the known lattice attacks on an LWE secret take, by formulas alone.

Attacks, as in the Lattice Estimator (Albrecht, Player and Scott, Journal of Mathematical
Cryptology 2015, and its successors): the unique shortest vector of Bai and Galbraith's embedding
(Alkim, Ducas, Poeppelmann and Schwabe, USENIX Security 2016; Albrecht, Goepfert, Virdia and
Wunderer, ASIACRYPT 2017), the dual attack with a guess of some coordinates (Albrecht, EUROCRYPT
2017), and for sparse secrets hybrids with a meet in the middle (Howgrave-Graham, CRYPTO 2007;
Cheon, Hhan, Hong and Son, IEEE Access 2019). Bases are taken to obey the geometric series
assumption. Where a step is disputed it is decided for the attacker: meeting in the middle costs no
more than the root of what is guessed and never misses. Structure of rings is not used, as no attack
is known that gains by it here.

Not counted: memory, quantum computers, and Meet-LWE (May, CRYPTO 2021), which wants as much memory
as time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

DEVIATION = 3.19
"""That of errors, as in both tables."""

SECURE_BITS = 128.0


@dataclass(frozen=True)
class Lwe:
    """An instance: dimension, bits of the modulus, and the secret's Hamming weight (None: uniform
    ternary). Any number of samples."""

    dimension: int
    log_q: float
    weight: int | None = None
    deviation: float = DEVIATION

    @property
    def secret_deviation(self) -> float:
        share = 2 / 3 if self.weight is None else self.weight / self.dimension
        return math.sqrt(share)


Model = Callable[[float, float], float]
"""Bits of work of reducing a basis of some dimension with some block size."""


def sieve_2018(block: float, dimension: float) -> float:
    """The Homomorphic Encryption Standard's model: a sieve (Becker, Ducas, Gama and Laarhoven, SODA
    2016) in each of 8 rounds over the basis."""
    return 0.292 * block + 16.4 + math.log2(8 * dimension)


def matzov(block: float, dimension: float) -> float:
    """Gates by MATZOV (2022), the model of the Security Guidelines: list decoding as counted by
    Albrecht, Gheorghiu, Postlethwaite and Schanck (ASIACRYPT 2020) with MATZOV's corrections,
    dimensions for free (Ducas, EUROCRYPT 2018), and 5.46 times as much for each of progressive
    sieving and progressive block reduction (Kyber's submission to NIST, round 3)."""
    slope, offset, progressive = 0.29613500308205365, 20.387885985467914, 5.46
    free = max(block * math.log(4 / 3) / math.log(block / (2 * math.pi * math.e)), 0)
    rounds = progressive**2 * max(dimension - block, 1)
    return slope * (block - free) + offset + math.log2(rounds)


def log_delta(block: float) -> float:
    """The logarithm of the root Hermite factor (Chen, 2013)."""
    return math.log2((math.pi * block) ** (1 / block) * block / (2 * math.pi * math.e)) / (
        2 * (block - 1)
    )


SMALLEST_BLOCK = 60
"""Below it the formula for the root Hermite factor does not hold."""


def _smallest(succeeds: Callable[[int], bool], largest: int) -> int | None:
    """The smallest block size with which an attack succeeds, which then all larger ones do."""
    sizes = range(SMALLEST_BLOCK, largest + 1)
    index = bisect_left(sizes, True, key=succeeds)
    return sizes[index] if index < len(sizes) else None


def _best_dimension(unknown: float, log_q: float, log_scale: float, delta: float) -> float:
    """The dimension with the shortest vectors, of which `unknown` belong to the secret."""
    return max(math.sqrt(unknown * (log_q - log_scale) / delta), unknown + 1)


def unique_shortest(lwe: Lwe, model: Model, unknown: int | None = None) -> float:
    """Embeds the secret as an unusually short vector, of which the block reduction then finds the
    projection. `unknown`: without the coordinates that are guessed to be zero."""
    coordinates = lwe.dimension if unknown is None else unknown
    scale = math.log2(lwe.deviation / lwe.secret_deviation)

    def shape(block: int) -> tuple[float, float]:
        delta = log_delta(block)
        return delta, _best_dimension(coordinates, lwe.log_q, scale, delta)

    def succeeds(block: int) -> bool:
        delta, d = shape(block)
        volume = ((d - coordinates - 1) * lwe.log_q + coordinates * scale) / d
        return (
            math.log2(block) / 2 + math.log2(lwe.deviation) <= (2 * block - d - 1) * delta + volume
        )

    block = _smallest(succeeds, 2 * lwe.dimension)
    return math.inf if block is None else model(block, shape(block)[1])


def log_binomial(n: float, k: float) -> float:
    """The logarithm of a binomial coefficient."""
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2)


def _guesses(lwe: Lwe, guessed: int) -> Iterator[tuple[float, float]]:
    """For a growing weight of what is guessed: how many candidates there are, and how likely one
    of them is right, in bits."""
    if lwe.weight is None:
        yield guessed * math.log2(3), 0.0
        return
    candidates, likely = 0.0, 0.0
    for weight in range(min(lwe.weight, guessed) + 1):
        if lwe.weight - weight > lwe.dimension - guessed:
            continue
        candidates += 2 ** (log_binomial(guessed, weight) + weight)
        likely += 2 ** (
            log_binomial(guessed, weight)
            + log_binomial(lwe.dimension - guessed, lwe.weight - weight)
            - log_binomial(lwe.dimension, lwe.weight)
        )
        if candidates > 2.0**600:
            return
        yield math.log2(candidates), min(math.log2(likely), 0.0) if likely > 0 else -math.inf


def _repeated(cost: float, likely: float) -> float:
    """The cost of an attack that is repeated until it succeeds."""
    return cost - likely


def _add(*costs: float) -> float:
    top = max(costs)
    return top + math.log2(sum(2 ** (cost - top) for cost in costs))


def dual_hybrid(lwe: Lwe, model: Model, guessed: int, block: int) -> float:
    """Short vectors of the dual lattice tell the right guess of some coordinates from wrong ones.

    The candidates are run through in the root of their number for sparse secrets.
    """
    coordinates = lwe.dimension - guessed
    scale = math.log2(lwe.deviation / lwe.secret_deviation)
    delta = log_delta(block)
    d = _best_dimension(coordinates, lwe.log_q, scale, delta)
    length = d * delta + coordinates * (lwe.log_q - scale) / d
    # The advantage of one vector is exp(-2 (pi sigma length / q)^2).
    if length > lwe.log_q:
        return math.inf
    exponent = 2 * (math.pi * lwe.deviation * 2 ** (length - lwe.log_q)) ** 2
    best = math.inf
    for candidates, likely in _guesses(lwe, guessed):
        vectors = max(2 * exponent * math.log2(math.e) + math.log2(1 + candidates), 0.0)
        reduce = model(block, d) + max(vectors - 0.2075 * block, 0.0)
        root = candidates if lwe.weight is None else candidates / 2
        best = min(best, _repeated(_add(reduce, vectors + root), likely))
    return best


def primal_hybrid(lwe: Lwe, model: Model, guessed: int, block: int) -> float:
    """Reduces a basis once, and finds what is left of the secret for each guess by rounding to the
    nearest plane, meeting in the middle."""
    coordinates = lwe.dimension - guessed
    scale = math.log2(lwe.deviation / lwe.secret_deviation)
    delta = log_delta(block)
    d = _best_dimension(coordinates, lwe.log_q, scale, delta)
    volume = ((d - coordinates) * lwe.log_q + coordinates * scale) / d
    lengths = (d - 1 - 2 * np.arange(int(d))) * delta + volume
    ratio = 2 ** np.minimum(lengths - math.log2(2 * math.sqrt(2) * lwe.deviation), 2.5)
    rounded = float(np.log2(_error_function(ratio)).sum())
    if not math.isfinite(rounded):
        return math.inf
    plane = 2 * math.log2(d)
    best = math.inf
    for candidates, likely in _guesses(lwe, guessed):
        root = candidates if lwe.weight is None else candidates / 2
        best = min(best, _repeated(_add(model(block, d), root + plane), likely + rounded))
    return best


def _error_function(x: np.ndarray) -> np.ndarray:
    """erf of positive numbers (Abramowitz and Stegun 7.1.26, within 2e-7)."""
    t = 1 / (1 + 0.3275911 * x)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return np.asarray(np.maximum(1 - series * np.exp(-x * x), 1e-300))


@dataclass(frozen=True)
class Estimate:
    """Bits of work of the best attack, and its name."""

    bits: float
    attack: str


@cache
def estimate(lwe: Lwe, model: Model = matzov) -> Estimate:
    """The best of the attacks."""
    costs = {"unique shortest vector": unique_shortest(lwe, model)}
    costs["dual"] = min(dual_hybrid(lwe, model, 0, block) for block in _blocks(lwe))
    if lwe.weight is not None:
        costs |= _sparse(lwe, model)
    attack = min(costs, key=lambda name: costs[name])
    return Estimate(costs[attack], attack)


def _blocks(lwe: Lwe) -> range:
    return range(SMALLEST_BLOCK, 900, 4)


def _sparse(lwe: Lwe, model: Model) -> dict[str, float]:
    """Attacks that guess coordinates of a sparse secret."""
    costs = {"zeros guessed": math.inf, "dual hybrid": math.inf, "primal hybrid": math.inf}
    for guessed in range(0, lwe.dimension, lwe.dimension // 64):
        assert lwe.weight is not None
        if lwe.dimension - guessed <= lwe.weight:
            continue
        likely = next(likely for _, likely in _guesses(lwe, guessed))
        cost = unique_shortest(lwe, model, lwe.dimension - guessed)
        costs["zeros guessed"] = min(costs["zeros guessed"], _repeated(cost, likely))
        for block in range(SMALLEST_BLOCK, 400, 20):
            for name, attack in (("dual hybrid", dual_hybrid), ("primal hybrid", primal_hybrid)):
                costs[name] = min(costs[name], attack(lwe, model, guessed, block))
    return costs
