"""The worker in this process, where coverage sees it, and the process around it."""

import io
import os
import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("msgspec")

from topicsteer import TopicModel
from topicsteer.app.workbench import fit_process as messages
from topicsteer.app.workbench.current_model import CurrentModel, ModelRecord
from topicsteer.app.workbench.fit_process import FitProcess
from topicsteer.app.workbench.project import Project
from topicsteer.app.workbench.worker import Worker
from topicsteer.corpora import Documents
from topicsteer.labels.codebook import Codebook, Topic

WORDS = {"tea": "green leaf cup pot steam", "coffee": "bean roast cup grind dark", "rain": "cloud storm wind wet grey"}
BOOK = Codebook((Topic(7, "tea"), Topic(3, "coffee"))).to_json()
LABELS = {row: [("tea", "coffee")[row % 3]] for row in range(24) if row % 3 < 2}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    rng = np.random.default_rng(0)
    names = list(WORDS)
    texts = [" ".join(rng.choice(WORDS[names[k % 3]].split(), 8)) + f" number{k % 7}" for k in range(60)]
    path = tmp_path_factory.mktemp("worker") / "drinks.steer"
    Project.create(path, Documents([f"d{k}" for k in range(60)], texts))
    return path


def order(project, folder, labels=LABELS, **more):
    values = {"topics": BOOK, "forbidden": {}, "complete": True, "free": 2} | more
    return messages.FitOrder(project=str(project), folder=str(folder), labels=labels, **values)


def reports(worker):
    """The reports of a worker since the last call."""
    lines = worker.out.getvalue().splitlines()
    worker.out.seek(0)
    worker.out.truncate()
    return [messages.read_report(line) for line in lines]


def kinds(found):
    return [type(report).__name__ for report in found if not isinstance(report, messages.Progressed)]


@pytest.fixture(scope="module")
def fitted(project, tmp_path_factory):
    """A worker after its first fit, the folder of the model, and the reports."""
    folder = tmp_path_factory.mktemp("model")
    worker = Worker(io.StringIO())
    wrong = LABELS | {5: ["tea"]}  # a document about rain
    worker.work(order(project, folder, wrong))
    return worker, folder, reports(worker)


def test_a_fit_is_saved_and_reported_in_order(fitted):
    worker, folder, found = fitted
    assert kinds(found) == ["Finished", "Learnt", "Learnt", "Rested"]
    stages = [report.stage for report in found if isinstance(report, messages.Progressed)]
    assert stages[0] == "read"
    assert list(dict.fromkeys(stages))[-2:] == ["advise", "shares"]
    finished = next(report for report in found if isinstance(report, messages.Finished))
    assert finished.folder == str(folder)
    saved = TopicModel.load(folder)
    assert saved.codebook.keys == (7, 3)
    np.testing.assert_array_equal(saved.state_.known_memberships, worker.model.state_.known_memberships)


def test_suggestions_are_unlabelled_documents_and_checks_have_keys(fitted):
    _, folder, found = fitted
    suggested = CurrentModel(folder, ModelRecord([7, 3])).suggest()
    rows = [suggestion.row for suggestion in suggested]
    assert 0 < len(set(rows)) == len(rows)
    assert not set(rows) & {*LABELS, 5}
    assert all(suggestion.why for suggestion in suggested)
    check = next(report for report in found if isinstance(report, messages.Learnt)).checks[0]
    assert (check.row, check.topic, check.given) == (5, 7, "permitted")
    assert check.probability < 0.5


def test_the_next_fit_continues_the_last(fitted, project, tmp_path, monkeypatch):
    worker, _, _ = fitted
    before, after, fit = worker.model, [], TopicModel.fit
    monkeypatch.setattr(TopicModel, "fit", lambda *args, **more: after.append(more["after"]) or fit(*args, **more))
    worker.work(order(project, tmp_path))
    assert "Finished" in kinds(reports(worker))
    assert after == [before]


def test_a_new_process_continues_a_saved_model(fitted, project, tmp_path):
    _, folder, _ = fitted
    worker = Worker(io.StringIO())
    swapped = Codebook((Topic(3, "coffee"), Topic(7, "tea"))).to_json()
    worker.work(order(project, tmp_path, topics=swapped, previous=str(folder)))
    tea = worker.model.state_.known_memberships[30, worker.model.codebook.keys.index(7)]
    assert tea > 0.5


def test_without_labels_there_is_nothing_to_suggest_or_evaluate(project, tmp_path):
    worker = Worker(io.StringIO())
    worker.work(order(project, tmp_path, {}, topics=[]))
    found = reports(worker)
    assert kinds(found) == ["Finished", "Learnt", "Rested"]
    suggested = next(report for report in found if isinstance(report, messages.Learnt))
    assert suggested.given() == {}


def test_a_waiting_order_comes_before_suggestions(project, tmp_path):
    worker = Worker(io.StringIO())
    worker.orders.put(order(project, tmp_path))
    worker.work(order(project, tmp_path))
    assert kinds(reports(worker)) == ["Finished", "Rested"]


def test_the_shares_end_when_the_next_order_arrives(project, tmp_path):
    class Output(io.StringIO):
        def write(self, text):
            if '"stage":"shares"' in text:
                worker.orders.put(None)
            return super().write(text)

    worker = Worker(Output())
    worker.work(order(project, tmp_path))
    assert kinds(reports(worker)) == ["Finished", "Learnt", "Rested"]


def test_an_error_is_reported_and_the_last_model_stays(fitted, project, tmp_path):
    worker, _, _ = fitted
    before = worker.model
    worker.work(order(project, tmp_path / "missing" / "folder" / "\0"))
    (failed,) = (report for report in reports(worker) if not isinstance(report, messages.Progressed))
    assert "null" in failed.message
    assert worker.model is before


def test_progress_is_reported_at_each_stage_but_not_too_often():
    worker = Worker(io.StringIO())
    for done in range(50):
        worker.progress("fit", done, 50, "")
    worker.progress("guide", 0, None, "")
    found = reports(worker)
    assert found[0] == messages.Progressed("fit", 0, 50, "")
    assert found[-1] == messages.Progressed("guide", 0, None, "")
    assert len(found) < 10


def test_orders_are_read_until_the_input_ends(project, tmp_path):
    worker = Worker(io.StringIO())
    first = order(project, tmp_path, {3: ["tea"]})
    worker.read_orders([messages.line(first)])
    assert worker.orders.get() == first
    assert worker.orders.get() is None


def test_a_worker_fits_or_lays_out_on_each_order_and_ends_with_its_input(monkeypatch, project, tmp_path):
    worker, works = Worker(io.StringIO()), []
    monkeypatch.setattr(worker, "work", works.append)
    first = order(project, tmp_path)
    second = messages.MapOrder(str(project), [0, 1])
    for one in (first, second, None):
        worker.orders.put(one)
    worker.run()
    assert works == [first, second]


# --- the process ---


class Inbox:
    """Reports of a process, as they come."""

    def __init__(self):
        self.found = []

    def __call__(self, report):
        self.found.append(report)

    def wait(self, kind, seconds=90):
        end = time.monotonic() + seconds
        while not any(isinstance(report, kind) for report in self.found):
            assert time.monotonic() < end, f"no {kind.__name__} among {kinds(self.found)}"
            time.sleep(0.02)


@pytest.fixture
def process():
    inbox = Inbox()
    process = FitProcess(inbox)
    yield process, inbox
    process.close()


@pytest.mark.slow
def test_a_killed_process_is_reported_and_replaced(process, project, tmp_path):
    process, inbox = process
    assert process.start(order(project, tmp_path))
    assert not process.start(order(project, tmp_path))  # one at a time
    os.kill(process.process.pid, signal.SIGKILL)
    inbox.wait(messages.Ended)
    assert inbox.found[-1] == messages.Ended(-9)
    assert not process.busy
    assert process.start(order(project, tmp_path))
    inbox.wait(messages.Finished)
    inbox.wait(messages.Rested)


@pytest.mark.slow
def test_a_cancelled_process_is_killed_and_replaced(process, project, tmp_path):
    process, inbox = process
    assert not process.cancel()  # nothing runs yet
    assert process.start(order(project, tmp_path))
    inbox.wait(messages.Progressed)
    first = process.process
    os.kill(first.pid, signal.SIGSTOP)  # also one that does not answer
    assert process.cancel()
    assert first.wait(10) == -signal.SIGKILL
    assert not process.busy
    assert process.start(order(project, tmp_path))
    inbox.wait(messages.Finished)
    inbox.wait(messages.Rested)
    assert "Ended" not in kinds(inbox.found)


@pytest.mark.slow
def test_a_process_ends_with_its_input(process, project, tmp_path):
    process, inbox = process
    assert process.start(order(project, tmp_path))
    inbox.wait(messages.Rested)
    process.busy = False
    process.process.stdin.close()
    assert process.process.wait(10) == 0
    process.thread.join(10)
    assert not process.thread.is_alive()
    assert "Ended" not in kinds(inbox.found)  # no fit was running


@pytest.mark.slow
def test_reports_come_from_one_thread(process, project, tmp_path):
    process, _ = process
    threads = set()
    done = threading.Event()

    def on_message(report):
        threads.add(threading.current_thread())
        if isinstance(report, messages.Finished):
            done.set()

    process.on_message = on_message
    process.start(order(project, tmp_path, {}, topics=[]))
    assert done.wait(90)
    assert threads == {process.thread}


def test_a_fit_from_keywords_alone(project, tmp_path):
    words = {"tea": ["leaf", "cup"], "coffee": ["bean"]}
    book = Codebook.of_names(["tea", "coffee"], keywords=words).to_json()
    worker = Worker(io.StringIO())
    worker.work(order(project, tmp_path, {}, topics=book))
    found = worker.model.predict(["leaf pot", "bean roast"])
    assert found == [["tea"], ["coffee"]]
