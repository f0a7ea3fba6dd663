"""A headless Chromium, which `make browser` fetches, also with a client certificate."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, async_playwright
from scripts.browser import EXECUTABLE, FONT_CONFIGURATION, LIBRARIES


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
    shown: Any = {
        "origin": origin,
        "certPath": keys / f"{role}.pem",
        "keyPath": keys / f"{role}.key",
    }
    async with launched() as browser:
        # Its own list of authorities does not have the test's.
        yield await browser.new_context(
            client_certificates=[shown], ignore_https_errors=True, **options
        )
