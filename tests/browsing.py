"""A browser and a workbench for tests of pages; modules that use them skip without a browser."""

import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# A request with the secret of the page.
SEND = """(body) => fetch('/api/act', {
    method: 'POST', body: JSON.stringify(body), headers: {'x-topicsteer': localStorage.getItem('topicsteer-secret')}
})"""
SECONDS = 60_000  # a busy machine takes long to fit
# Marks of a module with browser tests. A test may fail once: page, server and fit run at their own pace.
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: install Debian's chromium"),
    pytest.mark.flaky(reruns=1),
]


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


@contextmanager
def opened(browser, address, **options):
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("console", lambda message: page.troubles.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (page.troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.goto(address)
    page.wait_for_selector("#panel")
    yield page
    assert page.troubles == []
    context.close()


def wait(page, expression, arg=None):
    """Wait until an expression is true; polled from outside, because the policy of the page forbids eval."""
    for _ in range(SECONDS // 50):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def goto(page, name):
    page.click(f'#tabs a[href="#{name}"]')
    page.wait_for_selector(f'main[data-page="{name}"] h1')
