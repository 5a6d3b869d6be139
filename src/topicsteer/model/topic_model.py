"""TopicModel: texts in, named topics out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.effects import label_effects
from topicsteer.analysis.evaluate import Evaluation
from topicsteer.analysis.explain import Explanation, explain
from topicsteer.analysis.suggest import Outlook, audit, outlook, suggest
from topicsteer.analysis.topics import Topics, merge_topics, proportions, shares
from topicsteer.backends.dask import client_of, shared_folder
from topicsteer.corpora import Documents
from topicsteer.estimator import TSNMF
from topicsteer.guidance.embeddings import embed, encoder_of
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.penalties import soft_mask
from topicsteer.labels.folds import nine_tenths
from topicsteer.labels.forms import extend, forbid
from topicsteer.labels.supervision import PERMITTED, Supervision
from topicsteer.model import files as modelfiles
from topicsteer.model import pipeline as fitting
from topicsteer.model import update as updating
from topicsteer.model.files import fingerprint
from topicsteer.model.pipeline import Settings, documents_of
from topicsteer.model.spool import spool, too_large
from topicsteer.nmf.blocks import row_sizes, rows_of
from topicsteer.nmf.statistics import Hand
from topicsteer.report import viewers
from topicsteer.report.page import Example, ReportData
from topicsteer.report.page import write as write_report
from topicsteer.report.tables import columns, write_parts
from topicsteer.system.files import Scratch
from topicsteer.system.memory import in_bytes
from topicsteer.system.types import Array, Progress
from topicsteer.text import TextVectorizer

EXAMPLES = 3  # documents shown for each topic in a report,
MARKED = 0.12  # with the words marked that contribute this much of what the strongest word does


class TopicModel:
    """Topics of a pile of texts that follow the labels of a few of them.

    Parameters
    ----------
    free_topics : int or "auto", default=10
        Topics for what nobody named, beside the known ones. "auto": as many as there are
        further directions in the documents that hold half as much as a typical known topic, at most 10.
    topics : sequence of str, optional
        Names and order of the known topics; may name topics without a label. Default: those of the labels, sorted.
    complete : bool, default=True
        A document's labels are all its known topics. False: others may be present too.
    guidance : "auto" or None, default="auto"
        How labels reach the unlabelled documents. "auto": memberships are probabilities learnt from the labels, see
        `topicsteer.guidance.guide`, and the factorisation is steered by them: an unlikely topic costs something, see
        `topicsteer.guidance.penalties`. None: the shares of the factorisation alone, which is the paper's method.
    pinned, banned : dict of topic to list of words, optional
        Words that a known topic must have, and words that it must not have.
    descriptions : dict of topic to str, optional
        What the known topics are about, in words; stored with the model.
    vectorizer : TextVectorizer, optional
        How texts become a matrix. Default: ``TextVectorizer()``.
    estimator : TSNMF, optional
        The factorisation, with settings, seed and threads of its own; only its ``n_components`` is set from here.
        Default: ``TSNMF(free_in_labelled=False)``, so that free topics cannot take from the known ones what belongs to
        their labelled documents; with guidance also ``label_weight=None``, since there the others follow the labels.
    random_state : int, default=0
        Seed.
    threads : int, optional
        None = all cores. The result does not depend on it.

    Attributes
    ----------
    result_ : Topics
        Names, terms and documents of the topics.
    supervision_ : Supervision
        The labels as they were understood.
    estimator_, vectorizer_, guide_
        The fitted parts; ``guide_`` is None without labels or guidance.
    documents_ : Documents or None
        What the model was fitted to; None in a model that was loaded without them.
    matrix_ : CSR (n_documents, n_terms) or None
        The documents as the factorisation took them; None in a model that was loaded.

    Examples
    --------
    >>> from topicsteer import TopicModel
    >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
    >>> model = TopicModel(free_topics=0).fit(texts, ["tea", "coffee"] + [None] * 10)
    >>> model
    <TopicModel: 2 known and 0 free topics of 12 documents, 2 labelled>
    >>> model.topics["terms"].to_list()
    ['beans, coffee, roast', 'leaves, tea, green']
    >>> model.predict(["more coffee"])
    [['coffee']]
    """

    result_: Topics
    supervision_: Supervision
    estimator_: TSNMF
    guide_: Guide | None
    hand_: Hand | None
    documents_: Documents | None
    matrix_: Any
    groups_: list[list[int]]
    memberships_: Array
    cuts_: Array
    profiles_: Array

    def __init__(
        self,
        free_topics: int | str = 10,
        *,
        topics: Sequence[str] | None = None,
        complete: bool = True,
        guidance: str | None = "auto",
        pinned: Mapping[str, Sequence[str]] | None = None,
        banned: Mapping[str, Sequence[str]] | None = None,
        descriptions: Mapping[str, str] | None = None,
        vectorizer: TextVectorizer | None = None,
        estimator: TSNMF | None = None,
        random_state: int = 0,
        threads: int | None = None,
    ) -> None:
        self.free_topics = free_topics
        self.topics_order = topics
        self.complete = complete
        self.guidance = guidance
        self.pinned = pinned
        self.banned = banned
        self.descriptions = descriptions
        self.vectorizer = vectorizer
        self.estimator = estimator
        self.random_state = random_state
        self.threads = threads

    def __repr__(self) -> str:
        if not hasattr(self, "result_"):
            return f"<TopicModel: not fitted, {self.free_topics} free topics>"
        known, free = self.result_.n_known, len(self.result_) - self.result_.n_known
        labelled = int(self.supervision_.labelled.sum())
        documents = len(self.result_.W)
        return f"<TopicModel: {known} known and {free} free topics of {documents:,} documents, {labelled:,} labelled>"

    def _repr_html_(self) -> str:
        table = getattr(self.topics, "_repr_html_", None) if hasattr(self, "result_") else None
        return f"<p>{repr(self)[1:-1]}</p>" + (table() if table else "")

    # --- fitting ---

    def fit(
        self,
        source: Any,
        labels: Any = None,
        *,
        text: str | None = None,
        id: str | None = None,
        embeddings: Any = None,
        confidence: Any = None,
        after: TopicModel | None = None,
        memory: int | str | None = None,
        folder: str | Path | None = None,
        client: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Read, vectorise, factorise.

        Parameters
        ----------
        source : list of str, Documents, DataFrame, path or Spool
            The texts, or a table or file with them. Of a Dask DataFrame and of a :class:`~topicsteer.model.spool.Spool`
            memory never holds more than a part.
        labels : column name, or labels in any form, optional
            Of a table the name of its column of labels (guessed when obvious); or, for the documents in their order,
            one label each (None = unlabelled), a list of labels each, a dict ``{row: labels}``, or an indicator.
        text, id : str, optional
            Column names of a table.
        embeddings : array (n_documents, any), encoder or callable, optional
            Of the documents: an array, or what makes one of texts, such as a sentence-transformers or model2vec model.
            They join the words in finding memberships, with a weight chosen from the labels.
        confidence : array (n_documents,), optional
            How far the labels of each document can be trusted, above 0; 1 = as any other.
        after : TopicModel, optional
            An earlier model of the same documents under other labels: its words and latent semantics are taken over,
            and the topics start where it ended, so that only the work of the labels is done again.
        memory : int or str, optional
            Bytes that the fit may take, or "4GB": a file that seems to need more is worked on in blocks on disk.
        folder : path, optional
            Where these blocks go: there an interrupted fit goes on when it is called again. Default: a temporary
            folder, which goes with the model.
        client : distributed.Client, optional
            Of a Dask cluster, whose workers then hold the blocks and work on them; they must see the folder.
        progress : callable, optional
            Called as ``progress(stage, done, total, detail)`` with the stages "words", "guide" and "fit", and before
            them "columns" and "blocks" where they come from a file.

        Returns
        -------
        self
        """
        work, settings = Scratch(folder), self._settings()
        if too_large(source, memory):
            source = spool(
                source,
                work.path / "corpus",
                text=text,
                labels=labels if isinstance(labels, str) else None,
                id=id,
                vectorizer=settings.new_vectorizer(),
                memory=in_bytes(memory),
                progress=progress,
            )
        earlier, matrix = (None, None) if after is None else (after._parts(), after.matrix_)
        corpus = fitting.prepare(
            settings, source, labels, text=text, id=id, after=earlier, matrix=matrix, progress=progress
        )
        needed = embeddings is not None and self.guidance is not None
        E = embed(embeddings, corpus.documents.texts) if needed else None
        parts, matrix = fitting.fit(
            settings,
            corpus,
            folder=work.path,
            embeddings=E,
            confidence=fitting.confidence_of(confidence, len(corpus.documents)),
            after=earlier,
            client=client or client_of(source),
            progress=progress,
        )
        # Only now, when nothing can fail any more, does the new fit take the place of an older one.
        self._pandas = _is_pandas(source)
        self._take(parts, corpus.documents)
        self.matrix_, self._work = matrix, work  # what is on disk goes with the model
        self.encoder_, self.embeddings_ = encoder_of(embeddings), E
        for free, name in self.result_.copies():
            warnings.warn(
                f"The free topic {free!r} has the words of the known topic {name!r}: fewer free topics, or more labels "
                f"for {name!r}, may help; merge makes one of the two.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _settings(self) -> Settings:
        names = [field.name for field in fields(Settings) if field.name != "topics"]
        return Settings(topics=self.topics_order, **{name: getattr(self, name) for name in names})

    def _conclude(self, names: Sequence[str], ids: Sequence[Hashable]) -> None:
        """Build the result from the fitted parts."""
        parts = (self.estimator_.components_, self.estimator_.document_topics_, ids, self.supervision_.counts)
        known = len(self.supervision_.topics)
        self.result_ = Topics(tuple(names), known, self.vectorizer_.get_feature_names_out(), *parts)

    def _belongs(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """How far documents belong to the known topics, labels not looked at."""
        if self.guide_ is None:
            shares = proportions(self.estimator_.transform(X), self.estimator_.components_)
            return shares[:, : len(self.groups_)]
        return self._grouped(self.guide_.probabilities(X, self.threads, embeddings=embeddings))

    def _read(self, texts: Iterable[str], embeddings: Any = None) -> tuple[sp.csr_array, Array | None]:
        """New texts as a matrix, and their embeddings if the model was fitted with any."""
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, got one text: put it in a list, [text].")
        if hasattr(texts, "columns"):
            raise TypeError("expected a list of texts, got a table: give its column of texts; memberships takes both.")
        texts = list(texts)
        X = sp.csr_array(self.vectorizer_.transform(texts))
        if self.guide_ is None or not self.guide_.embedding:
            return X, None
        source = self.encoder_ if embeddings is None else embeddings
        if source is None:
            raise ValueError("This model was fitted with embeddings: give those of the new texts too, as embeddings=.")
        return X, embed(source, texts)

    def _grouped(self, found: Array) -> Array:
        """Probabilities of the topics of the fit as those of the topics after merging."""
        return np.stack([found[:, group].max(axis=1) for group in self.groups_], axis=1)

    def _weights(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """Topic weights of documents, labels not looked at; with guidance under the same soft mask as at the fit."""
        if self.guide_ is None:
            return self.estimator_.transform(X)
        covered = np.array([self.guide_.covers[group].any() for group in self.groups_])
        mask = soft_mask(self._belongs(X, embeddings), covered, len(self.estimator_.components_))
        return self.estimator_.transform(X, penalties=mask)

    # --- going on ---

    def update(
        self,
        source: Any = None,
        labels: Any = None,
        *,
        text: str | None = None,
        id: str | None = None,
        embeddings: Any = None,
        confidence: Any = None,
        grow: bool = True,
        forget_factor: float = 1.0,
        progress: Progress | None = None,
    ) -> Self:
        """Take in new documents, late labels for old ones and new topics, without a fit to everything.

        The aim is the model that a fit to all documents would give. It is reached with those at hand, which are all
        labelled documents and up to 20,000 others; of the rest there are sums, and their weights and memberships stay
        what they were. The model is as it was if anything fails.

        A document is known by its id. One that is known already, with the same text or none, brings at most labels;
        with another text it takes the place of the old one. What a label says replaces what was said before of the same
        document and topics; no label leaves all as it was. A text without an id is always new. Labels that are not the
        name of a known topic make a new one, behind the known topics and before the free ones: no known topic ever
        changes its name or place. Where labels are complete, earlier labelled documents do not have the new topic.

        Parameters
        ----------
        source : list of str, Documents, DataFrame or path, optional
            Documents, new or known.
        labels : column name, or labels in any form, optional
            As in :meth:`fit`. Without a source: a dict from ids of known documents to their labels.
        text, id : str, optional
            Column names of a table.
        embeddings : array, encoder or callable, optional
            Of these documents, for a model that was fitted with an array of embeddings.
        confidence : array (n_documents,), optional
            How far the labels of each of these documents can be trusted.
        grow : bool, default=True
            Take in new terms, behind the old ones, and weigh all terms anew. False: terms and weights stay.
        forget_factor : float, default=1.0
            What earlier documents and labels count from now on beside the new ones; 0.9 halves them in seven updates.
        progress : callable, optional
            As in :meth:`fit`.

        Returns
        -------
        self
            ``update_`` says what was new.

        Examples
        --------
        >>> from topicsteer import TopicModel
        >>> texts = ["green tea leaves", "roast coffee beans", "a tea with leaves", "coffee of roast beans"] * 3
        >>> model = TopicModel(free_topics=0).fit(texts, ["tea", "coffee"] + [None] * 10)
        >>> print(model.update(["hot milk", "milk and coffee"], [["milk"], []]).update_)
        2 new documents; 2 new terms; new topics: milk
        >>> model.update(labels={13: ["coffee", "milk"]})
        <TopicModel: 3 known and 0 free topics of 14 documents, 4 labelled>
        """
        if source is None:
            if not isinstance(labels, Mapping):
                raise ValueError("without a source, labels must be a dict from ids of documents to their labels.")
            documents = Documents(list(labels), [""] * len(labels))
            labels = list(labels.values())
        else:
            documents = documents_of(source, labels, text, id)
        if documents.numbered:
            documents = _numbered_on(documents, self.result_.ids)
        named: list[str] | None = None
        if labels is None or isinstance(labels, str):
            labels, named = documents.labels, documents.topic_names
        known = self.supervision_.topics
        topics = None if named is None else [*known, *(name for name in named if name not in known)]
        given = extend(known, labels, len(documents), topics=topics, complete=self.complete)
        given = forbid(given, documents.forbidden)
        parts, self.update_ = updating.update(
            self._parts(),
            documents,
            given,
            embeddings=self.encoder_ if embeddings is None else embeddings,
            confidence=fitting.confidence_of(confidence, len(documents)),
            grow=grow,
            forget_factor=forget_factor,
            threads=self.threads,
            progress=progress,
        )
        self._take(parts)
        return self

    # --- what was found ---

    @property
    def topics(self) -> Any:
        """Table with a row a topic: name, known or free, labelled documents, share of the corpus, terms."""
        return self._table(self.result_.table())

    @property
    def document_topics(self) -> Any:
        """Table with a row a training document: its id and the share of each topic, 0 where a label forbids it."""
        return self._table(columns(self.result_.ids, self.result_.names, self.result_.proportions))

    def memberships(
        self, source: Any = None, *, text: str | None = None, id: str | None = None, embeddings: Any = None
    ) -> Any:
        """The probability that each document belongs to each known topic; see ``guidance`` for how it is found.

        Parameters
        ----------
        source : list of str, Documents, DataFrame or path, optional
            New documents. Default: those the model was fitted to, whose labels are obeyed.
        text, id : str, optional
            Column names of a table.
        embeddings : array, encoder or callable, optional
            Of new documents, for a model that was fitted with an array of embeddings.

        Returns
        -------
        table
            The id and one column a known topic.
        """
        known = self.result_.names[: self.result_.n_known]
        if source is None:
            return self._table(columns(self.result_.ids, known, self.memberships_))
        documents = documents_of(source, None, text, id)
        belongs = self._belongs(*self._read(documents.texts, embeddings))
        pandas = _is_pandas(source) if hasattr(source, "columns") else self._pandas
        return _table(columns(documents.ids, known, belongs), pandas)

    def transform(self, texts: Iterable[str], *, embeddings: Any = None) -> Array:
        """Topic weights of new texts, known and free; no labels needed, and no text depends on the others."""
        return self._weights(*self._read(texts, embeddings))

    def predict(self, texts: Iterable[str], *, embeddings: Any = None) -> list[list[str]]:
        """Known topics of new texts, strongest first: those whose membership reaches the topic's cut in ``cuts_``."""
        belongs = self._belongs(*self._read(texts, embeddings))
        order = np.argsort(-belongs, axis=1, kind="stable")
        return [
            [self.result_.names[k] for k in ranks if row[k] >= self.cuts_[k]]
            for row, ranks in zip(belongs, order, strict=True)
        ]

    def _number(self, topic: Hashable) -> int:
        """Number of a topic given by its name, which may look like a number, or else by its number."""
        return self.result_.index(str(topic) if str(topic) in self.result_.names else topic)

    def top_terms(self, topic: Hashable, n: int = 10) -> list[str]:
        """The terms that best tell a topic, given by its name or else by its number, from the others."""
        return self.result_.top_terms(self._number(topic), n)

    def top_documents(self, topic: Hashable, n: int = 10) -> Any:
        """Table of the documents with most of a topic: id, share, whether labelled with it, beginning of the text."""
        result = self.result_
        k = self._number(topic)
        rows = result.top_rows(k, n)
        states = self.supervision_.patterns[self.supervision_.pattern[rows]]
        table: dict[str, list[Any]] = {
            "id": [result.ids[i] for i in rows],
            "share": [float(result.proportions[i, k]) for i in rows],
            "labelled": [bool(result.known(k) and state[k] == PERMITTED) for state in states],
        }
        if self.documents_ is not None:
            table["text"] = [_beginning(self.documents_.texts[i]) for i in rows]
        return self._table(table)

    def explain(self, text: str) -> Explanation:
        """The words of a text and what each contributes to each topic."""
        x, embeddings = self._read([text])
        w = self._weights(x, embeddings)[0]
        return self._explanation(text, x, w)

    def explain_document(self, id: Hashable) -> Explanation:
        """The same for a document the model was fitted to, by its id, with the weights it got under its labels."""
        if id not in self.result_.ids:
            raise KeyError(f"the model was not fitted to a document with the id {id!r}")
        return self._explain_row(self.result_.ids.index(id))

    def _explain_row(self, row: int) -> Explanation:
        text = self._texts()[row]
        return self._explanation(text, sp.csr_array(self.vectorizer_.transform([text])), self.result_.W[row])

    def _explanation(self, text: str, x: sp.csr_array, w: Array) -> Explanation:
        result = self.result_
        return explain(text, x, w, result.H, result.names, result.vocabulary, self.vectorizer_.locate(text))

    def guidance_report(self) -> Any:
        """Table with a row a known topic: whether its labels took effect; see `label_effects`."""
        return self._table(label_effects(self.result_, self.supervision_, self.profiles_))

    # --- labelling on ---

    def suggest(self, n: int = 20, source: Any = None, *, text: str | None = None, id: str | None = None) -> Any:
        """Which documents to label next, best first; label some, fit again, and ask again.

        Parameters
        ----------
        n : int, default=20
            How many; near duplicates are left out.
        source : list of str, Documents, DataFrame or path, optional
            Documents to choose from, if others than the unlabelled ones of the fit.
        text, id : str, optional
            Column names of a table.

        Returns
        -------
        table
            The id, the beginning of the text, the likely topics and why the document was chosen.
        """
        old = source is None
        if old:
            documents = Documents(self.result_.ids, self._texts())
        else:
            documents = documents_of(source, None, text, id)
            old = self.fits(documents)
        if old:
            X = self.matrix_ if self.matrix_ is not None else sp.csr_array(self.vectorizer_.transform(documents.texts))
            belongs = self.memberships_
        else:
            X, embeddings = self._read(documents.texts)
            belongs = self._belongs(X, embeddings)
        rows = np.flatnonzero((row_sizes(X) > 0) & ~(self.supervision_.labelled if old else np.False_))
        chosen = suggest(
            lambda rows: self._positions(rows_of(X, rows)),
            belongs,
            self.supervision_,
            self._seen(),
            n,
            rows=rows,
            seed=self.random_state,
        )
        names = self.result_.names
        return self._table(
            {
                "id": [documents.ids[c.row] for c in chosen],
                "text": [_beginning(documents.texts[c.row]) for c in chosen],
                "topics": ["; ".join(names[k] for k in c.topics) for c in chosen],
                "why": [c.why for c in chosen],
            }
        )

    def audit(self, n: int | None = None) -> Any:
        """Labels that look wrong or missing, strongest first, each document predicted without its own labels.

        Parameters
        ----------
        n : int, optional
            How many. Default: every label that was given, and what seems missing.

        Returns
        -------
        table
            The id, the topic, what was given ("permitted", "forbidden", "unknown"), its probability, and why.
        """
        learnt = self.guide_
        if learnt is None:
            raise ValueError("an audit needs labels and guidance: fit with guidance, and with some documents labelled.")
        found = np.zeros((len(learnt.rows), learnt.n_known), dtype=np.float32)
        found[:, learnt.covered] = learnt.left_out
        doubts = audit(self._grouped(found), learnt.rows, self.supervision_)[:n]
        table: dict[str, list[Any]] = {
            "id": [self.result_.ids[d.row] for d in doubts],
            "topic": [self.result_.names[d.topic] for d in doubts],
            "given": [d.given for d in doubts],
            "probability": [d.probability for d in doubts],
            "why": [d.why for d in doubts],
        }
        if self.documents_ is not None:
            table["text"] = [_beginning(self.documents_.texts[d.row]) for d in doubts]
        return self._table(table)

    def outlook(self) -> Outlook:
        """Whether more labels pay: what a tenth of the labels changes in the answers for unlabelled documents."""
        X, embeddings = self._read(self._texts(), self.embeddings_)
        fewer = self._settings().learn(
            X,
            nine_tenths(self.supervision_, self.random_state),
            self.vectorizer_,
            embeddings=embeddings,
            directions=None if self.guide_ is None else self.guide_.directions,
        )
        rows = np.flatnonzero(~self.supervision_.labelled)
        after = self.memberships_[rows]
        E = None if embeddings is None else embeddings[rows]
        before = np.zeros_like(after) if fewer is None else fewer.probabilities(X[rows], self.threads, embeddings=E)
        return outlook(after, before, self.supervision_.counts)

    def _positions(self, X: sp.csr_array) -> Array:
        """Where documents are in the latent space; without guidance, or in a tiny corpus, their topic shares."""
        if self.guide_ is not None and self.guide_.seen.size:
            return self.guide_.positions(X, self.threads)
        return proportions(self.estimator_.transform(X), self.estimator_.components_)

    def _seen(self) -> Array:
        """ZᵀZ of the labelled documents."""
        if self.guide_ is not None and self.guide_.seen.size:
            return self.guide_.seen
        Z = self.result_.proportions[self.supervision_.labelled]
        return np.asarray(Z.T @ Z)

    # --- correcting ---

    def rename(self, old: Hashable, new: str) -> Self:
        """Give a topic another name, known or free."""
        k = self._number(old)
        names = list(self.result_.names)
        if new in names[:k] + names[k + 1 :]:
            raise ValueError(f"there is a topic {new!r} already; use merge to make one of two.")
        names[k] = new
        return self._named(names, self.result_.n_known)

    def merge(self, topics: Sequence[Hashable], name: str | None = None) -> Self:
        """Make one topic of several; their weights and labels are added up.

        Parameters
        ----------
        topics : sequence of topics
            Names or numbers. The merged topic stands at the place of the first of them; it is known if one of them is.
        name : str, optional
            Default: the name of the first of them.
        """
        group = sorted({self._number(topic) for topic in topics})
        if len(group) < 2:
            raise ValueError("merge needs two topics or more.")
        first, rest = group[0], group[1:]
        estimator, known = self.estimator_, [k for k in group if k < self.result_.n_known]
        if self.hand_ is not None and estimator.past_ is not None:
            sizes = np.ones(len(self.result_))
            sizes[group] = self.result_.H[group].sum(axis=1)  # as merge_topics weighs them
            estimator.past_ = estimator.past_.times(sizes).merge(group)
        estimator.components_, estimator.document_topics_ = merge_topics(self.result_.H, self.result_.W, group)
        if len(known) > 1:
            counts = self.supervision_.counts[known][:, None]
            self.profiles_[first] = (counts * self.profiles_[known]).sum(axis=0) / max(int(counts.sum()), 1)
            self.profiles_ = np.delete(self.profiles_, known[1:], axis=0)
            self.supervision_ = self.supervision_.merge(known)
            self.groups_[first] = [k for group in (self.groups_[k] for k in known) for k in group]
            memberships = np.delete(self.memberships_, known[1:], axis=1)  # a copy: the old ones may be in a file
            memberships[:, first] = self.memberships_[:, known].max(axis=1)
            self.memberships_ = memberships
            self.cuts_[first] = self.cuts_[known].min()
            self.cuts_ = np.delete(self.cuts_, known[1:])
            self.groups_ = [group for k, group in enumerate(self.groups_) if k not in known[1:]]
        names = [n for k, n in enumerate(self.result_.names) if k not in rest]
        names[first] = name or names[first]
        return self._named(names, self.result_.n_known - max(len(known) - 1, 0))

    def _named(self, names: Sequence[str], known: int) -> Self:
        self.supervision_ = Supervision(tuple(names[:known]), self.supervision_.pattern, self.supervision_.patterns)
        self.estimator_.topic_names_ = np.array(list(names), dtype=object)
        self.estimator_.n_known_ = known
        self._conclude(names, self.result_.ids)
        return self

    # --- files and other tools ---

    def save(self, path: str | Path, *, texts: bool = False, updatable: bool = True) -> None:
        """Write the model to a folder, without pickle; an older model there is replaced only when all is written.

        Parameters
        ----------
        path : str or Path
            A folder, new or with an older model.
        texts : bool, default=False
            Store the documents too.
        updatable : bool, default=True
            Store what :meth:`update` needs: how often which words occur in the labelled documents and in up to 20,000
            others. Not their texts, but much of what is in them.
        """
        parts = self._parts()
        if texts:
            self._texts()
        parts = replace(parts, texts=parts.texts if texts else None, hand=parts.hand if updatable else None)
        modelfiles.write(path, parts)

    @classmethod
    def load(cls, path: str | Path, *, lemmatizer: Callable[[str], str] | None = None, encoder: Any = None) -> Self:
        """Read a model that :meth:`save` wrote; it answers bit for bit as before.

        Parameters
        ----------
        path : str or Path
            The folder.
        lemmatizer : callable, optional
            The same function as at the fit, if there was one: functions are not stored.
        encoder : encoder or callable, optional
            The same as at the fit, if the model was fitted with embeddings.
        """
        parts = modelfiles.read(path, lemmatizer)
        model = cls(**parts.settings)
        model._pandas, model.encoder_, model.embeddings_ = False, encoder_of(encoder), None
        model._take(parts)
        return model

    def _parts(self) -> modelfiles.Parts:
        return modelfiles.Parts(
            settings={name: getattr(self, name) for name in (*modelfiles.SETTINGS, *modelfiles.WORDS)},
            names=self.result_.names,
            ids=self.result_.ids,
            texts=None if self.documents_ is None else self.documents_.texts,
            fingerprint=self.fingerprint_,
            vectorizer=self.vectorizer_,
            estimator=self.estimator_,
            supervision=self.supervision_,
            guide=self.guide_,
            groups=self.groups_,
            profiles=self.profiles_,
            memberships=self.memberships_,
            cuts=self.cuts_,
            digests=self.digests_,
            weights=self.weights_,
            hand=self.hand_,
            learnt_from=self.learnt_from_,
        )

    def _take(self, parts: modelfiles.Parts, documents: Documents | None = None) -> None:
        """Become the model of these parts."""
        self.vectorizer_, self.estimator_ = parts.vectorizer, parts.estimator
        self.supervision_, self.guide_, self.groups_ = parts.supervision, parts.guide, parts.groups
        self.profiles_, self.fingerprint_ = parts.profiles, parts.fingerprint
        self.memberships_, self.cuts_ = parts.memberships, parts.cuts
        self.digests_, self.weights_ = parts.digests, parts.weights
        self.hand_, self.learnt_from_ = parts.hand, parts.learnt_from
        self.matrix_ = None
        stored = None if parts.texts is None or documents is not None else Documents(parts.ids, parts.texts)
        self.documents_ = stored if documents is None else documents
        self._conclude(parts.names, parts.ids)

    def attach(self, source: Any, *, text: str | None = None, id: str | None = None) -> Self:
        """Give a model that was saved without them the documents it was fitted to.

        Parameters
        ----------
        source : list of str, Documents, DataFrame or path
            The same documents as at the fit; others are refused.
        text, id : str, optional
            Column names of a table.

        Returns
        -------
        self
        """
        documents = documents_of(source, None, text, id)
        if not self.fits(documents):
            raise ValueError(
                "These are not the documents that the model was fitted to: it takes the same texts and ids in the same "
                "order, so the same columns for both."
            )
        self.documents_ = documents
        return self

    def fits(self, documents: Documents) -> bool:
        """Whether these are the documents that the model was fitted to."""
        return fingerprint(modelfiles.digests(documents)) == self.fingerprint_

    def to_parquet(self, folder: str | Path, *, client: Any = None) -> None:
        """Write the tables of the training documents as Parquet files, part by part, for what reads many files.

        ``folder/memberships/*.parquet`` are the rows of :meth:`memberships`, ``folder/document_topics/*.parquet`` those
        of :attr:`document_topics`; there is never more than a part of them in memory.

        Parameters
        ----------
        folder : str or Path
            Tables that are there are replaced.
        client : distributed.Client, optional
            Of a Dask cluster whose workers see the folder, and that of the fit: they write the files.
        """
        folder, result = Path(folder), self.result_
        if client is not None:
            folder.mkdir(parents=True, exist_ok=True)
            shared_folder(client, folder)
        known = result.names[: result.n_known]
        write_parts(folder / "memberships", self.memberships_, known, result.ids, client=client)
        share = partial(shares, sizes=result.H.sum(axis=1))
        write_parts(folder / "document_topics", result.W, result.names, result.ids, change=share, client=client)

    def prepare_topic_data(self) -> dict[str, Any]:
        """The model as topicwizard takes it: ``topicwizard.visualize(topic_data=model.prepare_topic_data())``."""
        texts = self._texts()
        return viewers.topic_data(self.result_, texts, self.vectorizer_.transform(texts), self.transform)

    def to_pyldavis(self) -> Any:
        """PyLDAvis's prepared data; needs that package. Its topic 1 is the first row of :attr:`topics`, and so on."""
        return viewers.pyldavis(self.result_, self.vectorizer_.transform(self._texts()))

    def report(self, path: str | Path, *, title: str = "Topics", evaluation: Evaluation | None = None) -> None:
        """Write one self-contained HTML page: topics, map, examples, guidance, evaluation, settings.

        Parameters
        ----------
        path : str or Path
            The file to write.
        title : str, default="Topics"
            Title of the page.
        evaluation : Evaluation, optional
            From :meth:`evaluate`, to be shown too.
        """
        examples = {}
        if self.documents_ is not None:
            for k, name in enumerate(self.result_.names):
                rows = self.result_.top_rows(k, EXAMPLES)
                shown = [(i, self._explain_row(i)) for i in rows]
                examples[k] = [Example(self.result_.ids[i], e.text, e.strengths(name, MARKED)) for i, e in shown]
        estimator = {k: v for k, v in self.estimator_.get_params().items() if k not in ("init", "topics")}
        content = ReportData(
            title=title,
            topics=self.result_,
            examples=examples,
            guidance=label_effects(self.result_, self.supervision_, self.profiles_),
            evaluation=None if evaluation is None else evaluation.tables(),
            settings={"fingerprint of the documents": self.fingerprint_} | estimator | self.vectorizer_.get_params(),
            history=self.estimator_.objective_history_.tolist(),
        )
        write_report(content, path)

    def evaluate(
        self,
        source: Any,
        labels: Any = None,
        *,
        text: str | None = None,
        id: str | None = None,
        embeddings: Any = None,
        folds: int = 3,
        curve: bool = True,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Hide labels, find them again with these settings, and compare with two plain baselines.

        Parameters
        ----------
        source, labels, text, id, embeddings
            As in :meth:`fit`.
        folds : int, default=3
            Parts in which labels are hidden in turn.
        curve : bool, default=True
            Also learn from fewer labels, to tell what more of them would bring. That is three fits more a part.
        progress : callable, optional
            As in :meth:`fit`, with the stages "words" and "evaluate".

        Returns
        -------
        Evaluation
        """
        settings = self._settings()
        corpus = fitting.prepare(settings, source, labels, text=text, id=id, progress=progress)
        return fitting.evaluate(settings, corpus, embeddings=embeddings, folds=folds, curve=curve, progress=progress)

    def _texts(self) -> Sequence[str]:
        if self.documents_ is None:
            raise ValueError(
                "This model does not hold its documents: give them with attach, or save the model with texts=True."
            )
        return self.documents_.texts

    def _table(self, columns: dict[str, Any]) -> Any:
        return _table(columns, self._pandas)


def _numbered_on(documents: Documents, taken: Sequence[Hashable]) -> Documents:
    """Documents that have no ids of their own, with numbers that are not taken."""
    first = 1 + max((name for name in taken if isinstance(name, int)), default=len(taken) - 1)
    return replace(documents, ids=[first + i for i in range(len(documents))])


def _is_pandas(source: Any) -> bool:
    return type(source).__module__.startswith("pandas")


def _table(columns: dict[str, Any], pandas: bool) -> Any:
    """A table in the user's kind: pandas if the documents came in pandas, else polars."""
    return nw.from_dict(columns, backend="pandas" if pandas else "polars").to_native()


def _beginning(text: str, length: int = 160) -> str:
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"
