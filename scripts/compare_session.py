"""A label session for `compare_commits.py`: 200 actions of two people on the workbench, over HTTP like its page.

A seeded generator chooses the actions. It uses the command `label`, the addresses of the page and their JSON, and
nothing inside the package.
"""

import http.client
import json
import random
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from urllib.parse import urlencode, urlsplit

# Actions of a session, and the actions after which the model is fitted.
ACTIONS, FITS = 200, (60, 110, 160, 199)
# Seconds until a fit must be done.
PATIENCE = 180
PEOPLE = ("ann", "bob")
EXPORTS = (
    "labels", "labels-excel", "labels-by-person", "labels-by-person-excel", "jsonl", "label-studio",
    "label-studio-config", "agreement", "agreement-excel", "log", "log-excel", "memberships", "memberships-excel",
    "model", "report", "workbook", "codebook", "codebook-refi-qda", "methods",
)  # fmt: skip
FILTERS = ("labelled", "unlabelled", "strong", "uncertain", "disagreement", "settled", "skipped", "later", "notes")
MODES = ("suggested", "check", "question", "later")
# Weights of actions that the generator draws.
WEIGHTS = {
    "label": 60, "answer": 8, "none": 6, "skip": 3, "later": 3, "note": 4, "undo": 9, "redo": 2, "settle": 4,
    "rename": 4, "words": 3, "merge topics": 2, "delete topic": 1, "order topics": 1, "new topic": 3,
}  # fmt: skip
# Actions at these numbers, so that each kind occurs.
FIXED = {8: "rename", 90: "undo", 100: "merge topics", 145: "order topics", 150: "delete topic"}
FIXED |= dict.fromkeys((*range(21, 26), *range(165, 169)), "label")
# The label that a planted session gives differently.
PLANTED = 166


def program(checkout):
    """Return the command that runs the command line of a checkout."""
    script = tomllib.loads((Path(checkout) / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]["topicsteer"]
    module, function = script.split(":")
    code = f"import sys; sys.argv[0] = 'topicsteer'; from {module} import {function}; {function}()"
    return [sys.executable, "-c", code]


class Page:
    """A browser page of a running workbench."""

    def __init__(self, checkout, table, project):
        words = ["label", str(table), "--project", str(project), "--port", "0", "--no-browser"]
        self.errors = open(f"{project}.txt", "a+", encoding="utf-8")  # noqa: SIM115
        command = [*program(checkout), *words]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=table.parent)
        address = urlsplit(self.server.stdout.readline().strip())
        if not address.netloc:
            self.errors.seek(0)
            raise RuntimeError(f"The workbench did not start: {self.errors.read()}")
        self.host = address.netloc
        self.headers = {"origin": f"http://{self.host}"}
        _, headers, body = self.request("GET", f"/?{address.query}")
        secret = re.search(r'name="topicsteer-secret" content="(.*?)"', body.decode("utf-8"))[1]
        self.headers |= {"cookie": headers["set-cookie"].partition(";")[0], "x-topicsteer": secret}

    def request(self, method, path, body=None):
        """Send a request; return status, headers and body."""
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        connection.request(method, path, body=body, headers=self.headers)
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def get(self, path, who="ann", **values):
        """Return the answer to a query."""
        return json.loads(self.request("GET", f"{path}?{urlencode({'who': who, **values})}")[2])

    def post(self, path, message):
        """Return status and answer to a message."""
        status, _, body = self.request("POST", path, json.dumps(message).encode())
        return status, json.loads(body)

    def upload(self, path, data, **values):
        """Return status and answer to a file."""
        status, _, body = self.request("POST", f"{path}?{urlencode(values)}", data.encode())
        return status, json.loads(body)

    def rest(self):
        """Wait until no fit is running, twice in a row: an edit rests for a moment before its checks."""
        end, calm = time.monotonic() + PATIENCE, 0
        while calm < 4:
            status = self.get("/api/state")["fit"]
            calm = calm + 1 if status["state"] == "idle" and not status.get("queued") else 0
            if time.monotonic() > end:
                raise TimeoutError(f"The fit takes too long: {status}")
            time.sleep(0.25)

    def close(self):
        """End the workbench."""
        self.server.terminate()
        self.server.wait(30)
        self.server.stdout.close()
        self.errors.close()


class Generator:
    """Chooses actions from a seed, the true labels and the topics of the workbench."""

    def __init__(self, page, ids, truth, *, tree, planted):
        self.page, self.ids, self.truth, self.tree, self.planted = page, ids, truth, tree, planted
        self.random = random.Random(11)
        names = sorted({name for own in truth for name in own})
        self.first, self.imported = names[:5], names[5:9]
        # Key of the topic of each true label, whatever its name is now.
        self.key_of = {}
        self.recent = []

    def topics(self):
        """Return the known topics, and remember the keys of true labels."""
        known = self.page.get("/api/state")["topics"]["known"]
        for topic in known:
            self.key_of.setdefault(topic["name"], topic["key"])
        return known

    def action(self, number):
        """Return address and message of an action; a file has its text and its name in the message."""
        draw, who = self.random, PEOPLE[self.random.random() < 0.4]
        if number == 0:
            return "/api/act", {"who": who, "action": "settings", "values": {"refit_after": 0}}
        if number <= len(self.first):
            return "/api/act", {"who": who, "action": "new topic", "name": self.first[number - 1]}
        if number == 20:
            rows = draw.sample(range(len(self.ids)), 200)
            rows = rows[:-20] if self.planted else rows
            given = [(self.ids[row], [name for name in self.truth[row] if name in self.imported]) for row in rows]
            lines = [f"{name},{'|'.join(own)}" for name, own in given if own]
            return "/api/import", {"who": who, "name": "labels.csv", "data": "\n".join(["id,labels", *lines, ""])}
        if number == 40:
            text = f"topic,description,keywords\nextra,Extra things.,array|matrix\n{self.first[0]},The first.,value\n"
            return "/api/topics", {"who": who, "name": "topics.csv", "data": text}
        if number == 62:
            free = [topic["key"] for topic in self.page.get("/api/state")["topics"]["free"]]
            if free:
                return "/api/adopt", {"who": who, "source": free[0], "name": "adopted"}
        if number == 130:  # a request that is repeated acts once
            return "/api/act", self.recent[-1]
        kind = draw.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if self.recent and self.recent[-1]["action"] == "undo" and draw.random() < 0.4:
            kind, who = "redo", self.recent[-1]["who"]
        if self.tree and number % 25 == 15:
            kind = "move topic"
        kind = FIXED.get(number, kind)
        message = self.message(kind, number)
        if self.planted and number == PLANTED:
            message["state"] = "forbidden" if message["state"] == "permitted" else "permitted"
        self.recent.append({"who": who, "request": f"r{number}", **message})
        return "/api/act", self.recent[-1]

    def message(self, kind, number):
        """Return a drawn action."""
        draw, known = self.random, self.topics()
        keys = [topic["key"] for topic in known]
        key, row = draw.choice(keys), draw.randrange(len(self.ids))
        own = [self.key_of[name] for name in self.truth[row] if self.key_of.get(name) in keys]
        rows = draw.sample(range(len(self.ids)), 3)
        match kind:
            case "label" if own and draw.random() < 0.85:
                same = [k for k in rows if set(self.truth[k]) & set(self.truth[row])]
                return {"action": "label", "documents": [row, *same], "key": own[0], "state": "permitted"}
            case "label":
                states = ["permitted", "forbidden", "forbidden", "cleared", *["rest"] * self.tree]
                return {"action": "label", "documents": rows[:2], "key": key, "state": draw.choice(states)}
            case "answer":
                state = "permitted" if key in own else "forbidden"
                return {"action": "answer", "document": row, "key": key, "state": state}
            case "none" | "skip" | "later":
                return {"action": kind, "documents": rows[:2]}
            case "note":
                return {"action": "note", "document": row, "text": f'Note {number}; with a quote " and an umlaut ä'}
            case "settle":
                differing = self.page.get("/api/disagreements")["disagreements"]
                if differing:
                    one = draw.choice(differing)
                    row = self.ids.index(one["id"])
                    return {"action": "settle", "document": row, "key": one["key"], "state": "permitted"}
                return {"action": "label", "documents": rows, "key": key, "state": "permitted"}
            case "rename":
                name = f"name {number}{', planted' * self.planted}"
                return {"action": "change topic", "key": key, "name": name}
            case "words":
                text = f"Description {number}."
                return {"action": "change topic", "key": key, "description": text, "keywords": ["array", "file"]}
            case "merge topics":
                return {"action": kind, "keys": [key, keys[0]] if key != keys[0] else keys[:2], "into": keys[0]}
            case "delete topic":
                return {"action": kind, "key": keys[-1]}
            case "order topics":
                return {"action": kind, "keys": keys[::-1]}
            case "new topic":
                return {"action": kind, "name": f"topic {number}", "documents": rows[:1]}
            case "move topic":
                top = [topic["key"] for topic in known if topic["parent"] is None and topic["key"] != key]
                return {"action": kind, "key": key, "parent": draw.choice(top) if top else None}
            case _:
                return {"action": kind}


def run_session(side, kind, table, truth, tree):
    """Run a session on a table, and keep requests, answers, pages and exports of a side."""
    values, project = side.values, table.parent / "project.steer"
    ids = [f"d{row}" for row in range(len(truth))]
    page = Page(side.checkout, table, project)
    try:
        generator, requests, answers = Generator(page, ids, truth, tree=tree, planted=side.planted), [], []
        for number in range(ACTIONS):
            address, message = generator.action(number)
            requests.append([number, address, message])
            if "data" in message:
                data = message["data"]
                status, answer = page.upload(address, data, who=message["who"], name=message["name"])
            else:
                status, answer = page.post(address, message)
            answers.append({"status": status, "answer": answer})
            if address == "/api/adopt":
                page.rest()
            if number in FITS:
                page.post("/api/fit", {"who": "ann"})
                page.rest()
                values.json(f"{kind}/state after {number}", page.get("/api/state"))
        values.items(f"{kind}/requests", requests)
        values.json(f"{kind}/answers", answers)
        lines = [f"d{row},{(own or ['extra'])[0]}" for row, own in enumerate(truth) if row % 3]
        coder = "\n".join(["id,labels", *lines, ""])
        values.items(f"{kind}/coder", page.upload("/api/coders", coder, who="ann", coder="gpt", name="answers.csv"))
        keep_pages(page, values, kind)
        for export in EXPORTS:
            keep_export(page, side, f"{kind}/export {export}", export)
    finally:
        page.close()
    page = Page(side.checkout, table, project)
    try:
        values.json(f"{kind}/reopened", page.get("/api/state"))
    finally:
        page.close()


def keep_pages(page, values, kind):
    """Keep the answers to the queries of all pages."""
    for path in ("state", "progress", "disagreements", "coders"):
        values.json(f"{kind}/page {path}", page.get(f"/api/{path}"))
    values.json(f"{kind}/page agreement", page.get("/api/agreement", first="ann", second="bob"))
    values.json(f"{kind}/page groups", page.get("/api/groups", column="group"))
    for one in FILTERS:
        values.json(f"{kind}/page documents {one}", page.get("/api/documents", filter=one, all_rows="true"))
    for sort in ("order", "strength", "uncertainty", "recent"):
        values.json(f"{kind}/page documents by {sort}", page.get("/api/documents", sort=sort))
    for mode in MODES:
        values.json(f"{kind}/page next {mode}", page.get("/api/next", mode=mode))
    for row in (0, 7, 77):
        values.json(f"{kind}/page document {row}", page.get(f"/api/documents/{row}"))


def keep_export(page, side, key, export):
    """Keep one export; an export that this version does not have is gone."""
    status, answer = page.post("/api/export", {"who": "ann", "kind": export})
    if status != 200:
        side.values.gone[key] = f"{status}: {answer.get('error', '')}"
        return
    status, _, data = page.request("GET", f"/exports/{answer['name']}")
    if status != 200:
        raise RuntimeError(f"{answer['name']} cannot be downloaded: status {status}")
    side.values.text(f"{key}/note", f"{answer['name']}\n{answer['note']}")
    if answer["name"].endswith(".zip"):
        side.keep_archive(key, data)
    else:
        side.values.file(key, answer["name"], data)
