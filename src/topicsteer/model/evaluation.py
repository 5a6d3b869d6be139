"""Evaluation of the settings of a fit on hidden labels."""

import warnings
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from topicsteer.analysis import evaluate as evaluation
from topicsteer.analysis.estimates import estimate
from topicsteer.analysis.whole_corpus import Unlabelled
from topicsteer.backends import as_rows
from topicsteer.corpora import Documents
from topicsteer.guidance.apply import accepted, choose_thresholds, with_none
from topicsteer.guidance.embeddings import Embeddings, embed
from topicsteer.guidance.latent import latent_directions
from topicsteer.guidance.sample import background_rows
from topicsteer.labels.origin import Origin
from topicsteer.labels.supervision import Supervision
from topicsteer.model.learning import GUIDE_SEED, Task, learn, stage_progress
from topicsteer.model.pipeline import Corpus, choose_threshold, known_parts
from topicsteer.model.settings import Settings
from topicsteer.model.shares import gather, tree_columns
from topicsteer.nmf.start import label_profiles
from topicsteer.system.files import Scratch
from topicsteer.system.types import Array, Progress

# Labels look like a random draw if predictions for labelled and other documents differ by fewer standard errors.
RANDOM = 2.0


def evaluate(
    settings: Settings,
    corpus: Corpus,
    *,
    embeddings: Embeddings | None = None,
    folds: int = 3,
    curve: bool = True,
    progress: Progress | None = None,
) -> evaluation.Evaluation:
    """Hide labels and predict them with these settings; a corpus on disk is reduced to labels and a sample."""
    rows, documents, supervision = corpus.rows, corpus.documents, corpus.supervision
    origin = corpus.origin or Origin.unknown(len(documents))
    if rows.matrix is None:
        kept = np.sort(np.append(np.flatnonzero(supervision.labelled), background_rows(supervision, GUIDE_SEED)))
        rows, supervision = as_rows(rows.take(kept)), replace(supervision, pattern=supervision.pattern[kept])
        origin = origin.take(kept)
        documents = Documents([documents.ids[i] for i in kept], [documents.texts[i] for i in kept])
    forest = supervision.forest
    X, known = rows.take(np.arange(rows.shape[0])), len(supervision.topics)
    E = None if embeddings is None else embed(embeddings, documents.texts)
    task = Task(rows, supervision, corpus.codebook, corpus.vectorizer, np.ones(len(documents)), E)
    if settings.guidance is not None:
        task = replace(task, directions=latent_directions(rows, GUIDE_SEED, settings.threads))
    estimator = settings.new_estimator(rows, label_profiles(rows, supervision, task.weight), guide=None)
    unlabelled, declared = None, settings.world == "closed"
    whole = learn(settings, task) if settings.guidance is not None else None
    if whole is not None:
        settings = replace(settings, world="open" if whole.believes_open else "closed")  # the folds share one decision
        if whole.believes_open and not supervision.labelled.all():
            own = whole.probabilities(X, settings.threads, embeddings=E)[~supervision.labelled, :known]
            predicted = accepted(own, choose_thresholds(whole, own, forest)).sum(axis=1).mean()
            believed = with_none(own, known, forest).mean(axis=0, dtype=np.float64)
            drawn = _drawn_shares(settings, replace(task, choice=whole.choice), origin, progress)
            unlabelled = Unlabelled(believed if drawn is None else drawn, float(predicted), drawn is not None)

    def score(X: sp.csr_array, left: Supervision, rows: NDArray[np.integer]) -> tuple[Array, NDArray[np.bool_]]:
        if settings.guidance is not None:
            learnt = learn(settings, replace(task, supervision=left))
            if learnt is None:
                return np.zeros((len(rows), known)), np.zeros((len(rows), known), dtype=np.bool_)
            belongs = learnt.probabilities(X, settings.threads, embeddings=E)[:, :known]
            return belongs[rows], accepted(belongs[rows], choose_thresholds(learnt, belongs[~left.labelled], forest))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # hiding labels may leave a topic without any
            fitted = clone(estimator).fit(X, left)
        if fitted.ended_ == "interrupted":  # its scores would be too low
            raise KeyboardInterrupt
        shares = known_parts(fitted.document_topics_[rows], fitted.components_, left)
        return shares, shares >= choose_threshold(task.rows, fitted, left)

    return evaluation.evaluate(
        X,
        supervision,
        score,
        unlabelled=unlabelled,
        declared=declared,
        folds=folds,
        seed=settings.random_state,
        curve=curve,
        progress=stage_progress("evaluate", progress),
    )


def _drawn_shares(settings: Settings, task: Task, origin: Origin, progress: Progress | None) -> Array | None:
    """Shares of the topics and of none, as `prevalence` estimates them; None unless labels look like a random draw."""
    supervision = task.supervision
    if not supervision.outsiders.any():
        return None
    with Scratch() as folder:
        evidence = gather(settings, task, origin, folder=folder, progress=progress)
        tree = tree_columns(supervision, task.codebook)
        found = estimate(evidence.sample, evidence.predictions, weights=np.ones(task.rows.shape[0]), tree=tree)
    none = len(supervision.topics)
    if np.isnan(found.low[0, none]) or abs(found.doubts[none]) > RANDOM:
        return None
    return np.nan_to_num(found.share[0, : none + 1])
