"""Temporary files of a workbench that was killed."""

import http.client
import os
import subprocess
import sys
import urllib.request
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


# A workbench whose imports take long.
SLOW = """
import sys, time
from topicsteer.app.workbench.workbench import Workbench
from topicsteer.cli import commands

def import_labels(*_):
    print("importing", flush=True)
    time.sleep(100)

Workbench.import_labels = import_labels
sys.argv = ["topicsteer", "label", sys.argv[1], "--port", "0"]
commands.main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="locks of Unix")
def test_the_upload_and_the_opened_page_of_a_killed_workbench_are_swept(tmp_path):
    table, temporary = tmp_path / "t.csv", tmp_path / "temporary"
    table.write_text("id,text\n" + "".join(f"d{i},tea leaves {i}\n" for i in range(20)))
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary), "BROWSER": "true"}
    command = [sys.executable, "-c", SLOW, table]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        address = server.stdout.readline().strip()
        with urllib.request.urlopen(address) as answer:
            headers = {"x-topicsteer": answer.headers["x-topicsteer"]}
            headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        headers["origin"] = f"http://{urlsplit(address).netloc}"
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=60)
        connection.request("POST", "/api/import?who=ann&name=labels.csv", body=b"id,label\nd1,tea\n", headers=headers)
        assert server.stdout.readline() == "importing\n"
        server.kill()
        connection.close()
    assert {path.name for path in temporary.rglob("*.*")} >= {"labels.csv", "open.html"}
    for path in temporary.rglob("*"):
        os.utime(path, (0, 0))  # young ones stay
    sweep = "from topicsteer.system.files import Scratch; Scratch().remove()"
    subprocess.run([sys.executable, "-c", sweep], env=environment, check=True)
    assert os.listdir(temporary) == []
