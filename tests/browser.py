"""A headless Chromium, which `make browser` fetches, also with a client certificate."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from scripts.browser import AXE_SCRIPT, EXECUTABLE, FONT_CONFIGURATION, LIBRARIES


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """The browser, without a page."""
    assert EXECUTABLE.exists(), "there is no browser to test the page with: run `make browser`"
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "LD_LIBRARY_PATH": str(LIBRARIES),
        "FONTCONFIG_FILE": str(FONT_CONFIGURATION),
    }
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=EXECUTABLE,
            # It shows pages of tests only, and as root there is no sandbox.
            args=["--no-sandbox", "--no-zygote", "--disable-gpu"],
            env=environment,
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def browsing(
    origin: str, keys: Path, role: str, **options: Any
) -> AsyncIterator[BrowserContext]:
    """A browser that shows `origin` the certificate of `role`."""
    certificate: Any = {
        "origin": origin,
        "certPath": keys / f"{role}.pem",
        "keyPath": keys / f"{role}.key",
    }
    async with launched() as browser:
        # Its own list of authorities does not have the test's.
        yield await browser.new_context(
            client_certificates=[certificate], ignore_https_errors=True, **options
        )


@asynccontextmanager
async def on_a_screen(file: Path, width: int) -> AsyncIterator[Page]:
    """A report on a screen of so many pixels: nothing but tables, which scroll by themselves, is
    wider, and at the end nothing else was fetched, nothing went wrong, and axe finds nothing."""
    messages: list[str] = []
    urls: list[str] = []
    async with launched() as browser:
        context = await browser.new_context(viewport={"width": width, "height": 700})
        page = await context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: urls.append(request.url))
        await page.goto(file.as_uri())
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        yield page
        assert await flaws(page) == []
    assert urls == [file.as_uri()]
    assert messages == []


FLAWS = """async () => (await axe.run(document, { runOnly: {
  type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
} })).violations.flatMap((it) => it.nodes.map((node) => `${it.id}: ${node.target.join(" ")}`))"""


async def flaws(page: Page) -> list[str]:
    """What axe finds on a page that keeps people from using it: its rule, and where."""
    # A page's content policy has no script tag from elsewhere; the debugger may run it.
    await page.evaluate(AXE_SCRIPT.read_text(encoding="utf-8"))
    violations: list[str] = await page.evaluate(FLAWS)
    return violations
