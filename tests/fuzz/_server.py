"""A workbench in a process of its own on 127.0.0.1, for attacks on its port; it ends with the context."""

import http.client
import json
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.fuzz._rounds import ROOT

TEXTS = ["tea leaves in a pot", "roasted beans in a mug", "a train on its track"] * 20


class Server:
    """Port, secret and log of a running workbench."""

    def __init__(self, process, address, log):
        self.process, self.log = process, log
        self.port = urlsplit(address).port
        with urllib.request.urlopen(address) as answer:
            self.secret = answer.headers["x-topicsteer"]
            self.cookie = answer.headers["set-cookie"].split(";")[0]
        origin = f"http://127.0.0.1:{self.port}"
        self.headers = {"cookie": self.cookie, "x-topicsteer": self.secret, "origin": origin}

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def label(self, connection, row, request):
        """Label a document as a person with the secret does; return the status."""
        body = {"who": "ann", "action": "label", "documents": [row], "key": 1, "state": "permitted", "request": request}
        connection.request("POST", "/api/act", body=json.dumps(body), headers=self.headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


@contextmanager
def running(folder: Path):
    """Start a workbench with one topic; stop it at the end."""
    table = folder / "table.csv"
    table.write_text("id,text\n" + "".join(f"d{i},{text}\n" for i, text in enumerate(TEXTS)))
    log = folder / "log.txt"
    command = [sys.executable, "-m", "topicsteer", "label", table, "--no-browser", "--port", "0"]
    with open(log, "w") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            address = process.stdout.readline().strip()
            assert re.match(r"http://127\.0\.0\.1:\d+/", address), log.read_text()
            server = Server(process, address, log)
            connection = server.connect()
            body = {"who": "ann", "action": "new topic", "name": "tea"}
            connection.request("POST", "/api/act", body=json.dumps(body), headers=server.headers)
            assert connection.getresponse().status == 200
            connection.close()
            yield server
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
            process.stdout.close()
