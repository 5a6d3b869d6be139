"""The paper trail of a model: everything measured, and a note for everything that is not known."""

from __future__ import annotations

import hashlib
import json
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from topicsteer import __version__
from topicsteer.analysis.belief import corrected
from topicsteer.analysis.columns import Column, missing
from topicsteer.analysis.evaluate import LOGISTIC, OURS, Evaluation
from topicsteer.labels.coder import PEOPLE, Coder
from topicsteer.labels.origin import Kind
from topicsteer.labels.supervision import FORBIDDEN, PERMITTED, UNKNOWN
from topicsteer.report.methods import MethodsPage, Section

if TYPE_CHECKING:
    from topicsteer.model.fitted_model import FittedModel

# Packages whose versions can change numbers.
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")
# Topics named in the paragraph; the table has all of them.
NAMED = 6
# Columns of the table of agreement, and their names on the page.
AGREEMENT = {name: name for name in ("coder", "against", "topic", "documents", "precision", "recall")}
AGREEMENT |= {"kappa": "κ", "kappa_low": "κ from", "kappa_high": "κ to"}
NOT_RECORDED = "not recorded"
# How documents were chosen, in words.
CHOSEN = {
    Kind.RANDOM: "at random",
    Kind.DOUBT: "by doubt with known probabilities",
    Kind.SUGGESTED: "by a suggestion or a person",
    Kind.UNKNOWN: "in a way that was not recorded",
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """Measurements beyond the fit; an empty field was not measured.

    Parameters
    ----------
    evaluation : Evaluation, optional
        On hidden labels.
    shares : mapping of str to sequence
        Table of shares: topic, share, low, high and others.
    assumptions : sequence of str
        Sentences about the shares.
    coders : sequence of Coder
        Coders that were compared with the labels.
    agreement : mapping of str to sequence
        Table of `FittedModel.coders`.
    people : mapping of str to int
        Labelled documents per person, or per other source of labels.
    """

    evaluation: Evaluation | None = None
    shares: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    assumptions: Sequence[str] = ()
    coders: Sequence[Coder] = ()
    agreement: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    people: Mapping[str, int] = field(default_factory=dict)


def methods_page(model: FittedModel, evidence: Evidence, title: str) -> MethodsPage:
    """The page of a model."""
    sections = [
        _corpus(model),
        _labels(model, evidence),
        _agreement(evidence),
        _settings(model),
        _evaluation(evidence),
        _shares(evidence),
        _assumptions(model, evidence),
        _versions(model, evidence),
    ]
    return MethodsPage(title, _paragraph(model, evidence), sections)


def _corpus(model: FittedModel) -> Section:
    state = model.state_
    facts = {"documents": f"{len(state.ids):,}", "terms": f"{len(state.vocabulary):,}"}
    languages = state.vectorizer.get("languages")
    named = ", ".join(map(str, languages)) if isinstance(languages, list) else ""
    facts["languages of the stop words"] = named or "none"
    facts["hash of ids and texts"] = state.fingerprint
    note = "The model does not record where the documents come from. Add their source."
    return Section("Corpus", facts, notes=[note])


def _labels(model: FittedModel, evidence: Evidence) -> Section:
    supervision, topics = model.supervision_, model.result_
    labelled, documents = int(supervision.labelled.sum()), len(model.state_.ids)
    facts = {
        "labelled documents": f"{labelled:,} of {documents:,} ({labelled / max(documents, 1):.1%})",
        "of them with none of the topics": f"{int(supervision.outsiders.sum()):,}",
        "labels": "complete: no other known topics" if _complete(model) else "may be incomplete",
        "who labelled": _people(evidence) or NOT_RECORDED,
        "how documents were chosen": origin(model),
    }
    known = [k for k in range(topics.n_known) if k not in topics.found]
    table: dict[str, Sequence[Any]] = {
        "topic": [topics.names[k] for k in known],
        "labelled documents": [int(supervision.counts[k]) for k in known],
    }
    if topics.forest is not None:
        table["level"] = [1 + topics.forest.depth[k] for k in known]
    if any(topic.description for topic in model.codebook):
        table["definition"] = [model.codebook.topics[k].description for k in known]
    missing = "" if evidence.people else "The model does not record who labelled. Add names or numbers of people."
    return Section("Labels", facts, table, [Column("labelled documents", "count")], [missing] if missing else [])


def origin(model: FittedModel) -> str:
    """How the labelled documents were chosen, in words."""
    kinds = model.state_.label_origin.kind[model.supervision_.labelled]
    counts = {words: int((kinds == kind).sum()) for kind, words in CHOSEN.items()}
    if not counts[CHOSEN[Kind.UNKNOWN]] < len(kinds):
        return NOT_RECORDED
    return ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)


def _people(evidence: Evidence) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in evidence.people.items())


def _agreement(evidence: Evidence) -> Section:
    if not evidence.coders:
        note = "Agreement was not measured: no second coder was given. One passes its answers with --coder (coders=)."
        return Section("Agreement of coders", notes=[note])
    facts = {
        f"coder {coder.name}": f"{int(coder.answers.labelled.sum()):,} documents with an answer; never used as labels"
        for coder in evidence.coders
    }
    table = {shown: evidence.agreement[name] for name, shown in AGREEMENT.items()}
    notes = ['The labels of the model are "people". Intervals have 95 % probability; κ is Cohen\'s.']
    return Section("Agreement of coders", facts, table, notes=notes)


def _settings(model: FittedModel) -> Section:
    state = model.state_
    given = {name: value for name, value in state.parameters.items() if name != "topics" and value is not None}
    facts = {name: json.dumps(value, ensure_ascii=False) for name, value in given.items()}
    facts |= {"free topics found": f"{len(state.free_names):,}", "world": "open" if state.open else "closed"}
    facts["iterations"] = f"{state.estimator.get('n_iter', '')} ({state.estimator.get('ended', '')})"
    return Section("Settings", facts)


def _evaluation(evidence: Evidence) -> Section:
    found = evidence.evaluation
    if found is None:
        note = "Predictions were not evaluated: this needs the training documents."
        return Section("Evaluation on hidden labels", notes=[note])
    facts = {"folds": str(found.folds), "labelled documents": f"{found.labelled:,}"}
    table = found.summary() if found.judged else {}
    return Section("Evaluation on hidden labels", facts, table, notes=[found.verdict])


def _shares(evidence: Evidence) -> Section:
    if not evidence.shares:
        note = "Shares were not estimated: this needs the training documents. Averages of memberships are biased."
        return Section("Shares of topics", notes=[note])
    percent = [Column(name, "share") for name in ("share", "low", "high", "plain")]
    return Section("Shares of topics", {"intervals": "95 %"}, evidence.shares, percent)


def _assumptions(model: FittedModel, evidence: Evidence) -> Section:
    declared = model.state_.parameters.get("world")
    world = f"declared as {declared}" if declared else f"found to be {'open' if model.state_.open else 'closed'}"
    _, measured = corrected(evidence.shares) or (None, "")
    notes = [
        *evidence.assumptions,
        f"World: {world}. {model.belief} {measured}".rstrip(),
        "A label is taken as true. Errors of the people who labelled are part of every figure.",
    ]
    if not _complete(model):
        notes.append("Topics that a labelled document does not name are unknown, not absent.")
    if evidence.coders:
        notes.append("Precision, recall and agreement hold for documents that are chosen like the labelled ones.")
    return Section("Assumptions", notes=notes)


def _versions(model: FittedModel, evidence: Evidence) -> Section:
    state = model.state_
    facts = {"topicsteer": __version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:  # numba is missing in an installation that only reads models
            facts[name] = "not installed"
    codebook = json.dumps(state.codebook.to_json(), sort_keys=True, ensure_ascii=False)
    facts |= {
        "hash of ids and texts": state.fingerprint,
        "hash of the codebook": _digest(codebook.encode()),
        "hash of the labels": _digest(state.patterns[state.pattern].tobytes()),
        "hash of the topics": _digest(state.components.tobytes()),
    }
    facts |= {f"hash of the answers of {coder.name}": _digest(coder.states.tobytes()) for coder in evidence.coders}
    return Section("Versions and hashes", facts)


def _paragraph(model: FittedModel, evidence: Evidence) -> str:
    """The paragraph to paste, from the same numbers as the sections."""
    state, supervision = model.state_, model.supervision_
    documents, labelled = len(state.ids), int(supervision.labelled.sum())
    found, forest = len(state.topics.found), state.codebook.forest
    known, levels = len(state.codebook) - found, "" if forest is None else f" on {max(forest.depth) + 1} levels"
    by = f" by {_people(evidence)}" if evidence.people else ""
    chosen = origin(model)
    outside = int(supervision.outsiders.sum())
    sentences = [
        f"We fitted a topic model with supervision by labels (topicsteer {__version__}) to {documents:,} documents.",
        f"The codebook had {counted(known, 'topic')}{levels}; {counted(labelled, 'document')} "
        f"({labelled / max(documents, 1):.1%}) had labels{by}, {outside:,} of them with none of the topics.",
        "How the documents to label were chosen was not recorded."
        if chosen == NOT_RECORDED
        else f"The documents to label were chosen as follows: {chosen}.",
        f"The model found {counted(len(state.free_names) + found, 'further topic')} without labels.",
    ]
    sentences += _scored(evidence.evaluation) + [_agreed(evidence, coder) for coder in evidence.coders]
    sentences += _shared(evidence.shares)
    sentences.append(f"Random seed {model.random_state}; hash of the documents {state.fingerprint[:16]}.")
    return " ".join(sentences)


def _scored(found: Evaluation | None) -> list[str]:
    if found is None or not found.judged:
        return ["Predictions were not evaluated on hidden labels."]
    ours, other = (found.scores[name].summary() for name in (OURS, LOGISTIC))
    macro, micro = "macro average precision", "micro average precision"
    return [
        f"On hidden labels ({found.folds} folds), average precision was {ours[macro]:.3f} (mean over topics) and "
        f"{ours[micro]:.3f} (all pairs); logistic regression reached {other[macro]:.3f} and {other[micro]:.3f}."
    ]


def _agreed(evidence: Evidence, coder: Coder) -> str:
    """A sentence about a coder: the range of κ over topics."""
    table = evidence.agreement
    rows = [
        (kappa, topic, documents)
        for name, against, topic, documents, kappa in zip(
            *(table[column] for column in ("coder", "against", "topic", "documents", "kappa")), strict=True
        )
        if (name, against) == (coder.name, PEOPLE) and not missing(kappa)
    ]
    if not rows:
        return f"The answers of the coder {coder.name} could not be compared with labels."
    (least, worst, _), (most, best, _), middle = min(rows), max(rows), statistics.median(row[0] for row in rows)
    return (
        f"The answers of the coder {coder.name} were compared with the labels of {max(row[2] for row in rows):,} "
        f"documents: Cohen's κ was {middle:.2f} in the median of {len(rows):,} topics, from {least:.2f} ({worst}) "
        f"to {most:.2f} ({best})."
    )


def _shared(table: Mapping[str, Sequence[Any]]) -> list[str]:
    """A sentence about the largest shares."""
    if not table:
        return ["Shares of topics in the corpus were not estimated."]
    rows = [
        row
        for row in zip(*(table[name] for name in ("share", "topic", "low", "high")), strict=True)
        if not any(map(missing, row))
    ]
    if not rows:
        return ["Shares of topics have no interval, because no labelled document was drawn by chance."]
    rows.sort(key=lambda row: (-row[0], row[1]))
    listed = "; ".join(f"{topic} {share:.1%} ({low:.1%} to {high:.1%})" for share, topic, low, high in rows[:NAMED])
    more = f"; and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    return [
        "Shares of topics in the corpus were estimated from predictions that labelled documents correct "
        f"(prediction-powered inference; 95 % intervals): {listed}{more}."
    ]


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 topic", "1,200 topics"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _complete(model: FittedModel) -> bool:
    """Whether no label leaves a topic open; in a tree, topics below a label are open anyway."""
    supervision, patterns = model.supervision_, model.supervision_.patterns[1:]
    unknown = patterns == UNKNOWN
    if supervision.forest is not None:
        labels = np.where(patterns == PERMITTED, PERMITTED, FORBIDDEN).astype(np.int8)
        unknown &= supervision.forest.closed(labels) == FORBIDDEN
    return not bool(unknown.any())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
