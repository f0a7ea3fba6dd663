"""What permuted tensors tell: the measure against its definition, attacks beside their controls."""

from __future__ import annotations

import numpy as np
import pytest
from tests.python.stream import models

from privet.errors import Misuse
from privet.research.stream import leakage


def defined(x: np.ndarray, y: np.ndarray) -> float:
    """Distance correlation as its definition has it."""

    def centred(values: np.ndarray) -> np.ndarray:
        distances = np.abs(values[:, None] - values)
        rows = distances.mean(axis=0)
        return np.asarray(distances - rows - rows[:, None] + distances.mean())

    a, b = centred(x), centred(y)
    return float(np.sqrt((a * b).mean() / np.sqrt((a * a).mean() * (b * b).mean())))


def test_distance_correlation_is_what_its_definition_says() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(700)
    for y in (rng.standard_normal(700), x**2, np.sort(x)):
        assert leakage.distance_correlation(x, y) == pytest.approx(defined(x, y))
    assert leakage.distance_correlation(x, -3 * x + 1) == pytest.approx(1)
    assert leakage.distance_correlation(x, np.ones(700)) == 0


def test_longer_tensors_tell_less_by_the_papers_measure() -> None:
    rng = np.random.default_rng(2)
    for exponent in (5, 8, 11):
        order = leakage.fresh(1 << exponent)
        values = []
        for number in range(8):
            tensor = rng.standard_normal(1 << exponent)
            values.append(leakage.distance_correlation(tensor, tensor[order(number)]))
        assert np.mean(values) == pytest.approx(leakage.published(exponent), rel=0.35)


@pytest.mark.parametrize("outputs", [16, 64])
def test_repeated_queries_match_only_where_the_order_is_not_fresh(outputs: int) -> None:
    attacks = leakage.attacks(outputs=outputs)
    assert attacks["fixed permutation"]["by place"] > 0.99
    assert attacks["cyclic shift"]["by shift"] > 0.99
    assert attacks["cyclic shift"]["by place"] < 0.3
    assert abs(attacks["fresh permutation"]["by place"]) < 0.2
    assert abs(attacks["fresh permutation"]["by shift"]) < 0.2
    # What no order hides: values that keep their rank can be followed.
    assert attacks["fresh permutation"]["by value"] > 0.5


def test_tensors_of_a_model_are_measured() -> None:
    rows = leakage.correlations(models.windows(), [None, None])
    assert {row.exponent: row.tensors for row in rows} == {4: 2, 7: 2}
    assert all(0 < row.correlation < 0.9 for row in rows)


def test_a_layer_too_small_to_attack_is_refused() -> None:
    with pytest.raises(Misuse):
        leakage.attacks(outputs=2)
