"""TopicModel: texts in, named topics out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from topicsteer.analysis.effects import label_effects
from topicsteer.analysis.evaluate import Evaluation
from topicsteer.analysis.explain import Explanation
from topicsteer.analysis.suggest import Doubt, Outlook, outlook, suggest
from topicsteer.analysis.topics import Topics, shares
from topicsteer.backends import as_rows, on_cluster, on_disk
from topicsteer.backends.dask import client_of, shared_folder
from topicsteer.corpora import Documents
from topicsteer.estimator import TSNMF
from topicsteer.guidance.embeddings import Embeddings, embed, encoder_of
from topicsteer.guidance.guide import Guide
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.folds import nine_tenths
from topicsteer.labels.forms import extend, forbid
from topicsteer.labels.supervision import PERMITTED, Supervision
from topicsteer.model import edit, files, parts, pipeline
from topicsteer.model.fitted import Fitted
from topicsteer.model.pipeline import Settings, documents_of
from topicsteer.model.spool import spool, too_large
from topicsteer.model.state import FittedState, digests, fingerprint
from topicsteer.nmf.protocols import Rows
from topicsteer.report import viewers
from topicsteer.report.page import Example, ReportData
from topicsteer.report.page import write as write_report
from topicsteer.report.tables import columns, write_parts
from topicsteer.system.arrays import StorageError
from topicsteer.system.files import Scratch
from topicsteer.system.memory import in_bytes
from topicsteer.system.types import Array, Progress
from topicsteer.text import TextVectorizer

if TYPE_CHECKING:
    from distributed import Client

    from topicsteer.model.update import Update

Table = Any  # a DataFrame of polars, or of pandas where the documents came in pandas

EXAMPLES = 3  # documents shown for each topic in a report,
MARKED = 0.12  # with the words marked that contribute this much of what the strongest word does


class TopicModel(BaseEstimator):
    """Topics of a pile of texts that follow the labels of a few of them.

    Parameters
    ----------
    free_topics : int or "auto", default=10
        Topics for what nobody named, beside the known ones. "auto": as many as there are
        further directions in the documents that hold half as much as a typical known topic, at most 10.
    topics : sequence of str or Codebook, optional
        Names and order of the known topics; may name topics without a label. Default: those of the labels, sorted.
        A codebook brings keys, descriptions and words of its own.
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
    codebook : Codebook
        The known topics, each with a key that never changes.
    state_ : FittedState
        All of it as arrays and plain values.
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

    state_: FittedState
    documents_: Documents | None
    embeddings_: Array | None
    update_: Update
    _rows: Rows | None
    _lemmatizer: Callable[[str], str] | None

    def __init__(
        self,
        free_topics: int | str = 10,
        *,
        topics: Sequence[str] | Codebook | None = None,
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
        self._topics = topics  # ``topics`` itself is the table of what was found
        self.complete = complete
        self.guidance = guidance
        self.pinned = pinned
        self.banned = banned
        self.descriptions = descriptions
        self.vectorizer = vectorizer
        self.estimator = estimator
        self.random_state = random_state
        self.threads = threads

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that the model was made with.

        Parameters
        ----------
        deep : bool, default=True
            With those of the vectoriser and the estimator, as ``vectorizer__min_df``.
        """
        given = {name: getattr(self, "_topics" if name == "topics" else name) for name in self._get_param_names()}
        if deep:
            for part in ("vectorizer", "estimator"):
                inner = given[part].get_params() if given[part] is not None else {}
                given |= {f"{part}__{name}": value for name, value in inner.items()}
        return given

    def set_params(self, **params: Any) -> Self:
        """Change arguments, for the next fit."""
        if "topics" in params:
            self._topics = params.pop("topics")
        return super().set_params(**params) if params else self

    def __repr__(self) -> str:
        if not self._is_fitted:
            return f"<TopicModel: not fitted, {self.free_topics} free topics>"
        known, free = len(self.codebook), len(self.state_.free_names)
        labelled = int(self.supervision_.labelled.sum())
        documents = len(self.state_.ids)
        return f"<TopicModel: {known} known and {free} free topics of {documents:,} documents, {labelled:,} labelled>"

    def _repr_html_(self) -> str:
        table = getattr(self.topics, "_repr_html_", None) if self._is_fitted else None
        return f"<p>{repr(self)[1:-1]}</p>" + (table() if table else "")

    # --- the fitted parts ---

    @property
    def _is_fitted(self) -> bool:
        return "state_" in self.__dict__

    @property
    def result_(self) -> Topics:
        """Names, terms and documents of the topics."""
        return self.state_.topics

    @property
    def codebook(self) -> Codebook:
        """The known topics."""
        return self.state_.codebook

    @property
    def supervision_(self) -> Supervision:
        """The labels as they were understood."""
        return self.state_.supervision

    @property
    def vectorizer_(self) -> TextVectorizer:
        """From texts to rows."""
        return self._fitted.vectorizer

    @property
    def estimator_(self) -> TSNMF:
        """The factorisation."""
        return self._fitted.estimator

    @property
    def guide_(self) -> Guide | None:
        """From documents to probabilities; None without labels or guidance."""
        return self._fitted.guide

    @property
    def memberships_(self) -> Array:
        """Memberships of the training documents, labels obeyed."""
        return self.state_.memberships

    @property
    def cuts_(self) -> Array:
        """The membership from which each known topic counts as present."""
        return self.state_.cuts

    @property
    def profiles_(self) -> Array:
        """Mean terms of the documents labelled with each known topic."""
        return self.state_.profiles

    @property
    def fingerprint_(self) -> str:
        """Hash of the training documents."""
        return self.state_.fingerprint

    @property
    def matrix_(self) -> sp.csr_array | Rows | None:
        """The documents as the factorisation took them; None in a model that was loaded."""
        return None if self._rows is None else self._rows if self._rows.matrix is None else self._rows.matrix

    @property
    def _fitted(self) -> Fitted:
        """The state at work; made anew when the state or the number of threads is another."""
        now: Fitted | None = self.__dict__.get("_at_work")
        if now is None or now.state is not self.state_ or now.threads != self.threads:
            now = self._at_work = Fitted(self.state_, self._lemmatizer, self.threads)
        return now

    # --- fitting ---

    def fit(
        self,
        source: object,
        labels: object = None,
        *,
        text: str | None = None,
        id: str | None = None,
        embeddings: Embeddings | None = None,
        confidence: ArrayLike | None = None,
        after: TopicModel | None = None,
        memory: int | str | None = None,
        folder: str | Path | None = None,
        client: Client | None = None,
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
        earlier, fitted = (None, None) if after is None else (after.state_, (after.vectorizer_, after._rows))
        corpus = pipeline.prepare(
            settings, source, labels, text=text, id=id, after=earlier, fitted=fitted, progress=progress
        )
        E = None
        if embeddings is not None and self.guidance is not None:
            E = embed(embeddings, corpus.documents.texts)
        client, rows = client or client_of(source), None
        if client is not None:
            corpus = replace(corpus, rows=on_disk(corpus.rows, work.path / "blocks"))
            rows = on_cluster(corpus.rows, client)
        state = pipeline.fit(
            settings,
            parts.plain_parameters(self.get_params(deep=False)),
            corpus,
            folder=work.path,
            rows=rows,
            embeddings=E,
            confidence=pipeline.confidence_of(confidence, len(corpus.documents)),
            after=None if after is None else pipeline.spared(corpus.codebook, after._fitted),
            progress=progress,
        )
        # Only now, when nothing can fail any more, does the new fit take the place of an older one.
        self.state_, self.documents_ = state, corpus.documents
        self._lemmatizer, self._pandas = corpus.vectorizer.lemmatizer, _is_pandas(source)
        self._rows, self._work = corpus.rows, work  # what is on disk goes with the model
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
        given = self.get_params(deep=False)
        return Settings(**{field.name: given[field.name] for field in fields(Settings)})

    def _read(self, texts: Iterable[str], embeddings: Embeddings | None = None) -> tuple[sp.csr_array, Array | None]:
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

    # --- going on ---

    def update(
        self,
        source: object = None,
        labels: object = None,
        *,
        text: str | None = None,
        id: str | None = None,
        embeddings: Embeddings | None = None,
        confidence: ArrayLike | None = None,
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
        from topicsteer.model.update import update  # a fit has no use for it

        state, self.update_ = update(
            self.state_,
            self._settings(),
            documents,
            given,
            embeddings=self.encoder_ if embeddings is None else embeddings,
            confidence=pipeline.confidence_of(confidence, len(documents)),
            grow=grow,
            forget_factor=forget_factor,
            lemmatizer=self._lemmatizer,
            progress=progress,
        )
        if state is not self.state_:
            self._rows = None
            if self.embeddings_ is not None:
                encode = self.encoder_ if embeddings is None else embeddings
                self.embeddings_ = None if encode is None else self._embedded(state, documents, encode)
            self.documents_ = None if state.texts is None else Documents(state.ids, state.texts)
        self.state_ = state
        return self

    def _embedded(self, state: FittedState, documents: Documents, source: Embeddings) -> Array | None:
        """The embeddings of all documents, those of an update in their rows; None if an encoder can be asked again."""
        if self.embeddings_ is None or encoder_of(source) is not None:
            return None
        given, row_of = embed(source, documents.texts), {name: row for row, name in enumerate(state.ids)}
        found = np.zeros((len(state.ids), given.shape[1]), dtype=given.dtype)
        found[: len(self.embeddings_)] = self.embeddings_
        for name, text, row in zip(documents.ids, documents.texts, given, strict=True):
            if text:
                found[row_of[name]] = row
        return found

    # --- what was found ---

    @property
    def topics(self) -> Table:
        """Table with a row a topic: name, known or free, labelled documents, share of the corpus, terms."""
        return self._table(self.result_.table())

    @property
    def document_topics(self) -> Table:
        """Table with a row a training document: its id and the share of each topic, 0 where a label forbids it."""
        return self._table(columns(self.result_.ids, self.result_.names, self.result_.proportions))

    def memberships(
        self,
        source: object = None,
        *,
        text: str | None = None,
        id: str | None = None,
        embeddings: Embeddings | None = None,
    ) -> Table:
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
        belongs = self._fitted.belongs(*self._read(documents.texts, embeddings))
        pandas = _is_pandas(source) if hasattr(source, "columns") else self._pandas
        return _table(columns(documents.ids, known, belongs), pandas)

    def transform(self, texts: Iterable[str], *, embeddings: Embeddings | None = None) -> Array:
        """Topic weights of new texts, known and free; no labels needed, and no text depends on the others."""
        return self._fitted.weights(*self._read(texts, embeddings))

    def predict(self, texts: Iterable[str], *, embeddings: Embeddings | None = None) -> list[list[str]]:
        """Known topics of new texts, strongest first: those whose membership reaches the topic's cut in ``cuts_``."""
        return self.decide(self._fitted.belongs(*self._read(texts, embeddings)))

    def decide(self, belongs: Array) -> list[list[str]]:
        """Known topics of documents whose memberships are at hand, one column for each known topic."""
        return self._fitted.decide(belongs)

    def _number(self, topic: Hashable) -> int:
        """Number of a topic given by its name, which may look like a number, or else by its number."""
        return self.result_.index(str(topic) if str(topic) in self.result_.names else topic)

    def top_terms(self, topic: Hashable, n: int = 10) -> list[str]:
        """The terms that best tell a topic, given by its name or else by its number, from the others."""
        return self.result_.top_terms(self._number(topic), n)

    def top_documents(self, topic: Hashable, n: int = 10) -> Table:
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
        return self._fitted.explain(text, x, self._fitted.weights(x, embeddings)[0])

    def explain_document(self, id: Hashable) -> Explanation:
        """The same for a document the model was fitted to, by its id, with the weights it got under its labels."""
        if id not in self.result_.ids:
            raise KeyError(f"the model was not fitted to a document with the id {id!r}")
        return self._explain_row(self.result_.ids.index(id))

    def _explain_row(self, row: int) -> Explanation:
        text = self._texts()[row]
        return self._fitted.explain(text, sp.csr_array(self.vectorizer_.transform([text])), self.result_.W[row])

    def guidance_report(self) -> Table:
        """Table with a row a known topic: whether its labels took effect; see `label_effects`."""
        return self._table(label_effects(self.result_, self.supervision_, self.profiles_))

    # --- labelling on ---

    def suggest(self, n: int = 20, source: object = None, *, text: str | None = None, id: str | None = None) -> Table:
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
            X, belongs = self._rows or as_rows(self.vectorizer_.transform(documents.texts)), self.memberships_
        else:
            matrix, embeddings = self._read(documents.texts)
            X, belongs = as_rows(matrix), self._fitted.belongs(matrix, embeddings)
        rows = np.flatnonzero((X.sizes > 0) & ~(self.supervision_.labelled if old else np.False_))
        chosen = suggest(
            lambda rows: self._fitted.positions(X.take(rows)),
            belongs,
            self.supervision_,
            self._fitted.seen,
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

    def audit(self, n: int | None = None) -> Table:
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
        doubts = self.doubts(n)
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

    def doubts(self, n: int | None = None) -> list[Doubt]:
        """What :meth:`audit` shows, as records with the numbers of documents and topics."""
        return self._fitted.doubts(n)

    def outlook(self) -> Outlook:
        """Whether more labels pay: what a tenth of the labels changes in the answers for unlabelled documents."""
        fewer = self.relearn(nine_tenths(self.supervision_, self.random_state))
        rows = np.flatnonzero(~self.supervision_.labelled)
        after = self.memberships_[rows]
        before = np.zeros_like(after)
        if fewer is not None:
            X, E = self.training_rows, self._training_embeddings()
            E = None if E is None else E[rows]
            before = fewer.probabilities(X.take(rows), self.threads, embeddings=E)
        return outlook(after, before, self.supervision_.counts)

    def relearn(self, supervision: Supervision) -> Guide | None:
        """The guide of the training documents under other labels; latent semantics stay. None without labels."""
        X = self.training_rows
        task = pipeline.Task(
            X, supervision, self.codebook, self.vectorizer_, np.ones(X.shape[0]), self._training_embeddings()
        )
        return pipeline.learn(
            self._settings(), replace(task, directions=None if self.guide_ is None else self.guide_.directions)
        )

    @property
    def training_rows(self) -> Rows:
        """The documents of the fit as rows; read again from their texts in a model that was loaded."""
        return self._rows or as_rows(self.vectorizer_.transform(self._texts()))

    def _training_embeddings(self) -> Array | None:
        if self.guide_ is None or not self.guide_.embedding:
            return None
        if self.embeddings_ is None and self.encoder_ is not None:
            self.embeddings_ = embed(self.encoder_, self._texts())
        if self.embeddings_ is None:
            raise ValueError("This model was fitted with embeddings: load it with the encoder that made them.")
        return self.embeddings_

    # --- correcting ---

    def rename(self, old: Hashable, new: str) -> Self:
        """Give a topic another name, known or free."""
        k = self._number(old)
        names = list(self.result_.names)
        if new in names[:k] + names[k + 1 :]:
            raise ValueError(f"there is a topic {new!r} already; use merge to make one of two.")
        names[k] = new
        return self.rename_topics(names)

    def rename_topics(self, names: Sequence[str]) -> Self:
        """Give all topics other names at once: known ones first, then the free ones."""
        self.state_ = edit.rename(self.state_, names)
        return self

    def with_keys(self, keys: Sequence[int]) -> Self:
        """Give the known topics other keys: for a model that was saved before topics had any."""
        self.state_ = edit.with_keys(self.state_, keys)
        return self

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
        self.state_ = edit.merge(self.state_, group, name)
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
        if texts:
            self._texts()
        state = replace(self.state_, texts=self.documents_.texts if texts and self.documents_ else None)
        files.write(path, state if updatable else replace(state, hand=None, past=None))

    @classmethod
    def load(
        cls, path: str | Path, *, lemmatizer: Callable[[str], str] | None = None, encoder: Embeddings | None = None
    ) -> Self:
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
        state = files.read(path)
        if state.lemmatized and lemmatizer is None:
            raise StorageError(f"{path} was fitted with a lemmatizer: give the same one to load.")
        model = cls(**parts.parameters_of(state.parameters, lemmatizer))
        model.state_, model._lemmatizer, model._rows = state, lemmatizer, None
        model._pandas, model.encoder_, model.embeddings_ = False, encoder_of(encoder), None
        model.documents_ = None if state.texts is None else Documents(state.ids, state.texts)
        return model

    def attach(self, source: object, *, text: str | None = None, id: str | None = None) -> Self:
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
        self.documents_, self.state_ = documents, replace(self.state_, texts=documents.texts)
        return self

    def fits(self, documents: Documents) -> bool:
        """Whether these are the documents that the model was fitted to."""
        return fingerprint(digests(documents)) == self.fingerprint_

    def to_parquet(self, folder: str | Path, *, client: Client | None = None) -> None:
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

    def to_pyldavis(self) -> Table:
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
        source: object,
        labels: object = None,
        *,
        text: str | None = None,
        id: str | None = None,
        embeddings: Embeddings | None = None,
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
        corpus = pipeline.prepare(settings, source, labels, text=text, id=id, progress=progress)
        return pipeline.evaluate(settings, corpus, embeddings=embeddings, folds=folds, curve=curve, progress=progress)

    def _texts(self) -> Sequence[str]:
        if self.documents_ is None:
            raise ValueError(
                "This model does not hold its documents: give them with attach, or save the model with texts=True."
            )
        return self.documents_.texts

    def _table(self, columns: dict[str, Any]) -> Table:
        return _table(columns, self._pandas)


def _numbered_on(documents: Documents, taken: Sequence[Hashable]) -> Documents:
    """Documents that have no ids of their own, with numbers that are not taken."""
    first = 1 + max((name for name in taken if isinstance(name, int)), default=len(taken) - 1)
    return replace(documents, ids=[first + i for i in range(len(documents))])


def _is_pandas(source: Any) -> bool:
    return type(source).__module__.startswith("pandas")


def _table(columns: dict[str, Any], pandas: bool) -> Table:
    """A table in the user's kind: pandas if the documents came in pandas, else polars."""
    return nw.from_dict(columns, backend="pandas" if pandas else "polars").to_native()


def _beginning(text: str, length: int = 160) -> str:
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"
