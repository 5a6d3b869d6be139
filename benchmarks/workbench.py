"""The workbench under load, over HTTP: ``python benchmarks/workbench.py [large] [kill] [full] [refit] [tree] [live]``.

``--runs 5`` shortens kill, full, tree and live, which have twenty runs. ``full`` needs Linux and ``unshare``; ``tree``
and ``live`` need playwright and Chromium. ``--rows`` is the number of documents of ``live``.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from topicsteer.app.workbench.project import Project
from topicsteer.corpora import Documents

ROWS, PEOPLE, EVENTS = 100_000, 4, 2_000


@functools.cache
def access_of(address: str) -> dict[str, str]:
    """The headers of a session that an address is exchanged for, once."""
    with urllib.request.urlopen(address) as answer:
        found = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
        return found | {"x-topicsteer": answer.headers["x-topicsteer"], "origin": f"http://{urlsplit(address).netloc}"}


class Person:
    """One persistent connection, like a browser's."""

    def __init__(self, address: str, who: str) -> None:
        parts = urlsplit(address)
        self.who, self.connection = who, http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
        self.headers = access_of(address)

    def send(self, method: str, path: str, body: object = None) -> tuple[int, bytes, str]:
        """Status, content and type of an answer."""
        data = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, body=data, headers=self.headers)
            answer = self.connection.getresponse()
        except http.client.RemoteDisconnected:
            if method == "POST":
                raise
            self.connection.close()  # the server closes idle connections
            return self.send(method, path, body)
        return answer.status, answer.read(), answer.headers["content-type"]

    def ask(self, method: str, path: str, body: object = None) -> dict:
        status, content, kind = self.send(method, path, body)
        assert status == 200, (path, status, content[:300])
        return json.loads(content) if kind == "application/json" else {}

    def act(self, action: str, request: str | None = None, **values: object) -> dict:
        return self.ask("POST", "/api/act", {"who": self.who, "action": action, "request": request} | values)

    def label(self, request: str, row: int) -> int:
        """Set or clear a label; return the status."""
        state = ("permitted", "cleared")[row % 2]
        body = {"action": "label", "documents": [row], "key": 1, "state": state, "who": self.who, "request": request}
        return self.send("POST", "/api/act", body)[0]


class Server:
    """A workbench in its own process."""

    def __init__(self, source: Path, *options: str) -> None:
        command = [sys.executable, "-m", "topicsteer", "label", str(source), "--no-browser", "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()
        assert self.address.startswith("http"), "the server did not start"

    def memory(self) -> tuple[float, float]:
        """Return the peak memory of the server and of its worker, in GB."""
        own = self.process.pid
        threads = Path(f"/proc/{own}/task").glob("*/children")
        children = [pid for thread in threads for pid in thread.read_text().split()]
        peaks = []
        for pid in [own, *children]:
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            peaks.append(int(found[1]) / 1e6 if found else 0.0)
        return peaks[0], sum(peaks[1:])

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def fit(person: Person, every: float = 0.05) -> float:
    """Start a fit, wait for the new topics, and return the seconds between; the state is read ``every`` few seconds."""
    before = person.ask("GET", "/api/state?who=x")["model"]
    begin = time.perf_counter()
    person.ask("POST", "/api/fit", {"who": person.who})
    while True:
        state = person.ask("GET", "/api/state?who=x")
        assert not state["fit"].get("error"), state["fit"]
        if state["model"] != before and state["fit"]["state"] != "fitting":
            return time.perf_counter() - begin
        time.sleep(every)


def settled(person: Person) -> None:
    """Wait until the background work is finished."""
    while person.ask("GET", "/api/state?who=x")["fit"]["state"] != "idle":
        time.sleep(0.2)
    time.sleep(1)


def texts(n: int) -> list[str]:
    """Return texts of the length of abstracts, with the words of 50 areas."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in range(20_000)])
    common = rng.zipf(1.3, size=(n, 60)) % 20_000
    area = rng.integers(0, 50, size=n)
    own = 2_000 + 300 * area[:, None] + rng.integers(0, 300, size=(n, 25))
    return [" ".join(words[row]) for row in np.hstack([common, own])]


def large(folder: Path) -> None:
    """Measure 100,000 documents: first page, pages of the list, labels of four people during a fit, memory."""
    table = folder / "large.parquet"
    pl.DataFrame({"id": [f"d{k}" for k in range(ROWS)], "text": texts(ROWS)}).write_parquet(table)
    begin = time.perf_counter()
    server = Server(table)
    print(f"read the table and write the project: {time.perf_counter() - begin:.1f} s")
    boss = Person(server.address, "boss")
    begin = time.perf_counter()
    boss.ask("GET", "/pages/app.js")
    boss.ask("GET", "/api/state?who=boss")
    boss.ask("GET", "/api/next?who=boss")
    boss.ask("GET", "/api/documents?who=boss")
    print(f"first page before any fit: {time.perf_counter() - begin:.2f} s")
    for name in range(20):
        boss.act("new topic", name=f"area {name}")
    for topic in range(1, 21):
        rows = boss.ask("GET", f"/api/documents?who=boss&all_rows=true&query=w{2_000 + 300 * topic}")["rows"][:10]
        boss.act("label", documents=rows, key=topic, state="permitted")
    boss.act("settings", values={"refit_after": 0})
    settled(boss)
    print(f"first fit: {fit(boss):.1f} s")
    begin = time.perf_counter()
    boss.ask("GET", "/api/state?who=boss")
    found = boss.ask("GET", "/api/next?who=boss")
    boss.ask("GET", f"/api/documents/{found['row']}?who=boss")
    boss.ask("GET", "/api/documents?who=boss")
    print(f"first page after the matrix is ready: {time.perf_counter() - begin:.2f} s")
    for query in (
        "page=1999",
        "filter=uncertain&sort=uncertainty",
        "key=3&sort=strength",
        "query=w2305",
        "filter=unlabelled&page=900",
    ):
        begin = time.perf_counter()
        boss.ask("GET", f"/api/documents?who=boss&{query}")
        print(f"documents?{query}: {1000 * (time.perf_counter() - begin):.0f} ms")
    settled(boss)
    for state in ("at rest", "during a fit"):
        if state == "during a fit":
            threading.Thread(target=lambda: fit(Person(server.address, "boss"))).start()
        crowd(server.address, state)
    settled(boss)
    print("peak memory: server {:.2f} GB, worker {:.2f} GB".format(*server.memory()))
    server.stop()
    check(table.with_suffix(".steer"))


def crowd(address: str, state: str) -> None:
    """Send 2,000 events of four people, as fast as possible."""
    times: list[float] = []

    def work(k: int) -> None:
        person, rng = Person(address, f"{state} {k}"), random.Random(k)
        for event in range(EVENTS // PEOPLE):
            row, topic = rng.randrange(ROWS), rng.randrange(1, 21)
            begin = time.perf_counter()
            person.act("label", f"{state}-{k}-{event}", documents=[row], key=topic, state="permitted")
            times.append(time.perf_counter() - begin)

    begin = time.perf_counter()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(PEOPLE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p50, p95, worst = np.percentile(times, [50, 95, 100]) * 1000
    total = time.perf_counter() - begin
    print(
        f"{len(times)} events of {PEOPLE} people {state}: {total:.1f} s; "
        f"median {p50:.0f} ms, 95th percentile {p95:.0f} ms, worst {worst:.0f} ms"
    )


def check(path: Path) -> None:
    """Check that every event is in the log exactly once."""
    project = Project.open(path)
    for state in ("at rest", "during a fit"):
        names = [f"{state}-{k}-{event}" for k in range(PEOPLE) for event in range(EVENTS // PEOPLE)]
        lost = [name for name in names if project.log.batch_of(name) is None]
        query = "SELECT count(*), count(DISTINCT request) FROM batches WHERE request LIKE ?"
        made, distinct = project.read(query, (f"{state}-%",)).fetchone()
        print(f"{state}: {len(names)} events, {len(lost)} lost, {made - distinct} doubled, {made} in the log")
        assert not lost
        assert made == distinct == len(names)
    project.close()


def person_of(server: Server, run: int) -> Person:
    """The person of a run; the first one makes a topic and switches off fits."""
    person = Person(server.address, f"run {run}")
    if run == 0:
        person.act("new topic", name="one")
        person.act("settings", values={"refit_after": 0})
    return person


def kill(folder: Path, runs: int = 20) -> None:
    """Kill the server with SIGKILL at random moments of 500 labels, in each run."""
    table = folder / "kill.parquet"
    pl.DataFrame({"id": list(range(2_000)), "text": texts(2_000)}).write_parquet(table)
    Server(table).stop()
    rng = random.Random(0)
    lost = saved = 0
    for run in range(runs):
        server = Server(table)
        person = person_of(server, run)
        acknowledged: list[str] = []

        def work(person: Person = person, acknowledged: list[str] = acknowledged, run: int = run) -> None:
            try:
                for event in range(500):
                    assert person.label(f"{run}-{event}", event) == 200
                    acknowledged.append(f"{run}-{event}")
            except (OSError, http.client.HTTPException):
                pass

        thread = threading.Thread(target=work)
        thread.start()
        goal = rng.randrange(1, 500)
        while len(acknowledged) < goal and thread.is_alive():
            time.sleep(0.0005)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        thread.join()
        project = Project.open(table.with_suffix(".steer"))
        lost += sum(project.log.batch_of(name) is None for name in acknowledged)
        project.close()
        saved += len(acknowledged)
    print(f"{runs} runs, {saved} events reported as saved, {lost} of them lost")
    assert lost == 0


def full(folder: Path, runs: int = 20) -> None:
    """Fill the disk during labels, in each run; every second server is killed while it is full, the others go on."""
    if os.environ.get("TOPICSTEER_SMALL_DISK") != "1":  # again, where this user may mount a small disk
        command = [sys.executable, __file__, "full", "--runs", str(runs)]
        wrapper = ["unshare", "--user", "--map-root-user", "--mount"]
        subprocess.run([*wrapper, *command], check=True, env=os.environ | {"TOPICSTEER_SMALL_DISK": "1"})
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
    try:
        on_small_disk(folder, runs)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def on_small_disk(folder: Path, runs: int) -> None:
    """Label in a folder of a few megabytes until it is full, again and again."""
    table, rng = folder / "full.parquet", random.Random(0)
    pl.DataFrame({"id": list(range(500)), "text": texts(500)}).write_parquet(table)
    Server(table).stop()
    refused = lost = 0
    saved: list[str] = []
    for run in range(runs):
        server = Server(table)
        person = person_of(server, run)
        fill(folder / "ballast", rng.randrange(2_000_000))
        before, failed = len(saved), 0
        for event in range(2_000):
            status = person.label(f"{run}-{event}", event % 500)
            assert status in (200, 507), status
            if status == 200:
                saved.append(f"{run}-{event}")
            else:
                failed += 1
            if failed == 3:  # a person who tries again
                break
        refused += failed
        if run % 2:
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            (folder / "ballast").unlink()
        else:
            (folder / "ballast").unlink()
            assert person.label(f"{run}-later", 3) == 200, "there is room again"
            saved.append(f"{run}-later")
            server.stop()
        project = Project.open(table.with_suffix(".steer"))
        lost += sum(project.log.batch_of(name) is None for name in saved[before:])
        project.close()
    project = Project.open(table.with_suffix(".steer"))
    lost += sum(project.log.batch_of(name) is None for name in saved)
    project.close()
    print(f"{runs} full disks, {len(saved)} events reported as saved, {lost} of them lost, {refused} refused")
    assert lost == 0
    assert refused


def fill(path: Path, left: int) -> None:
    """Fill the disk up to this many bytes."""
    with open(path, "wb", buffering=0) as ballast:
        while (room := shutil.disk_usage(path.parent).free - left) > 0:
            ballast.write(bytes(min(room, 1 << 16)))


def refit(folder: Path) -> None:
    """Measure the time from one new label to new topics, against the first fit, on Reuters with 90 topics."""
    from corpora import load_reuters

    documents = load_reuters()
    documents = documents.select(i for i, text in enumerate(documents.texts) if len(text) > 250)
    for share in (0.05, 0.2):
        keep = np.random.default_rng(0).random(len(documents)) < share
        labels = [list(names) if k else [] for names, k in zip(documents.labels, keep, strict=True)]
        kept = Documents(list(documents.ids), documents.texts, labels)
        table = folder / f"reuters{share}.parquet"
        pl.DataFrame(
            {"id": kept.ids, "text": kept.texts, "topics": [json.dumps(x) if x else "" for x in labels]}
        ).write_parquet(table)
        server = Server(table)
        person = Person(server.address, "me")
        person.act("settings", values={"refit_after": 0})
        known = {t["name"] for t in person.ask("GET", "/api/state?who=me")["topics"]["known"]}
        for name in documents.topic_names:
            if name not in known:
                person.act("new topic", name=name)
        topics = {t["name"]: t["key"] for t in person.ask("GET", "/api/state?who=me")["topics"]["known"]}
        first = fit(person)
        settled(person)
        seconds = []
        fresh = [i for i in np.flatnonzero(~keep) if documents.labels[i]]
        for i in fresh[:3]:
            for name in documents.labels[i]:
                if name in topics:
                    person.act("label", documents=[int(i)], key=topics[name], state="permitted")
            seconds.append(fit(person))
            worker = person.ask("GET", "/api/state?who=x")["model"]["seconds"]
            print(f"  refit {seconds[-1]:.2f} s, including {worker:.2f} s in the worker")
            settled(person)
        again = float(np.median(seconds))
        print(
            f"{len(documents)} documents, {len(topics)} topics, {keep.sum()} labelled: first fit {first:.1f} s, "
            f"one more label {again:.2f} s, 1/{first / again:.1f}"
        )
        server.stop()


def tree_paths() -> list[str]:
    """Return the paths of 240 leaves below 50 topics below 10 topics."""
    return [f"area {k % 10}/field {k % 50 // 10}/theme {k // 50}" for k in range(240)]


def tree_table(path: Path, n: int = 50_000, labelled: int = 3_000) -> None:
    """Write documents with words of a leaf and of its parent; some have a label, at any of three levels."""
    rng, leaves = np.random.default_rng(0), tree_paths()
    leaf = rng.integers(0, len(leaves), n)
    own = 30_000 + 60 * leaf[:, None] + rng.integers(0, 60, size=(n, 12))
    above = 60_000 + 100 * (leaf % 50)[:, None] + rng.integers(0, 100, size=(n, 8))
    words = np.hstack([rng.zipf(1.3, size=(n, 40)) % 20_000, own, above])
    names = [leaves[k].split("/") for k in leaf]
    labels = ["/".join(name[: rng.integers(1, 4)]) if i < labelled else "" for i, name in enumerate(names)]
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    pl.DataFrame({"id": [f"d{k}" for k in range(n)], "text": texts, "label": labels}).write_parquet(path)


# Seconds from a key to the frame that shows its effect: the first frame after a part of the page has changed.
KEY_TO_PAINT = """(watched) => new Promise((resolve) => {
    let at = null;
    const seen = () => { observer.disconnect(); requestAnimationFrame(() => requestAnimationFrame(
        () => resolve(performance.now() - at))); };
    const observer = new MutationObserver((changes) => {
        const found = (node) => node.nodeType === 1 && (node.matches(watched) || node.querySelector(watched));
        if (at !== null && changes.some((one) => [...one.addedNodes].some(found))) seen();
    });
    observer.observe(document.getElementById("main"), { childList: true, subtree: true });
    window.addEventListener("keydown", (event) => { at ??= event.timeStamp; }, { capture: true, once: true });
})"""
# Keys of one document, and the part of the page that shows their effect.
KEYS = [
    *[(key, "number") for key in ("1", "2", "1")],
    ("Backspace", "level up"),
    ("t", ""),
    *[(key, "search by path") for key in "ar/fi/th"],
    ("Escape", "search by path"),
    ("Enter", "next document"),
]


def tree(folder: Path, runs: int = 20) -> None:
    """Measure 300 topics on three levels over 50,000 documents: fit, first page, and each key in Chromium."""
    table = folder / "tree.parquet"
    tree_table(table)
    server = Server(table, "--path-separator", "/", "--world", "open")
    boss = Person(server.address, "boss")
    boss.act("settings", values={"refit_after": 0})
    known = {topic["name"] for topic in boss.ask("GET", "/api/state?who=boss")["topics"]["known"]}
    for path in tree_paths():
        assert path.rpartition("/")[0] in known
        if path not in known:  # no document has it as a label
            parent = next(
                t["key"]
                for t in boss.ask("GET", "/api/state?who=boss")["topics"]["known"]
                if t["name"] == path.rpartition("/")[0]
            )
            boss.act("new topic", name=path, parent=parent)
    print(f"first fit: {fit(boss, 2.0):.1f} s", flush=True)
    boss.ask("POST", "/api/cancel", {"who": "boss"})  # suggestions and checks take longer than the fit
    settled(boss)
    measure_keys(server, boss, runs)
    print("peak memory: server {:.2f} GB, worker {:.2f} GB".format(*server.memory()))
    server.stop()


def measure_keys(server: Server, boss: Person, runs: int) -> None:
    """Print the time from each key to the frame that shows its effect, in Chromium."""
    begin = time.perf_counter()
    state = boss.ask("GET", "/api/state?who=boss")
    print(f"state of {len(state['topics']['known'])} topics: {1000 * (time.perf_counter() - begin):.0f} ms")
    times: dict[str, list[float]] = {}
    with opened(server) as page:
        page.wait_for_selector("[role=treeitem]")
        for run in range(runs):
            for key, name in KEYS:
                if not name:
                    page.keyboard.press(key)
                    continue
                while page.evaluate("document.querySelector('.pending') !== null"):  # the last label is saved
                    time.sleep(0.01)
                watched = ".doc-id" if name == "next document" else ".choices"
                page.evaluate(f"void (window.painted = ({KEY_TO_PAINT})({json.dumps(watched)}))")
                page.keyboard.press(key)
                milliseconds = page.evaluate("window.painted")
                if run:  # the first document warms up
                    times.setdefault(name, []).append(milliseconds)
    for name, some in times.items():
        p50, p95, worst = np.percentile(some, [50, 95, 100])
        print(f"{name}: {len(some)} keys, median {p50:.0f} ms, 95th percentile {p95:.0f} ms, worst {worst:.0f} ms")


@contextlib.contextmanager
def opened(server: Server) -> Iterator[Any]:
    """A page of the workbench in Chromium, with the access of the other people."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        access, url = access_of(server.address), server.address.partition("?")[0]
        name, _, value = access["cookie"].partition("=")
        context.add_cookies([{"name": name, "value": value, "url": url}])
        page = context.new_page()
        secret = json.dumps(access["x-topicsteer"])
        context.add_init_script(f"localStorage.setItem('topicsteer-secret', {secret})")
        page.goto(url)
        yield page
        browser.close()


# Milliseconds from a key to the frame in which the model gives the labelled topic 100 %.
KEY_TO_MODEL = """(topic) => new Promise((resolve) => {
    let at = null;
    const certain = () => document.querySelector(topic)?.textContent.startsWith("100");
    const observer = new MutationObserver(() => {
        if (at === null || !certain()) return;
        observer.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - at)));
    });
    observer.observe(document.getElementById("main"), { childList: true, subtree: true });
    window.addEventListener("keydown", (event) => { at ??= event.timeStamp; }, { capture: true, once: true });
})"""


def live(folder: Path, runs: int = 20, rows: int = 10_000, n_topics: int = 60) -> None:
    """Measure a label to new likely topics on the page, with 500 labels; and answers to another person meanwhile."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, n_topics, rows)
    own = 20_000 + 300 * topic[:, None] + rng.integers(0, 300, size=(rows, 15))
    words = np.hstack([rng.zipf(1.3, size=(rows, 60)) % 20_000, own])
    labels = [f"topic {k}" if i < 250 else "" for i, k in enumerate(topic.tolist())]
    table = folder / "live.parquet"
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    pl.DataFrame({"id": [f"d{k}" for k in range(rows)], "text": texts, "label": labels}).write_parquet(table)
    server = Server(table)
    boss = Person(server.address, "boss")
    boss.act("settings", values={"refit_after": 0})
    keys = {t["name"]: t["key"] for t in boss.ask("GET", "/api/state?who=boss")["topics"]["known"]}
    for k in range(n_topics):
        if f"topic {k}" not in keys:
            boss.act("new topic", name=f"topic {k}")
    keys = {t["name"]: t["key"] for t in boss.ask("GET", "/api/state?who=boss")["topics"]["known"]}
    print(f"first fit of {rows:,} documents: {fit(boss):.1f} s", flush=True)
    settled(boss)
    for row in range(250, 500):
        boss.act("label", documents=[row], key=keys[f"topic {topic[row]}"], state="permitted")
    others, stop, times = list[float](), threading.Event(), list[float]()

    def ask() -> None:
        person = Person(server.address, "other")
        while not stop.wait(0.1):
            begin = time.perf_counter()
            person.ask("GET", "/api/documents?who=other")
            others.append(1000 * (time.perf_counter() - begin))

    reader = threading.Thread(target=ask)
    reader.start()
    with opened(server) as page:
        page.wait_for_selector(".choice")
        key = page.get_attribute("[data-topic]", "data-topic")
        for run in range(runs + 1):
            page.evaluate(f"void (window.painted = ({KEY_TO_MODEL})('[data-topic=\"{key}\"] .value'))")
            page.keyboard.press("1")
            milliseconds = page.evaluate("window.painted")
            times += [milliseconds] if run else []  # the first document warms up
            page.wait_for_timeout(500)  # a person reads
            before = page.inner_text(".doc-id")
            page.keyboard.press("Enter")
            while page.inner_text(".doc-id") == before:
                page.wait_for_timeout(20)
            page.wait_for_timeout(200)
    stop.set()
    reader.join()
    for name, some in (("label to likely topics", times), ("pages of another person meanwhile", others)):
        p50, p95, worst = np.percentile(some, [50, 95, 100])
        print(f"{name}: {len(some)}, median {p50:.0f} ms, 95th percentile {p95:.0f} ms, worst {worst:.0f} ms")
    server.stop()


if __name__ == "__main__":
    parts = {"large": large, "kill": kill, "full": full, "refit": refit, "tree": tree, "live": live}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    if not {*given.parts} <= {*parts}:
        parser.error(f"the parts are {', '.join(parts)}")
    for name in given.parts or parts:
        with tempfile.TemporaryDirectory() as folder:
            options = {"runs": given.runs} if name in ("kill", "full", "tree", "live") else {}
            options |= {"rows": given.rows} if name == "live" else {}
            parts[name](Path(folder), **options)
