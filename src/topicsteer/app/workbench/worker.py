"""The process that fits: ``python -m topicsteer.app.workbench.worker`` reads orders and writes reports, one per line.

It runs as long as its workbench. It keeps the documents and the last model. A fit reuses its vocabulary and latent
semantics, which do not depend on labels, so the result is that of a fit from scratch. It ends with its input.

With a project and a folder as arguments, it lays out the document map: it reads the rows of the documents from
``rows.npy`` in the folder, and writes their places to ``places.npy``. The places depend on the texts only, so points do
not move when labels change.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import TextIO

import msgspec
import numpy as np

from topicsteer.analysis import map_layout as maps
from topicsteer.analysis.groups import Groups
from topicsteer.analysis.label_advice import ambiguity_notes
from topicsteer.analysis.suggestions import Doubt
from topicsteer.app.workbench import fit_process as messages
from topicsteer.app.workbench.current_model import OUTSIDE, column_keys
from topicsteer.app.workbench.event_log import FORBIDDEN, PERMITTED
from topicsteer.app.workbench.fit_process import AnyReport, CancelOrder, FitOrder, MapLine, SplitOrder
from topicsteer.app.workbench.model_record import Point, SuggestedRow
from topicsteer.app.workbench.progress_view import plain_shares
from topicsteer.app.workbench.project import read_documents, stored_groups
from topicsteer.corpora import Documents
from topicsteer.guidance.keywords import embed
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.origin import CHOSEN
from topicsteer.model.edits import Group, Split
from topicsteer.model.predictor import for_documents
from topicsteer.model.settings import DEFAULT_FREE
from topicsteer.model.topic_model import TopicModel
from topicsteer.text.vectorizer import TextVectorizer

# Documents suggested after each fit.
SUGGESTIONS = 100
# Documents of a group that are proposed as labels.
PROPOSED = 10
# Labels that look wrong, kept after each fit.
CHECKS = 300
# Columns whose shares are estimated after a fit.
COLUMNS = 12
# Seconds between two reports of progress.
EVERY = 0.1


class Cancelled(Exception):
    """The fit was cancelled."""


class Superseded(Exception):
    """The next fit is waiting, so this one is not evaluated."""


class Worker:
    """Fits and splits on orders, and keeps documents and model from order to order.

    Parameters
    ----------
    out : text file
        Reports go there.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.cancelled = threading.Event()
        self.orders: SimpleQueue[FitOrder | SplitOrder | None] = SimpleQueue()
        self.documents: Documents | None = None
        self.groups: dict[str, Groups] | None = None
        self.model: TopicModel | None = None
        # Folder that the model was saved to, or loaded from.
        self.folder = ""
        self._last, self._stage = 0.0, ""

    def send(self, report: AnyReport) -> None:
        """Write a report to the workbench."""
        self.out.write(messages.line(report))
        self.out.flush()

    def progress(self, stage: str, done: int, total: int | None, detail: str) -> None:
        """Report progress, but not too often; raise `Cancelled` if the fit was cancelled."""
        if self.cancelled.is_set():
            raise Cancelled
        now = time.monotonic()
        if now - self._last >= EVERY or stage != self._stage:
            self._last, self._stage = now, stage
            self.send(messages.Progressed(stage, done, total, detail))

    def read_orders(self, lines: Iterable[str]) -> None:
        """Queue orders until the input ends; runs in a thread, so that a fit can be cancelled."""
        for line in lines:
            order = messages.read_order(line)
            if isinstance(order, CancelOrder):
                self.cancelled.set()
            else:
                self.cancelled.clear()
                self.orders.put(order)
        self.orders.put(None)

    def run(self) -> None:
        """Report that the worker is ready, then fit or split on each order until the orders end."""
        self.send(messages.Ready())
        while (order := self.orders.get()) is not None:
            if isinstance(order, FitOrder):
                self.fit(order)
            else:
                self.split(order)

    def fit(self, order: FitOrder) -> None:
        """Fit, save the model, then suggest and evaluate; errors are reported."""
        begin = time.monotonic()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = self._fit(order)
                model.save(order.folder)
                notes = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
                notes = [*notes, *ambiguity_notes(model.state_.topics, model.codebook)][:8]
            self.model, self.folder = model, order.folder
            self.send(messages.Finished(order.folder, time.monotonic() - begin, notes))
            self._suggest(model)
            self._evaluate(model)
            self._share(model, order.project)
            self.send(messages.Rested())
        except Cancelled:
            self.send(messages.Cancelled())
        except Exception as error:  # any error is reported, and the last good model stays in use
            self.send(messages.Failed(f"{error}" or type(error).__name__, type(error).__name__))

    def _fit(self, order: FitOrder) -> TopicModel:
        own = self._read(order.project)
        n = len(own)
        labels, forbidden = ([names.get(row, []) for row in range(n)] for names in (order.labels, order.forbidden))
        columns = {CHOSEN: [order.chosen.get(row) for row in range(n)]} if order.chosen else {}
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
            vectorizer=None if order.segmenter is None else TextVectorizer(segmenter=order.segmenter),
        )
        return model.fit(documents, embeddings=order.embeddings, after=self.model, progress=self.progress)

    def _read(self, project: str) -> Documents:
        """Return the documents of the project, which never change."""
        self.progress("read", 0, None, "")
        if self.documents is None:
            self.documents = read_documents(Path(project))
        return self.documents

    def split(self, order: SplitOrder) -> None:
        """Find groups of the documents of a topic of the last model; errors are reported."""
        try:
            documents = self._read(order.project)
            if self.model is None or self.folder != order.previous:
                vectors = for_documents(order.embeddings, documents)
                E = None if vectors is None else embed(vectors, documents.texts)
                self.model = TopicModel.load(order.previous, embeddings=E).attach(documents)
                self.folder = order.previous
            self.progress("split", 0, None, "")
            found = self.model.edit.split(order.column, order.parts)
            groups = [plain_group(group) for group in found.groups] if isinstance(found, Split) else []
            self.send(messages.Grouped(order.column, groups))
            self.send(messages.Rested())
        except Cancelled:
            self.send(messages.Cancelled())
        except Exception as error:  # as in a fit
            self.send(messages.Failed(f"{error}" or type(error).__name__, type(error).__name__))

    def _suggest(self, model: TopicModel) -> None:
        """Report documents to label and doubtful labels, unless the next fit is waiting."""
        if not self.orders.empty():
            return
        self.progress("advise", 0, None, "")
        if model.guide_ is None:
            self.send(messages.Suggested([], []))
            return
        self.send(messages.Suggested(suggestions(model, SUGGESTIONS), checks(model, CHECKS)))

    def _evaluate(self, model: TopicModel) -> None:
        """Report the stopping advice and the average precision on hidden labels, unless the next fit is waiting."""
        if model.guide_ is None or not self.orders.empty():
            return

        def report(step: int, total: int) -> None:
            if not self.orders.empty():
                raise Superseded
            self.progress("check", step - 1, total, "")

        try:
            advice = model.labels.advice(report)
        except Superseded:
            return
        self.send(messages.StoppingAdvice(advice.sentence))
        curve = advice.curve
        if curve is None:
            return
        labelled = int((np.diff(model.state_.supervision.indicator().indptr) > 0).sum())
        points = zip(curve.labelled, curve.micro, curve.macro, curve.micro_error, curve.macro_error, strict=True)
        *some, last = [Point(round(n), *scores) for n, *scores in points]
        self.send(messages.Evaluated([*some, msgspec.structs.replace(last, documents=labelled)]))

    def _share(self, model: TopicModel, project: str) -> None:
        """Report shares of topics in the groups of columns, unless the next fit is waiting."""
        if model.guide_ is None or not self.orders.empty():
            return
        if self.groups is None:
            self.groups = stored_groups(Path(project))
        if not self.groups:
            return

        def report(stage: str, done: int, total: int | None, detail: str) -> None:
            if not self.orders.empty():
                raise Superseded
            self.progress("shares", done, total, detail)

        keys = [*column_keys(model.codebook.keys, model.state_.topics), OUTSIDE]
        try:
            columns = list(self.groups.items())[:COLUMNS]
            shares = {
                name: model.findings.prevalence(groups, progress=report).without_rests() for name, groups in columns
            }
            found = {name: plain_shares(own, keys) for name, own in shares.items()}
        except Superseded:
            return
        self.send(messages.Shared(found))


def plain_group(group: Group) -> messages.Group:
    """Return a group of a split as a message."""
    return messages.Group(list(group.terms), len(group), group.rows[:PROPOSED].tolist())


def suggestions(model: TopicModel, n: int) -> list[SuggestedRow]:
    """Return the documents to label next, most useful first."""
    table = model.labels.suggest(n)
    row_of = {name: row for row, name in enumerate(model.state_.topics.ids)}
    return [SuggestedRow(row_of[name], str(why)) for name, why in zip(table["id"], table["why"], strict=True)]


def checks(model: TopicModel, n: int) -> list[Doubt]:
    """Return labels that look wrong, most doubtful first, with the keys of their topics."""
    keys, found = model.codebook.keys, []
    for doubt in model.labels.doubts():
        p, rival = doubt.probability, None if doubt.rival is None else keys[doubt.rival]
        if p < 0.5 if doubt.given == PERMITTED else p > 0.5 and doubt.given == FORBIDDEN:
            found.append(replace(doubt, topic=keys[doubt.topic], rival=rival, why=""))
    return found[:n]


def make_layout(project: Path, folder: Path, out: TextIO) -> None:
    """Lay out the documents of a project; errors are reported."""

    def send(line: MapLine) -> None:
        out.write(messages.line(line))
        out.flush()

    try:
        rows = np.load(folder / "rows.npy", allow_pickle=False)
        texts = read_documents(project).texts
        send(MapLine(0, len(rows)))
        X = TextVectorizer().fit_transform([texts[i] for i in rows])
        points = maps.features(maps.latent_semantics(X))
        places, aspect = maps.lay_out(points, progress=lambda _, done, total, __: send(MapLine(done, total or 0)))
        np.save(folder / "places.npy", places)
        send(MapLine(len(rows), len(rows), aspect))
    except Exception as error:  # any error is reported: the workbench goes on without a map
        send(MapLine(error=f"{error}" or type(error).__name__))


def main() -> None:
    """Fit on orders from standard input, or lay out the map; the output of libraries goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        os.nice(10)  # people who label have priority
    if len(sys.argv) == 3:
        make_layout(Path(sys.argv[1]), Path(sys.argv[2]), out)
        return
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
