"""A browser for tests of pages; modules that use it skip without one."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# Marks of a module with browser tests.
MARKS = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no browser: install Debian's chromium")]


@contextmanager
def launched():
    """A headless Chromium."""
    tool = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with tool.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()
