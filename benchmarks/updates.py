"""Compare daily updates on Reuters with one fit to all days.

    python benchmarks/updates.py                    fit the first 18 days, then make 30 daily updates;
    python benchmarks/updates.py --first 1          start from the first day;
    python benchmarks/updates.py --sample 1000      retain this number of unlabelled documents;
    python benchmarks/updates.py --texts            keep the old texts, so that new terms are found in them too;
    python benchmarks/updates.py --matrix           TSNMF.partial_fit alone, on the matrix of all days.

The objective is computed over all documents, on one matrix, for the updated model and for a fit to that matrix. W is
solved for each H, under the labels and, for TopicModel, under the penalties of the full model.
"""

import argparse
import json
import time
import warnings
from datetime import datetime
from functools import partial

import numpy as np
import scipy.sparse as sp

from topicsteer import TSNMF, TopicModel
from topicsteer.guidance.apply import topic_penalties
from topicsteer.labels.forms import supervise
from topicsteer.metrics import average_precision
from topicsteer.model import pipeline, update
from topicsteer.nmf import loop as solvers
from topicsteer.nmf.blocks import Block, Penalties
from topicsteer.nmf.loop import row_errors
from topicsteer.nmf.solvers import Regularisation
from topicsteer.text import TextVectorizer


def by_day(documents):
    """Return documents in the order of their column of dates, and the day of each, counted from 0."""
    dates = [datetime.strptime(date[:11].strip(), "%d-%b-%Y").toordinal() for date in documents.columns["date"]]
    order = np.argsort(dates, kind="stable")
    return documents.select(order), np.unique(np.array(dates)[order], return_inverse=True)[1]


def objective(X, H, supervision, *, free_in_labelled=True, weight=None, penalties=None):
    """Return D including penalties, with W solved for H."""
    n, d = X.shape[0], len(H)
    HT = np.ascontiguousarray(H.T, dtype=X.dtype)
    weight = np.ones(n) if weight is None else weight
    own = Penalties.none(n, X.dtype) if penalties is None else Penalties.of(penalties, X.dtype)
    W = np.zeros((n, d), X.dtype)
    block = Block(X.indptr.astype(np.int64), X.indices, X.data, W, weight.astype(X.dtype), supervision.pattern, own)
    solvers.transform(block, HT, supervision.permitted(d, free_in_labelled), Regularisation(), None)
    cost = 0.0 if penalties is None else 2 * float((penalties.multiply(W)).sum())
    return float(row_errors(block, HT, HT.T @ HT) @ weight) + cost


def matrix(documents, given, day, first, free=10):
    """Compare partial_fit with fit."""
    X = sp.csr_array(TextVectorizer().fit_transform(documents.texts))
    supervision = supervise(given.labels, len(documents))
    began = time.perf_counter()
    full = TSNMF(len(supervision.topics) + free, random_state=0).fit(X, given.labels)
    seconds = [time.perf_counter() - began]
    before = np.flatnonzero(day < first)
    known = len({name for i in before for name in given.labels[i]})
    online, began = TSNMF(known + free, random_state=0), time.perf_counter()
    for rows in [before, *(np.flatnonzero(day == d) for d in range(first, day.max() + 1))]:
        online.partial_fit(X[rows], [given.labels[i] for i in rows])
    seconds.append(time.perf_counter() - began)
    weight = np.where(supervision.labelled, len(documents) / supervision.labelled.sum(), 1)
    errors = []
    for model in (full, online):
        labels = supervise(given.labels, len(documents), topics=list(model.topic_names_[: model.n_known_]))
        errors.append(objective(X, model.components_, labels, weight=weight))
    return {"documents": len(documents), "objective": errors, "ratio": errors[1] / errors[0], "seconds": seconds}


def texts(documents, given, day, first, keep):
    """Compare update with fit."""
    began = time.perf_counter()
    full = TopicModel(random_state=0).fit(given)
    seconds = [time.perf_counter() - began]
    began = time.perf_counter()
    online = TopicModel(random_state=0).fit(given.select(np.flatnonzero(day < first)))
    for d in range(first, day.max() + 1):
        online.documents_ = online.documents_ if keep else None
        online.update(given.select(np.flatnonzero(day == d)))
    seconds.append(time.perf_counter() - began)

    names = list(full.state_.supervision.topics)
    truth = supervise(documents.labels, len(documents), topics=sorted({t for row in documents.labels for t in row}))
    has = truth.indicator().toarray() > 0
    column = [truth.topics.index(name) for name in names]
    rows = ~full.state_.supervision.labelled
    here = [list(online.state_.supervision.topics).index(name) for name in names]
    precision = [
        float(np.nanmean(average_precision(has[rows][:, column], scores[rows]).topics))
        for scores in (full.state_.known_memberships, online.state_.known_memberships[:, here])
    ]

    # The matrix has the terms of the updated model; the penalties are from the full model.
    X = sp.csr_array(online.vectorizer_.transform(documents.texts))
    labels = supervise(given.labels, len(documents), topics=names)
    d = len(names) + 10
    penalties = topic_penalties(full.state_.known_memberships, full.guide_.covers, d, labels.permits)
    again = TSNMF(d, free_in_labelled=False, label_weight=None, random_state=0).fit(X, labels, penalties=penalties)
    order = [*here, *range(len(names), d)]
    errors = [
        objective(X, H, labels, free_in_labelled=False, penalties=penalties)
        for H in (again.components_, online.state_.components[order])
    ]
    return {
        "documents": len(documents),
        "retained": len(online.state_.reservoir["rows"]),
        "terms": [full.state_.components.shape[1], X.shape[1]],
        "objective": errors,
        "ratio": errors[1] / errors[0],
        "macro average precision": precision,
        "seconds": seconds,
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=18, help="days in the first fit")
    parser.add_argument("--updates", type=int, default=30, help="days of updates after the first fit")
    parser.add_argument("--labelled", type=float, default=0.1, help="share of labelled documents")
    parser.add_argument("--sample", type=int, help="unlabelled documents to retain")
    parser.add_argument("--texts", action="store_true", help="keep the old texts")
    parser.add_argument("--matrix", action="store_true", help="partial_fit alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    from corpora import load_reuters

    documents, day = by_day(load_reuters())
    inside = np.flatnonzero(day < options.first + options.updates)
    documents, day = documents.select(inside), day[inside]
    given = documents.hide_labels(1 - options.labelled, options.seed)
    if options.sample is not None:
        pipeline.surplus = update.surplus = partial(pipeline.surplus, most=options.sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.matrix:
            found = matrix(documents, given, day, options.first)
        else:
            found = texts(documents, given, day, options.first, options.texts)
    print(json.dumps(vars(options) | found))
    return found


if __name__ == "__main__":
    main()
