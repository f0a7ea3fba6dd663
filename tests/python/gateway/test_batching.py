"""Requests that are joined into one inference: which, when, and what each gets of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

from privet import Gmw
from privet.compiler.compile import compile
from privet.compiler.program import Program
from privet.errors import InputError, LinkError
from privet.gateway.oip.batching import Batcher, Tensors, samples_along
from privet.runtime import Result
from privet.suites.costs import PhaseCost

LONG = 30.0
SHORT = 0.02
V1 = ("m", 1, "a", "")


@pytest.fixture(scope="module")
def program() -> Program:
    """`x -> 2 x` on rows of two, four samples at once."""
    double = helper.make_node("Mul", ["x", "two"], ["y"])
    two = helper.make_tensor("two", TensorProto.FLOAT, [1], [2.0])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in ("x", "y"))
    graph = helper.make_graph([double], "double", [x], [y], [two])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return compile(model, input_range=(-8, 8), batch=4).program


class Service:
    """Doubles what it is asked, and keeps what that was."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[list[float]] = []
        self.cancelled = 0
        self.error = error
        self.slow = False

    async def ask(self, inputs: Tensors) -> Result:
        self.asked.append(inputs["x"][:, 0].tolist())
        try:
            await asyncio.sleep(LONG if self.slow else 0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        y = 2 * inputs["x"]
        cost = PhaseCost(0.0, 0, 0, 0, 0.0)
        return Result({"y": y}, (y,), "", Gmw(), "samples", None, None, cost, (), samples=len(y))


def rows(*firsts: float, dtype: type = np.float32) -> Tensors:
    return {"x": np.array([[first, 1] for first in firsts], dtype)}


def play(act: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await act()

    asyncio.run(main())


def test_a_full_group_is_asked_at_once_and_each_gets_its_own(program: Program) -> None:
    async def act() -> None:
        service, batcher = Service(), Batcher(LONG)
        requests = [rows(1), rows(2, 3), rows(4), rows(5, 6, 7, 8)]
        results = await asyncio.gather(
            *(batcher.ask(program, V1, request, service.ask) for request in requests)
        )
        assert sorted(map(sorted, service.asked)) == [[1, 2, 3, 4], [5, 6, 7, 8]]
        for inputs, result in zip(requests, results, strict=True):
            np.testing.assert_array_equal(result.outputs["y"], 2 * inputs["x"])
            np.testing.assert_array_equal(result.integers[0], 2 * inputs["x"])
            assert result.samples == len(inputs["x"])

    play(act)


def test_a_group_waits_no_longer_than_its_first_request_may(program: Program) -> None:
    async def act() -> None:
        service, batcher = Service(), Batcher(SHORT)
        result = await batcher.ask(program, V1, rows(1), service.ask)
        assert (service.asked, result.samples) == ([[1]], 1)
        await batcher.ask(program, V1, rows(2), service.ask)
        assert service.asked == [[1], [2]]

    play(act)


def test_a_request_that_would_not_fit_begins_the_next_group(program: Program) -> None:
    async def act() -> None:
        service, batcher = Service(), Batcher(SHORT)
        requests = [rows(1, 2, 3), rows(4, 5)]
        await asyncio.gather(
            *(batcher.ask(program, V1, request, service.ask) for request in requests)
        )
        assert sorted(service.asked) == [[1, 2, 3], [4, 5]]

    play(act)


def test_other_versions_and_types_are_asked_apart_and_without_a_delay_all_are(
    program: Program,
) -> None:
    async def act() -> None:
        service = Service()
        for batcher in (Batcher(SHORT), Batcher(0)):
            await asyncio.gather(
                batcher.ask(program, V1, rows(1), service.ask),
                batcher.ask(program, ("m", 1, "a", "1"), rows(2), service.ask),
                batcher.ask(program, ("m", 2, "a", ""), rows(3), service.ask),
                batcher.ask(program, V1, rows(4, dtype=np.float64), service.ask),
                batcher.ask(program, ("m", 1, "b", ""), rows(5), service.ask),
            )
            assert sorted(service.asked) == [[1], [2], [3], [4], [5]]
            service.asked.clear()
        await asyncio.gather(*(Batcher(0).ask(program, V1, rows(1), service.ask) for _ in "ab"))
        assert service.asked == [[1], [1]]

    play(act)


def test_a_caller_that_would_be_gone_is_not_held(program: Program) -> None:
    async def act() -> None:
        service, batcher = Service(), Batcher(LONG)
        await batcher.ask(program, V1, rows(1), service.ask, seconds=9 * LONG)
        assert service.asked == [[1]]
        task = asyncio.create_task(
            batcher.ask(program, V1, rows(2), service.ask, seconds=11 * LONG)
        )
        await asyncio.sleep(0.1)
        assert service.asked == [[1]]
        await batcher.ask(program, V1, rows(3, 4, 5), service.ask)
        assert (await task).samples == 1

    play(act)


def test_an_input_that_does_not_fit_fails_alone(program: Program) -> None:
    async def act() -> None:
        service, batcher = Service(), Batcher(SHORT)
        good, bad = await asyncio.gather(
            batcher.ask(program, V1, rows(1), service.ask),
            batcher.ask(program, V1, rows(float("nan")), service.ask),
            return_exceptions=True,
        )
        assert isinstance(good, Result)
        assert isinstance(bad, InputError)
        assert service.asked == [[1]]

    play(act)


def test_a_program_that_came_meanwhile_refuses_only_what_does_not_fit_it(program: Program) -> None:
    class Narrower(Service):
        async def ask(self, inputs: Tensors) -> Result:
            if inputs["x"].max() > 4:
                self.asked.append(inputs["x"][:, 0].tolist())
                raise InputError("beyond its range")
            return await super().ask(inputs)

    async def act() -> None:
        service, batcher = Narrower(), Batcher(SHORT)
        wide, narrow = await asyncio.gather(
            *(batcher.ask(program, V1, rows(x), service.ask) for x in (5, 1)),
            return_exceptions=True,
        )
        assert isinstance(wide, InputError)
        assert isinstance(narrow, Result)
        first, *apart = [sorted(batch) for batch in service.asked]
        assert (first, sorted(apart)) == ([1, 5], [[1], [5]])

    play(act)


def test_an_inference_that_fails_fails_for_its_group_alone(program: Program) -> None:
    async def act() -> None:
        service, batcher = Service(LinkError("it ended")), Batcher(SHORT)
        results = await asyncio.gather(
            *(batcher.ask(program, V1, rows(x), service.ask) for x in (1, 2)),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [LinkError, LinkError]
        service.error = None
        assert (await batcher.ask(program, V1, rows(3), service.ask)).samples == 1

    play(act)


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_group_that_nobody_waits_for_is_given_up(program: Program, is_asked: bool) -> None:
    async def act() -> None:
        service, batcher = Service(), Batcher(LONG)
        service.slow = True
        size = 2 if is_asked else 1
        first, second = (
            asyncio.create_task(batcher.ask(program, V1, rows(*[x] * size), service.ask))
            for x in (1, 2)
        )
        await asyncio.sleep(0.3)
        first.cancel()
        await asyncio.sleep(SHORT)
        assert not second.done()
        assert service.cancelled == 0
        second.cancel()
        await asyncio.sleep(SHORT)
        assert service.cancelled == len(service.asked) == is_asked
        # Who comes then joins nothing that is gone.
        service.slow = False
        later = [batcher.ask(program, V1, rows(x), service.ask) for x in (3, 4, 5, 6)]
        assert len(await asyncio.gather(*later)) == 4
        assert sorted(service.asked[-1]) == [3, 4, 5, 6]

    play(act)


def test_only_samples_along_the_first_axis_are_counted(program: Program) -> None:
    assert samples_along(program, rows(1, 2, 3)) == 3
    assert samples_along(program, {"x": np.zeros((2, 3))}) == 0
    assert samples_along(program, {"x": np.array(1.0)}) == 0
    assert samples_along(program, {"z": np.zeros((2, 2))}) == 0
    assert samples_along(program, {"x": np.zeros(2)}) == 0
