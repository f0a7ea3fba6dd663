"""The operator's page in a headless Chromium, over a service whose executor pretends."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page
from tests.browser import browsing, flaws
from tests.e2e.services import put_digits
from tests.python.service_control.actors import Scene, scene

from privet.service.asks import NoticeBody, RequestBody
from privet.service.control.identity import Gate
from privet.service.records import JobRun

pytestmark = pytest.mark.browser

Look = Callable[[Scene, Page], Awaitable[None]]

CLIENT = "ab" * 32


@pytest.fixture
def look(folder: Path, key_folder: Path, program: Path) -> Callable[..., None]:
    """Opens the page as a role, and runs a test's coroutine on it. Whatever the page says on its
    console, errors of its content policy among it, fails the test."""

    def run(act: Look, scheme: str = "light", role: str = "operator") -> None:
        async def main() -> None:
            messages: list[str] = []
            async with scene(folder, key_folder, program, gate=Gate()) as testbed:
                origin = f"https://{testbed.address}"
                options = {"color_scheme": scheme, "viewport": {"width": 1280, "height": 900}}
                async with browsing(origin, key_folder, role, **options) as context:
                    page = await context.new_page()
                    page.on("console", lambda message: messages.append(message.text))
                    page.on("pageerror", lambda error: messages.append(str(error)))
                    requests: list[str] = []
                    page.on("request", lambda request: requests.append(request.url))
                    await page.goto(f"{origin}/")
                    await act(testbed, page)
                    assert [url for url in requests if not url.startswith(origin)] == []
            assert messages == []

        asyncio.run(main())

    return run


def submit(testbed: Scene, count: int, notices: int = 0) -> None:
    """Requests and notices of one client."""
    version = testbed.service.repository.version("digits")
    assert version is not None
    for _ in range(count):
        testbed.service.submit(CLIENT, None, version, RequestBody())
    for _ in range(notices):
        testbed.service.submit(CLIENT, None, version, NoticeBody())


def ran(
    testbed: Scene, model: str, end: float, *seconds: float, failure: str | None = None
) -> None:
    """Inferences of a model that all ended at a time, after so many seconds each."""
    for duration in seconds:
        name = f"{model} {end} {duration}"
        times = (end - duration, end, duration)
        facts = (model + "/1@ab", "gmw linear exact tables", 1, "here", (0,))
        testbed.service.timeline.add(JobRun(name, name, "on", *facts, *times, 0, failure))


def earlier(testbed: Scene) -> float:
    """Inferences of three models in the last three minutes; the start of their first quarter of a
    minute, as which they are drawn."""
    first = 15.0 * (time.time() // 15 - 6)
    ran(testbed, "digits", first + 1, *(0.1 * count for count in range(1, 21)))
    ran(testbed, "trees", first + 2, 0.5)
    ran(testbed, "broken", first + 3, 9.0, failure="failed")
    ran(testbed, "digits", first + 16, 3.0, 5.0, 4.0)
    ran(testbed, "trees", first + 47, 0.7)
    return first


async def says(page: Page, place: str, text: str) -> None:
    """Waits until a place on the page has a text."""
    await page.wait_for_function(
        "([place, text]) => document.querySelector(place)?.innerText.includes(text)",
        arg=[place, text],
        timeout=15_000,
    )


def test_queues_stock_and_counts_are_live(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        await says(page, "#health", "ready")
        await says(page, "#stock", "No material is ready.")
        submit(testbed, 5, notices=1)
        await says(page, "[data-queue=pre]", "pre 4")
        await says(page, ".tile:nth-child(1)", "2 / 2")
        for job in list(testbed.executor.jobs):
            testbed.executor.finish(job)
        await says(page, ".tile:nth-child(4)", "2")
        while testbed.service.jobs.open():
            for job in list(testbed.executor.jobs):
                testbed.executor.finish(job)
            await asyncio.sleep(0.02)
        await says(page, "#stock", "gmw linear exact tables")
        await says(page, "[data-queue=transit]", "transit 1")
        await says(page, "#counts", "ended: done\t6")
        await says(page, "#profiles", "T_pre")

    look(act)


def test_the_timeline_has_a_bar_for_each_job_on_each_core(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        submit(testbed, 1)
        await page.wait_for_selector("rect.bar.pre")
        preparation = await testbed.executor.granted("prepare")
        testbed.executor.finish(preparation.job)
        inferring = await testbed.executor.granted("infer")
        await page.wait_for_selector("rect.bar.on")
        testbed.executor.fail(inferring.job, "failed")
        await page.wait_for_selector("rect.bar.on.failed")
        assert await page.eval_on_selector_all("rect.track", "bars => bars.length") == 2
        # In one look, since all moves with the time.
        gap = await page.evaluate(GAP, [preparation.job, inferring.job])
        assert gap >= -1.5
        await page.hover(f"rect[data-job='{inferring.job}']")
        await says(page, "#readout", "T_on of digits/1")
        await says(page, "#readout", "failed")

    look(act)


def timeless(text: str) -> str:
    """`text` of a job that still runs, without how long: each second draws it anew."""
    return re.sub(r"runs for [\d.]+ \w+", "runs", text)


def test_the_timeline_works_by_keyboard(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        submit(testbed, 1)
        preparation = await testbed.executor.granted("prepare")
        testbed.executor.finish(preparation.job)
        inferring = await testbed.executor.granted("infer")
        await page.wait_for_selector("rect.bar.on")
        await page.focus("#timeline")

        async def chosen(key: str) -> str | None:
            await page.keyboard.press(key)
            bar = page.locator("rect.bar.chosen")
            assert await bar.count() == 1
            assert timeless(await page.inner_text("#spoken")) == timeless(
                await page.inner_text("#readout")
            )
            return await bar.get_attribute("data-job")

        steps = ["ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowRight", "Home", "End"]
        places = [await chosen(key) for key in steps]
        first, last = preparation.job, inferring.job
        assert places == [last, first, first, last, last, first, last]
        await says(page, "#readout", "T_on of digits/1")
        # What is drawn anew each second keeps the choice, and other keys go where they belong.
        assert await page.evaluate("document.activeElement.id") == "timeline"
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.id") != "timeline"
        submit(testbed, 2)
        other = await testbed.executor.granted("prepare")
        await page.wait_for_selector(f"rect[data-job='{other.job}']")
        await page.focus("#timeline")
        row = "bar => bar.getAttribute('data-row')"
        rows = {await page.eval_on_selector("rect.bar.chosen", row)}
        for key in (
            "ArrowDown",
            "ArrowUp",
        ):  # one of them leads to the other job, which is on another core
            await chosen(key)
            rows.add(await page.eval_on_selector("rect.bar.chosen", row))
        assert len(rows) == 2

    look(act)


def test_inference_times_are_drawn_by_model(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        await says(page, "#latency", "No inference ended in this time.")
        first = earlier(testbed)
        await page.wait_for_selector("#latency .part")
        table = await page.inner_text("#latencies tbody")
        # The percentiles of 23 and of 2 inferences; what failed counts for nothing.
        rows = [re.split(r"\s*\t\s*", row.strip()) for row in table.splitlines() if row.strip()]
        assert rows == [
            ["digits/1", "23", "1.20 s", "4.00 s"],
            ["trees/1", "2", "700 ms", "700 ms"],
        ]
        marks = await page.eval_on_selector_all(
            "#latency .part", "all => all.map((it) => [it.dataset.model, Number(it.dataset.start)])"
        )
        assert sorted(marks) == [
            ["digits/1", first],
            ["digits/1", first + 15],
            ["trees/1", first],
            ["trees/1", first + 45],
        ]
        label = await page.get_attribute("#latency svg", "aria-label")
        assert label is not None
        assert "digits/1 median 1.20 s, 95 % within 4.00 s; trees/1" in label
        # Marks of longer times are higher, and a median lies below what 95 % are within.
        assert await page.evaluate(HEIGHTS, ["digits/1", first, first + 15]) == [True, True]
        # Neighbours in time are joined, and across a gap nothing is.
        lines = "lines => lines.map((it) => (it.getAttribute('d').match(/L/g) || []).length)"
        assert await page.eval_on_selector_all("#latency .line", lines) == [0, 0, 1, 1]
        await page.select_option("#window", "60")
        await says(page, "#latencies", "trees/1\t1\t700 ms")

    look(act)


def test_inference_times_work_by_keyboard(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        first = earlier(testbed)
        await page.wait_for_selector("#latency .part")
        await page.focus("#latency")

        async def chosen(key: str) -> tuple[str | None, float]:
            await page.keyboard.press(key)
            part = page.locator("#latency .part.chosen")
            assert await part.count() == 1
            text = await page.inner_text("#latency-spoken")
            assert text == await page.inner_text("#latency-readout")
            start = await part.get_attribute("data-start")
            assert start is not None
            return await part.get_attribute("data-model"), float(start) - first

        steps = {
            "End": ("digits/1", 15),
            "ArrowRight": ("digits/1", 15),
            "ArrowDown": ("trees/1", 0),
            "ArrowLeft": ("trees/1", 0),
            "ArrowUp": ("digits/1", 0),
        }
        assert [await chosen(key) for key in steps] == list(steps.values())
        await says(page, "#latency-spoken", "median 1.10 s, 95 % within 2.00 s, of 20 inferences")
        assert await chosen("ArrowDown") == ("trees/1", 0)
        await says(page, "#latency-spoken", "of 1 inference")
        assert await chosen("ArrowRight") == ("trees/1", 45)
        assert await chosen("Home") == ("trees/1", 0)
        # What is drawn anew each second keeps the choice, and other keys go where they belong.
        stamp = await page.get_attribute("body", "data-drawn")
        await page.wait_for_function("it => document.body.dataset.drawn !== it", arg=stamp)
        assert await page.locator("#latency .part.chosen").count() == 1
        assert await page.evaluate("document.activeElement.id") == "latency"
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.id") != "latency"
        # A pointer chooses as well.
        await page.hover(f"#latency .part[data-model='digits/1'][data-start='{first:.0f}']")
        await says(page, "#latency-readout", "of 20 inferences")

    look(act)


def test_a_broken_version_and_the_drain_are_shown(look: Callable[..., None], folder: Path) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        put_digits(folder / "repository", config="batch = 0\n")
        await says(page, "#models", "earlier files")
        await says(page, "#models", "batch is 0")
        submit(testbed, 1)
        draining = asyncio.create_task(testbed.service.drain())
        await says(page, "#health", "draining")
        testbed.executor.seconds = 0.0
        for job in list(testbed.executor.jobs):
            testbed.executor.finish(job)
        await draining

    look(act)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_from_reading_it(look: Callable[..., None], scheme: str) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        submit(testbed, 3, notices=1)
        earlier(testbed)
        await says(page, "[data-queue=pre]", "pre 2")
        await page.wait_for_selector("#latency .part")
        await page.focus("#latency")
        await page.keyboard.press("End")
        assert await flaws(page) == []
        shades = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        dark = sum(int(part) for part in shades[4:-1].split(",")) < 3 * 128
        assert dark == (scheme == "dark")

    look(act, scheme)


@pytest.mark.parametrize("width", [375, 1280])
def test_no_screen_needs_scrolling_sideways(look: Callable[..., None], width: int) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        await page.set_viewport_size({"width": width, "height": 800})
        submit(testbed, 3)
        earlier(testbed)
        await says(page, "[data-queue=pre]", "pre 1")
        await page.wait_for_selector("#latency .part")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        # The chart itself is no wider than its card, and none of its words is cut off.
        assert await page.evaluate(INSIDE)

    look(act)


HEIGHTS = """([model, early, late]) => {
  const all = [...document.querySelectorAll(`#latency [data-model="${model}"]`)];
  const part = (start) => all.find((it) => Number(it.dataset.start) === start);
  const height = (it) => it.getBoundingClientRect().top;
  const marks = (start) => [...part(start).querySelectorAll("path")].map(height);
  const [[high, median], [later, laterMedian]] = [marks(early), marks(late)];
  return [high < median && later < laterMedian, later < high && laterMedian < median];
}"""
"""Whether a 95th percentile is above its median at both times, and both are higher at the later."""

INSIDE = """() => {
  const card = document.querySelector("#latency").getBoundingClientRect();
  return [...document.querySelectorAll("#latency svg, #latency text")]
    .map((it) => it.getBoundingClientRect())
    .every((it) => it.left >= card.left - 1 && it.right <= card.right + 1);
}"""
"""Whether a chart and all its words are within its place."""

GAP = """([first, second]) => {
  const place = (job) => document.querySelector(`rect[data-job="${job}"]`).getBoundingClientRect();
  return place(second).left - place(first).right;
}"""
"""Pixels between the bars of two jobs."""
