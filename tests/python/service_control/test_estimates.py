"""What jobs are given: by formula at first, as measured later, and never too little for long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.e2e.test_commands import DIGITS

from privet.compiler.compile import compile
from privet.scheduler import Key, Phase, Profiles, Usage
from privet.service.estimates import HEADROOM, MEMORY_FLOOR, Estimates
from privet.service.repository.version import plan
from privet.suites import Forecast, Gmw

KEY = Key("digits/1@aaaa", "gmw", 1, Phase.PRE)


@pytest.fixture(scope="module")
def forecast() -> Forecast:
    """The digits network's."""
    program = compile(DIGITS, input_range=(0, 1)).program
    foretold = plan(program.to_public_bytes(), Gmw(rounds="linear")).forecast
    assert foretold is not None
    return foretold


def expecting(forecast: Forecast, cores: int = 1) -> tuple[Profiles, Estimates]:
    profiles = Profiles(headroom=HEADROOM)
    estimates = Estimates(profiles)
    estimates.expect(KEY.model, KEY.suite, KEY.batch, forecast, cores)
    return profiles, estimates


def test_the_first_run_replaces_the_guess(forecast: Forecast) -> None:
    profiles, estimates = expecting(forecast)
    assert estimates.row(KEY) is None
    usage = estimates.measured(KEY, Usage(9.0, 10**9))
    profiles.observe(KEY, usage)
    assert profiles.expected(KEY).seconds == 9.0
    assert profiles.expected(KEY).memory == 10**9
    profiles.observe(KEY, estimates.measured(KEY, Usage(19.0, 10**9)))
    assert 9.0 < profiles.expected(KEY).seconds < 19.0


def test_runs_that_grew_by_nothing_do_not_starve_the_next(forecast: Forecast) -> None:
    large = replace(forecast, memory_bytes_server=2**30)
    for cost, least in ((forecast, MEMORY_FLOOR), (large, 2**29)):
        profiles, estimates = expecting(cost)
        for _ in range(200):
            profiles.observe(KEY, estimates.measured(KEY, Usage(1.0, 0)))
        assert profiles.estimate(KEY).memory >= least


def test_too_little_doubles(forecast: Forecast) -> None:
    profiles, estimates = expecting(forecast)
    estimates.exceeded(KEY, 3 * 10**9)
    assert profiles.expected(KEY).memory == 6 * 10**9


def test_other_cores_change_the_expected_time(forecast: Forecast) -> None:
    profiles, estimates = expecting(forecast)
    profiles.observe(KEY, estimates.measured(KEY, Usage(8.0, 10**9)))
    estimates.expect(KEY.model, KEY.suite, KEY.batch, forecast, 4)
    assert profiles.expected(KEY).cores == 4
    assert profiles.expected(KEY).seconds == pytest.approx(2.0)


def test_measurements_go_over_to_the_same_versions_next_program(forecast: Forecast) -> None:
    profiles, estimates = expecting(forecast)
    estimates.expect("digits/1@bbbb", "gmw", 1, forecast, 1)
    assert estimates.row(Key("digits/1@bbbb", "gmw", 1, Phase.PRE)) is None
    profiles.observe(KEY, estimates.measured(KEY, Usage(8.0, 10**9)))
    for model, seconds in (("digits/1@cccc", 8.0), ("digits/2@dddd", None)):
        estimates.expect(model, "gmw", 1, forecast, 1)
        row = estimates.row(Key(model, "gmw", 1, Phase.PRE))
        assert (row and row["seconds"]) == seconds
