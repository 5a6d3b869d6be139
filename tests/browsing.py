"""A browser and a workbench for tests of pages; modules that use them skip without a browser."""

import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from topicsteer.app.web.routes import Server
from topicsteer.app.workbench.workbench import Workbench

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# A request with the secret of the page.
SEND = """(body) => fetch('/api/act', {
    method: 'POST', body: JSON.stringify(body), headers: {'x-topicsteer': localStorage.getItem('topicsteer-secret')}
})"""
SECONDS = 60_000  # a busy machine takes long to fit
# Marks of a module with browser tests.
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: install Debian's chromium"),
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
    """The address of a running workbench; each serves once, and then comes the next one."""

    def __new__(cls, text, later):
        made = super().__new__(cls, text)
        made.next = later
        return made


@contextmanager
def running(path, *arguments):
    """Start a workbench and yield its address: a project in this process, a table by the command."""
    with (
        in_thread(path) if Path(path).suffix == ".steer" and not arguments else by_command(path, *arguments) as address
    ):
        yield address


@contextmanager
def in_thread(path):
    workbench, addresses = Workbench(path), queue.Queue()
    server = Server(workbench, "127.0.0.1", 0, None, lambda address, look: addresses.put(address), addresses.put)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Address(addresses.get(timeout=60), lambda: addresses.get(timeout=60))
    finally:
        server.should_exit = True
        thread.join(30)
        workbench.close()


@contextmanager
def by_command(*arguments):
    """The address is on a line of its own."""
    command = [sys.executable, "-m", "topicsteer", "label", *map(str, arguments), "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def later():
        return next(found[1] for line in process.stderr if (found := re.search(r"another browser: (http\S+)", line)))

    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", address), process.stderr.read()
        yield Address(address, later)
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
