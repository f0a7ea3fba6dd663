"""A headless Chromium, which `make browser` fetches, with a client certificate."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, async_playwright
from scripts.browser import EXECUTABLE, FONT_CONFIGURATION, LIBRARIES


@asynccontextmanager
async def browsing(
    origin: str, keys: Path, role: str, **options: Any
) -> AsyncIterator[BrowserContext]:
    """A browser that shows `origin` the certificate of `role`."""
    assert EXECUTABLE.exists(), "there is no browser to test the page with: run `make browser`"
    shown: Any = {
        "origin": origin,
        "certPath": keys / f"{role}.pem",
        "keyPath": keys / f"{role}.key",
    }
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "LD_LIBRARY_PATH": str(LIBRARIES),
        "FONTCONFIG_FILE": str(FONT_CONFIGURATION),
    }
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=EXECUTABLE,
            # It shows pages of this test only, and as root there is no sandbox.
            args=["--no-sandbox", "--no-zygote", "--disable-gpu"],
            env=environment,
        )
        # Its own list of authorities does not have the test's.
        context = await browser.new_context(
            client_certificates=[shown], ignore_https_errors=True, **options
        )
        try:
            yield context
        finally:
            await browser.close()
