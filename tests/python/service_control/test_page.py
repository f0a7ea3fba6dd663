"""The operator's page in a headless Chromium, over a service whose executor pretends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page
from tests.browser import browsing, flaws
from tests.e2e.services import put_digits
from tests.python.service_control.actors import Scene, scene

from privet.service.asks import NoticeBody, RequestBody
from privet.service.control.identity import Gate

pytestmark = pytest.mark.browser

Look = Callable[[Scene, Page], Awaitable[None]]

CLIENT = "ab" * 32


@pytest.fixture
def look(folder: Path, key_folder: Path, program: Path) -> Callable[..., None]:
    """Opens the page as a role, and runs a test's coroutine on it. Whatever the page says on its
    console, errors of its content policy among it, fails the test."""

    def run(act: Look, scheme: str = "light", role: str = "operator") -> None:
        async def main() -> None:
            said: list[str] = []
            async with scene(folder, key_folder, program, gate=Gate()) as it:
                origin = f"https://{it.address}"
                options = {"color_scheme": scheme, "viewport": {"width": 1280, "height": 900}}
                async with browsing(origin, key_folder, role, **options) as context:
                    page = await context.new_page()
                    page.on("console", lambda message: said.append(message.text))
                    page.on("pageerror", lambda error: said.append(str(error)))
                    requests: list[str] = []
                    page.on("request", lambda request: requests.append(request.url))
                    await page.goto(f"{origin}/")
                    await act(it, page)
                    assert [url for url in requests if not url.startswith(origin)] == []
            assert said == []

        asyncio.run(main())

    return run


def submit(it: Scene, count: int, notices: int = 0) -> None:
    """Requests and notices of one client."""
    version = it.service.repository.version("digits")
    assert version is not None
    for _ in range(count):
        it.service.submit(CLIENT, None, version, RequestBody())
    for _ in range(notices):
        it.service.submit(CLIENT, None, version, NoticeBody())


async def says(page: Page, place: str, text: str) -> None:
    """Waits until a place on the page has a text."""
    await page.wait_for_function(
        "([place, text]) => document.querySelector(place)?.innerText.includes(text)",
        arg=[place, text],
        timeout=15_000,
    )


def test_queues_stock_and_counts_are_live(look: Callable[..., None]) -> None:
    async def act(it: Scene, page: Page) -> None:
        await says(page, "#health", "ready")
        await says(page, "#stock", "No material is ready.")
        submit(it, 5, notices=1)
        await says(page, "[data-queue=pre]", "pre 4")
        await says(page, ".tile:nth-child(1)", "2 / 2")
        for job in list(it.executor.jobs):
            it.executor.finish(job)
        await says(page, ".tile:nth-child(4)", "2")
        while it.service.jobs.open():
            for job in list(it.executor.jobs):
                it.executor.finish(job)
            await asyncio.sleep(0.02)
        await says(page, "#stock", "gmw linear exact tables")
        await says(page, "[data-queue=transit]", "transit 1")
        await says(page, "#counts", "ended: done\t6")
        await says(page, "#profiles", "T_pre")

    look(act)


def test_the_timeline_has_a_bar_for_each_job_on_each_core(look: Callable[..., None]) -> None:
    async def act(it: Scene, page: Page) -> None:
        submit(it, 1)
        await page.wait_for_selector("rect.bar.pre")
        prepared = await it.executor.granted("prepare")
        it.executor.finish(prepared.job)
        inferring = await it.executor.granted("infer")
        await page.wait_for_selector("rect.bar.on")
        it.executor.fail(inferring.job, "failed")
        await page.wait_for_selector("rect.bar.on.failed")
        assert await page.eval_on_selector_all("rect.track", "bars => bars.length") == 2
        # In one look, since all moves with the time.
        gap = await page.evaluate(GAP, [prepared.job, inferring.job])
        assert gap >= -1.5
        await page.hover(f"rect[data-job='{inferring.job}']")
        await says(page, "#readout", "T_on of digits/1")
        await says(page, "#readout", "failed")

    look(act)


def timeless(text: str) -> str:
    """`text` of a job that still runs, without how long: each second draws it anew."""
    return re.sub(r"runs for [\d.]+ \w+", "runs", text)


def test_the_timeline_works_by_keyboard(look: Callable[..., None]) -> None:
    async def act(it: Scene, page: Page) -> None:
        submit(it, 1)
        prepared = await it.executor.granted("prepare")
        it.executor.finish(prepared.job)
        inferring = await it.executor.granted("infer")
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
        reached = [await chosen(key) for key in steps]
        first, last = prepared.job, inferring.job
        assert reached == [last, first, first, last, last, first, last]
        await says(page, "#readout", "T_on of digits/1")
        # What is drawn anew each second keeps the choice, and other keys go where they belong.
        assert await page.evaluate("document.activeElement.id") == "timeline"
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.id") != "timeline"
        submit(it, 2)
        other = await it.executor.granted("prepare")
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


def test_a_broken_version_and_the_drain_are_shown(look: Callable[..., None], folder: Path) -> None:
    async def act(it: Scene, page: Page) -> None:
        put_digits(folder / "repository", config="batch = 0\n")
        await says(page, "#models", "earlier files")
        await says(page, "#models", "batch is 0")
        submit(it, 1)
        draining = asyncio.create_task(it.service.drain())
        await says(page, "#health", "draining")
        it.executor.seconds = 0.0
        for job in list(it.executor.jobs):
            it.executor.finish(job)
        await draining

    look(act)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_from_reading_it(look: Callable[..., None], scheme: str) -> None:
    async def act(it: Scene, page: Page) -> None:
        submit(it, 3, notices=1)
        await says(page, "[data-queue=pre]", "pre 2")
        assert await flaws(page) == []
        shades = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        dark = sum(int(part) for part in shades[4:-1].split(",")) < 3 * 128
        assert dark == (scheme == "dark")

    look(act, scheme)


def test_a_phone_needs_no_scrolling_sideways(look: Callable[..., None]) -> None:
    async def act(it: Scene, page: Page) -> None:
        await page.set_viewport_size({"width": 390, "height": 800})
        submit(it, 3)
        await says(page, "[data-queue=pre]", "pre 1")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390

    look(act)


GAP = """([first, second]) => {
  const place = (job) => document.querySelector(`rect[data-job="${job}"]`).getBoundingClientRect();
  return place(second).left - place(first).right;
}"""
"""Pixels between the bars of two jobs."""
