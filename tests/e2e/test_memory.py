"""Memory as forecast, and a limit that is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.combinations import combinations
from tests.e2e.test_commands import privet as command

import privet
from privet import zoo
from privet.compiler.compile import Compiled, compile
from privet.errors import Misuse
from privet.runtime.quantities import parse_size


@pytest.fixture(scope="module")
def resnet20(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compile(zoo.build("resnet20", tmp_path_factory.mktemp("zoo")))


WAYS = [
    privet.Gmw(),
    privet.Gmw(correlations="dealer"),
    privet.Fss(),
    privet.Fss(security="malicious"),
]


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *combinations(WAYS, ["m2", "resnet20"]),
        *(pytest.param(way, "hinet", marks=pytest.mark.slow) for way in WAYS),
    ],
)
def test_neither_party_takes_more_than_forecast(
    way: privet.Suite, name: str, tmp_path: Path
) -> None:
    result = privet.run(zoo.build(name, tmp_path), suite=way)
    for use in result.memory.values():
        assert use.forecast_mb is not None
        assert use.forecast_mb / 3 < use.peak_mb <= use.forecast_mb


def test_a_limit_lowers_the_servers_peak_and_changes_no_result(resnet20: Compiled) -> None:
    free = privet.run(resnet20)
    limited = privet.run(resnet20, memory="200MB")
    assert limited.memory["server"].forecast_mb is None
    assert limited.memory["server"].peak_mb < 200 < free.memory["server"].peak_mb
    assert limited.memory["client"].peak_mb < 200
    assert limited.argmax_agrees
    assert limited.max_abs_error < 3 * free.max_abs_error
    for phase in ("offline", "online"):
        limited_cost, free_cost = getattr(limited, phase), getattr(free, phase)
        assert (limited_cost.bytes_client, limited_cost.bytes_server) == (
            free_cost.bytes_client,
            free_cost.bytes_server,
        )


def test_a_server_makes_no_weights_ready_that_its_client_does_not_take(resnet20: Compiled) -> None:
    result = privet.run(resnet20, suite=privet.Gmw(field="prime"))
    assert result.max_fixed_point_error == 0
    assert result.memory["server"].peak_mb < 190


def test_a_limit_that_cannot_be_kept_is_refused_with_the_figure(resnet20: Compiled) -> None:
    with pytest.raises(Misuse, match=r"resnet20 needs \d+ MB beside the process"):
        privet.run(resnet20, memory="100MB")


def test_the_command_refuses_too(tmp_path: Path) -> None:
    path = zoo.build("m2", tmp_path)
    failure = command("run", path, "--memory", "90MB", code=2)
    assert "raise the limit" in failure["error"]["message"]


@pytest.mark.parametrize(
    ("text", "count"),
    [("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("1500MB", 15 * 10**8), ("4096", 4096), (7, 7)],
)
def test_sizes(text: int | str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "2 lots", "-1GB", "GB", "0", "2gb", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="memory"):
        parse_size(text)
