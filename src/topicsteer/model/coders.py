"""The coders of a model: read their answers, compare them with the labels, and list disagreements."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topicsteer.analysis.coders import comparison_table, disagreements, label_weights, people_of, predictor_of
from topicsteer.analysis.design import Sample, label_values
from topicsteer.analysis.second_opinion import combine
from topicsteer.corpora import Documents, ReadOptions, ReadReport
from topicsteer.corpora.label_files.predictions import read_predictions
from topicsteer.corpora.read_report import OnError
from topicsteer.labels.coder import Coder, check_coder_name, coder_of
from topicsteer.labels.forms import NO_PARENTS
from topicsteer.labels.lineage import Lineage
from topicsteer.system.types import Array
from topicsteer.system.warn import warn_user

if TYPE_CHECKING:
    from topicsteer.model.fitted_model import FittedModel
    from topicsteer.model.shares import Evidence

# Answers of coders, by name: a file or DataFrame with ids, or answers to the training documents in any form of labels.
Coders = Mapping[str, Any]


def read_coder(
    name: str,
    source: object,
    documents: Documents,
    topics: Sequence[Any],
    *,
    on_error: OnError = "skip",
    lineage: Lineage = NO_PARENTS,
) -> tuple[Coder, ReadReport]:
    """Read a coder from a file or DataFrame with ids; the report has one line per row that was not used as it is."""
    found = read_predictions(source, documents, topics, on_error=on_error, topic_of=lineage.topic)
    return coder_of(name, found.labels, len(documents), topics, scores=found.scores, lineage=lineage), found.report


def answered_documents(model: FittedModel) -> Documents:
    """The training documents, for answers to them: ids, texts if they are attached, and the name of the id column."""
    texts = [""] * len(model.state_.ids) if model.documents_ is None else model.documents_.texts
    return Documents(model.state_.ids, texts, reading=ReadOptions.from_json(model.state_.reading))


def lineage_of(model: FittedModel) -> Lineage:
    """The parents of a model's topics, and its separator of paths; without parents, no answer is a path."""
    if model.codebook.forest is None:
        return NO_PARENTS
    separator = model.state_.parameters.get("path_separator")
    return Lineage.of(model.codebook, None, separator if isinstance(separator, str) else None)


def coders_of(model: FittedModel, coders: Coders) -> list[Coder]:
    """Coders in any accepted form, over the training documents and known topics of a model."""
    if not isinstance(coders, Mapping):
        raise TypeError(f'coders is a {type(coders).__name__}: expected a dict of names, such as {{"gpt": "gpt.csv"}}.')
    topics, ids, lineage = model.supervision_.topics, model.state_.ids, lineage_of(model)
    found, names = list[Coder](), set[str]()
    for name, given in coders.items():
        if check_coder_name(name) in names:
            raise ValueError(f"two coders have the name {name!r}: choose another.")
        names.add(check_coder_name(name))
        if isinstance(given, Coder):
            if given.answers.topics != topics or len(given.answers.pattern) != len(ids):
                raise ValueError(f"coder {name}: the documents or topics are not the ones in the model.")
            found.append(replace(given, name=name))
        elif isinstance(given, str | os.PathLike) or hasattr(given, "columns"):
            source = Path(given) if isinstance(given, str) and "://" not in given else given
            found.append(read_coder(name, source, answered_documents(model), topics, lineage=lineage)[0])
        else:
            found.append(coder_of(name, given, len(ids), topics, lineage=lineage))
    return found


def coder_table(model: FittedModel, coders: Sequence[Coder]) -> dict[str, list[Any]]:
    """Columns of the comparisons; labels drawn with known probabilities count for the documents they stand for."""
    rows = np.flatnonzero(model.supervision_.labelled)
    sample = Sample(rows, label_values(model.supervision_, rows), model.state_.label_origin.take(rows), rows)
    weight = label_weights(sample, len(model.state_.ids))
    table = comparison_table(coders, people_of(model.supervision_), weight=weight, seed=model.random_state)
    free = {model.result_.names[k] for k in model.result_.found}  # nobody knows their names
    kept = [row for row, topic in enumerate(table["topic"]) if topic not in free]
    return {name: [values[row] for row in kept] for name, values in table.items()}


def memberships_with(model: FittedModel, coders: Sequence[Coder], evidence: Evidence) -> Array:
    """Memberships of the training documents in all topics, with the answers of coders as a second opinion."""
    supervision, topics = model.supervision_, model.result_
    every = np.array(topics.all_memberships(supervision.outsiders))
    if not evidence.predictions:
        raise ValueError("answers of coders are weighted by labels and a guide: fit the model with labels first.")
    places = np.array([*range(len(supervision.topics)), *([every.shape[1] - 1] if model.state_.open else [])])
    columns, used = slice(0, len(places)), list[tuple[Array, Array]]()
    for coder in coders:
        known, note = predictor_of(coder, evidence.sample)
        if known is None:
            warn_user(note.replace("the shares", "the memberships"))
            continue
        answers = np.where(coder.answers.labelled[:, None], known.every, np.nan)[:, columns]
        used.append((answers[evidence.sample.rows], answers))
    if not used:
        return every
    labels, hidden = evidence.sample.labels[:, columns], evidence.predictions[0].labelled[:, columns]
    found, useful = combine(labels, hidden, every[:, places], used, model.random_state)
    if not useful:
        why = "The answers of the coders do not help to predict hidden labels: the memberships stay as they are."
        warn_user(why)
    free = ~supervision.labelled
    every[np.ix_(free, places)] = found[free]
    if supervision.forest is not None:  # answers to a topic and to its parent are weighed one by one
        every[:, : len(supervision.topics)] = supervision.forest.raised(every[:, : len(supervision.topics)])
    return every


def disagreement_table(model: FittedModel, coders: Coders, excerpt: Any) -> dict[str, list[Any]]:
    """Columns of `FittedModel.disagreements`."""
    people = people_of(model.supervision_)
    found = [one for coder in coders_of(model, coders) for one in disagreements(coder, people)]
    table: dict[str, list[Any]] = {
        "id": [model.state_.ids[one.row] for one in found],
        "coder": [one.coder for one in found],
        "people": ["; ".join(one.theirs) for one in found],
        "answer": ["; ".join(one.ours) for one in found],
        "score": [one.score for one in found],
    }
    if model.documents_ is not None:
        texts = model.documents_.texts
        table["text"] = [excerpt(texts[one.row]) for one in found]
    return table
