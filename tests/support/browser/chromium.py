"""A real browser for tests: the system's Chromium, without a window, through Playwright."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium_program() -> dict[str, Any]:
    """Return what Playwright takes to start the system's Chromium; skips with the reason where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    # Chromium makes no sandbox for root; the pages are our own, on loopback.
    return {"executable_path": found, "args": ["--no-sandbox"] if os.geteuid() == 0 else []}


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser; skips with the reason where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = chromium_program()
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(**program)
        try:
            yield browser
        finally:
            browser.close()
