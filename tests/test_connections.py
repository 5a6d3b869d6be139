"""No part of the package opens a connection to another machine."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# Every Python process of the test writes its connections and its questions for addresses into a file.
HOOK = """
import os, sys

def noted(event, values):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        with open(os.environ["CONNECTIONS"], "a") as file:
            print(event, values[1:], file=file)

sys.addaudithook(noted)
"""

WORK = """
import sys, time
from pathlib import Path

from topicsteer import TopicModel
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.corpora import Documents

texts = ["tea leaves in a pot", "beans roast in a mug"] * 12
labels = [["tea"], ["coffee"]] * 6 + [[]] * 12
path = Path(sys.argv[1]) / "p.steer"
Workbench.make(path, Documents(list(range(24)), texts, labels))
workbench = Workbench(path)
workbench.fit()
end = time.monotonic() + 200
while workbench.views.fitted is None or workbench.status.state != "idle":
    assert time.monotonic() < end and not workbench.status.error, workbench.status
    time.sleep(0.05)
workbench.exporter.export("report")
workbench.close()
"""


def test_no_connection_is_opened(tmp_path):
    pytest.importorskip("msgspec")
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    rows = [f"{k},tea leaves {k},{'tea' * (k % 2)}" for k in range(24)]
    (tmp_path / "t.csv").write_text("\n".join(["id,text,label", *rows]))
    noted = tmp_path / "connections"
    paths = os.pathsep.join([str(tmp_path / "hook"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "CONNECTIONS": str(noted)}

    def run(*command):
        subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, check=True, capture_output=True)

    run("-m", "topicsteer", "fit", "t.csv", "--out", "model", "--report", "report.html")
    run("-c", WORK, tmp_path)
    assert not noted.exists() or noted.read_text() == ""
    control = "import socket; s = socket.socket(); s.settimeout(1); s.connect_ex(('127.0.0.1', 9))"
    run("-c", control)
    assert "127.0.0.1" in noted.read_text()  # the hook works
