"""A browser and a workbench for tests of pages; modules that use them skip without a browser."""

import re
import shutil
import signal
import subprocess
import sys
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


class Address(str):
    """The address of a running workbench; each serves once, and the next one is printed then."""

    def __new__(cls, text, process):
        made = super().__new__(cls, text)
        made.process = process
        return made

    def next(self):
        for line in self.process.stderr:
            if found := re.search(r"another browser: (http\S+)", line):
                return found[1]
        raise AssertionError("no further address")


@contextmanager
def running(*arguments):
    """Start a workbench and yield its address, which it prints on a line of its own."""
    command = [sys.executable, "-m", "topicsteer", "label", *map(str, arguments), "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", address), process.stderr.read()
        yield Address(address, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
