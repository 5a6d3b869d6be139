"""The process that fits: ``python -m topicsteer.app.workbench.worker`` reads orders and writes reports, one per line.

It runs as long as its workbench. It keeps the documents and the last model. A fit reuses its vocabulary and latent
semantics, which do not depend on labels, so the result is that of a fit from scratch. It ends with its input.

A second one lays out the document map. The places depend on the texts only, so points do not move when labels change.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

import numpy as np

from topicsteer.analysis import map_layout as maps
from topicsteer.analysis.documents_to_label import Doubt
from topicsteer.analysis.groups import Groups
from topicsteer.app.workbench import fit_process as messages
from topicsteer.app.workbench.current_model import EVERYTHING, FEATURES, column_keys
from topicsteer.app.workbench.fit_process import AnyReport, FitOrder, MapOrder, Order
from topicsteer.app.workbench.map_view import stored_layout
from topicsteer.app.workbench.progress_view import plain_shares
from topicsteer.app.workbench.project import State, read_documents, stored_groups
from topicsteer.corpora import Documents
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.supervision import CHOSEN, PROBABILITY
from topicsteer.model.live import write_features
from topicsteer.model.settings import BUILT_IN, DEFAULT_FREE, WORDS
from topicsteer.model.topic_model import TopicModel
from topicsteer.text.vectorizer import TextVectorizer

# Labels that look wrong, kept after each fit.
CHECKS = 300
# Columns whose shares are estimated after a fit.
COLUMNS = 12
# Seconds between two reports of progress.
EVERY = 0.1


class Superseded(Exception):
    """The next fit is waiting, so nothing more is computed for this one."""


class Worker:
    """Works on orders, and keeps documents and model from order to order.

    Parameters
    ----------
    out : text file
        Reports go there.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.orders: SimpleQueue[Order | None] = SimpleQueue()
        self.documents: Documents | None = None
        self.groups: dict[str, Groups] | None = None
        self.model: TopicModel | None = None
        self._last, self._stage = 0.0, ""

    def send(self, report: AnyReport) -> None:
        """Write a report to the workbench."""
        self.out.write(messages.line(report))
        self.out.flush()

    def progress(self, stage: str, done: int, total: int | None, detail: str) -> None:
        """Report progress, but not too often."""
        now = time.monotonic()
        if now - self._last >= EVERY or stage != self._stage:
            self._last, self._stage = now, stage
            self.send(messages.Progressed(stage, done, total, detail))

    def read_orders(self, lines: Iterable[str]) -> None:
        """Queue orders until the input ends; runs in a thread, so that a fit notices the next order."""
        for line in lines:
            self.orders.put(messages.read_order(line))
        self.orders.put(None)

    def run(self) -> None:
        """Work on each order until the orders end."""
        while (order := self.orders.get()) is not None:
            self.work(order)

    def work(self, order: Order) -> None:
        """Fit or lay out; errors are reported."""
        try:
            match order:
                case FitOrder():
                    self._fit(order)
                case MapOrder():
                    self._lay_out(order)
            self.send(messages.Rested())
        except Exception as error:  # any error is reported, and the last good model stays in use
            self.send(messages.Failed(f"{error}" or type(error).__name__))

    def _fit(self, order: FitOrder) -> None:
        """Fit and save the model; then check labels and estimate shares, until the next order is waiting."""
        begin = time.monotonic()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = self._fitted(order)
            model.save(order.folder)
            if model.guide_ is not None:
                write_features(model, Path(order.folder) / FEATURES)
            notes = [str(w.message) for w in caught if issubclass(w.category, UserWarning)][:8]
        self.model = model
        self.send(messages.Finished(order.folder, time.monotonic() - begin, notes))
        with suppress(Superseded):
            self._advise("advise", 0, None, "")
            if model.guide_ is None:
                self.send(messages.Learnt())
                return
            self.send(messages.Learnt(checks=checks(model, CHECKS)))
            self._share(model, order.project)

    def _advise(self, stage: str, done: int, total: int | None, detail: str) -> None:
        """Report progress after a fit; raise `Superseded` if the next order is waiting."""
        if not self.orders.empty():
            raise Superseded
        self.progress(stage, done, total, detail)

    def _fitted(self, order: FitOrder) -> TopicModel:
        own = self._read(order.project)
        n = len(own)
        labels, forbidden = ([names.get(row, []) for row in range(n)] for names in (order.labels, order.forbidden))
        draws: dict[str, dict[int, Any]] = {CHOSEN: order.chosen, PROBABILITY: order.probability}
        columns = {name: [values.get(row) for row in range(n)] for name, values in draws.items() if order.chosen}
        documents = Documents(own.ids, own.texts, labels, columns, forbidden)
        if self.model is None and order.previous:
            self.model = TopicModel.load(order.previous)
        free = min(order.free, max(n // 4, 1))
        wanted = None if order.free == DEFAULT_FREE == free else free  # the default shows no wish for free topics
        model = TopicModel(
            wanted,
            world=order.world,
            topics=Codebook.from_json(order.topics),
            complete=order.complete,
            path_separator=order.path_separator,
            embeddings=BUILT_IN.get(order.embeddings, WORDS),
        )
        given = None if order.embeddings in BUILT_IN else order.embeddings
        return model.fit(documents, embeddings=given, after=self.model, progress=self.progress)

    def _read(self, project: str) -> Documents:
        """Return the documents of the project, which never change."""
        self.progress("read", 0, None, "")
        if self.documents is None:
            self.documents = read_documents(Path(project))
        return self.documents

    def _lay_out(self, order: MapOrder) -> None:
        """Lay out documents by their words."""
        documents = self._read(order.project)
        self.progress("map", 0, len(order.rows), "")
        X = TextVectorizer().fit_transform([documents.texts[row] for row in order.rows])
        points = maps.features(maps.latent_semantics(X))
        places, aspect = maps.lay_out(points, progress=lambda _, *rest: self.progress("map", *rest))
        layout = maps.Layout(np.array(order.rows), places, aspect, len(documents))
        self.send(messages.LaidOut(stored_layout(layout)))

    def _share(self, model: TopicModel, project: str) -> None:
        """Report shares of topics in all documents, and in the groups of columns."""
        if self.groups is None:
            self.groups = stored_groups(Path(project))
        keys, shares = column_keys(model.codebook.keys, model.state_.topics), {}
        by_column: list[tuple[str, Groups | None]] = [(EVERYTHING, None), *self.groups.items()]
        for name, groups in by_column[: COLUMNS + 1]:
            found = model.findings.shares(groups, progress=lambda _, *rest: self._advise("shares", *rest))
            shares[name] = plain_shares(found.without_rests(), keys)
        self.send(messages.Learnt(shares=shares))


def checks(model: TopicModel, n: int) -> list[Doubt]:
    """Return labels that look wrong, most doubtful first, with the keys of their topics."""
    keys, found = model.codebook.keys, []
    for doubt in model.labels.doubts():
        p, rival = doubt.probability, None if doubt.rival is None else keys[doubt.rival]
        if p < 0.5 if doubt.given == State.PERMITTED else p > 0.5 and doubt.given == State.FORBIDDEN:
            found.append(replace(doubt, topic=keys[doubt.topic], rival=rival, why=""))
    return found[:n]


def main() -> None:
    """Work on orders from standard input; the output of libraries goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(10)  # people who label have priority
    worker = Worker(out)

    def read() -> None:
        try:
            worker.read_orders(sys.stdin)
        finally:
            os._exit(0)  # also in the middle of a fit

    threading.Thread(target=read, daemon=True).start()
    worker.run()


if __name__ == "__main__":
    main()
