"""The process that fits: ``python -m topicsteer.app.workbench.worker``, told what to do in lines of JSON.

It lives as long as its workbench and keeps the matrix, the latent semantics and the last model, so that a fit after a
few more labels costs only what the labels change. It ends when its input does.
"""

import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from topicsteer.analysis.evaluate import hidden_label_scores
from topicsteer.app.workbench.log import FORBIDDEN, PERMITTED
from topicsteer.app.workbench.project import read_documents
from topicsteer.corpora import Documents
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.folds import assign_folds
from topicsteer.labels.supervision import Supervision
from topicsteer.metrics import average_precision
from topicsteer.model.topic_model import TopicModel

SUGGESTIONS, CHECKS = 100, 300
FEWEST = 12  # labelled documents with which labels are hidden and found again
FOLDS = 3
EVERY = 0.1  # seconds between two words on progress


class Cancelled(Exception):
    """The person does not want to wait for this fit."""


class Superseded(Exception):
    """Somebody waits for the next fit, so this one is not judged."""


class Worker:
    """What is kept from fit to fit."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.cancelled = threading.Event()
        self.orders: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.documents: Documents | None = None
        self.model: TopicModel | None = None
        self._last, self._stage = 0.0, ""

    def say(self, at: str, **more: object) -> None:
        """A line to the workbench."""
        self.out.write(json.dumps({"at": at} | more) + "\n")
        self.out.flush()

    def progress(self, stage: str, done: int, total: int | None, detail: str) -> None:
        """Where the fit is, not too often; here it also ends if it is to."""
        if self.cancelled.is_set():
            raise Cancelled
        now = time.monotonic()
        if now - self._last >= EVERY or stage != self._stage:
            self._last, self._stage = now, stage
            self.say("progress", stage=stage, done=done, total=total, detail=detail)

    def run(self, order: Mapping[str, Any]) -> None:
        """One fit, from the order to the saved model; what goes wrong is said."""
        begin = time.monotonic()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = self._fit(order)
                model.save(order["folder"])
                known = {
                    "seconds": time.monotonic() - begin,
                    "warm": self.model is not None,
                    "notes": [str(w.message) for w in caught if issubclass(w.category, UserWarning)][:8],
                    "objective": [float(v) for v in model.estimator_.objective_history_],
                }
            self.model = model
            self.say("fitted", folder=order["folder"], known=known)
            self._advise(model)
            self._judge(model)
            self.say("rest")
        except Cancelled:
            self.say("cancelled")
        except Exception as error:  # whatever it is, the person is told and the last good model stays
            self.say("failed", message=f"{error}" or type(error).__name__, kind=type(error).__name__)

    def _fit(self, order: Mapping[str, Any]) -> TopicModel:
        self.progress("read", 0, None, "")
        if self.documents is None:
            self.documents = read_documents(Path(order["project"]))
        n = len(self.documents)
        labels, forbidden = ([order[name].get(str(row), []) for row in range(n)] for name in ("labels", "forbidden"))
        documents = Documents(self.documents.ids, self.documents.texts, labels, forbidden=forbidden)
        if self.model is None and order["previous"]:
            self.model = TopicModel.load(order["previous"]).with_keys(order["keys"])
        free = min(int(order["free"]), max(n // 4, 1))
        model = TopicModel(free, topics=Codebook.from_json(order["topics"]), complete=order["complete"])
        return model.fit(documents, after=self.model, progress=self.progress)

    def _advise(self, model: TopicModel) -> None:
        """What to label next and what to look at again; said after the model is in use."""
        if not self.orders.empty():  # somebody waits for the next fit: its advice will be better
            return
        self.progress("advise", 0, None, "")
        if model.guide_ is None:
            self.say("advised", known={"suggestions": [], "checks": []})
            return
        self.say("advised", known={"suggestions": suggestions(model, SUGGESTIONS), "checks": checks(model, CHECKS)})
        if self.orders.empty() and not model.supervision_.labelled.all():
            self.say("advised", known={"outlook": model.stopping_advice().sentence})

    def _judge(self, model: TopicModel) -> None:
        """How well hidden labels are found again, for the learning curve; said after the model is in use."""
        truth = model.supervision_.indicator()
        if model.guide_ is None or model.matrix_ is None or int((np.diff(truth.indptr) > 0).sum()) < FEWEST:
            return
        part, training = assign_folds(truth, FOLDS, 0), model.training_rows

        def score(left: Supervision, rows: NDArray[np.integer]) -> list[NDArray[np.float32]]:
            if not self.orders.empty():
                raise Superseded
            self.progress("check", int(part[rows[0]]), FOLDS, "")
            learnt = model.relearn(left)
            shape = (len(rows), truth.shape[1])
            return [np.zeros(shape, np.float32) if learnt is None else learnt.probabilities(training.take(rows))]

        try:
            belongs = hidden_label_scores(model.supervision_, part, score)
        except Superseded:
            return
        if not belongs:
            return
        rows = part >= 0
        found = average_precision(truth[rows].toarray(), belongs[0])
        judged = np.asarray(truth[rows].sum(axis=0)).ravel() > 0
        means = {"micro": float(found.micro), "macro": float(np.mean(found.topics[judged]))}
        counts = {"documents": int((np.diff(truth.indptr) > 0).sum()), "topics": int(judged.sum())}
        self.say("judged", known={"judged": means | counts})


def suggestions(model: TopicModel, n: int) -> list[dict[str, Any]]:
    """Which documents to label next, most useful first: row and reason."""
    table = model.suggest(n)
    place = {name: row for row, name in enumerate(model.result_.ids)}
    return [{"row": place[i], "why": str(why)} for i, why in zip(table["id"], table["why"], strict=True)]


def checks(model: TopicModel, n: int) -> list[dict[str, Any]]:
    """Labels that look wrong, strongest first, with the keys of their topics."""
    keys, found = model.codebook.keys, []
    for doubt in model.doubts():
        p = doubt.probability
        if p < 0.5 if doubt.given == PERMITTED else p > 0.5 and doubt.given == FORBIDDEN:
            rival = None if doubt.rival is None else keys[doubt.rival]
            found.append(asdict(replace(doubt, topic=keys[doubt.topic], rival=rival, why="")))
    return found[:n]


def _listen(worker: Worker, lines: TextIO) -> None:
    """Take orders as they come, in a thread, so that a fit can be cancelled; end all when nobody is there."""
    try:
        for line in lines:
            order = json.loads(line)
            if order["do"] == "cancel":
                worker.cancelled.set()
            else:
                worker.cancelled.clear()
                worker.orders.put(order)
    finally:
        os._exit(0)


def main() -> None:
    """Listen and fit. Whatever a library prints goes to standard error: standard output is for the workbench."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(10)  # who labels comes first
    worker = Worker(out)
    worker.say("ready")
    threading.Thread(target=_listen, args=(worker, sys.stdin), daemon=True).start()
    while True:
        worker.run(worker.orders.get())


if __name__ == "__main__":
    main()
