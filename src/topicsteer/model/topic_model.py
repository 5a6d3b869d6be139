"""TopicModel: texts in, named topics out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from topicsteer.analysis.evaluate import Evaluation
from topicsteer.analysis.suggest import StoppingAdvice, stopping_advice
from topicsteer.backends import on_cluster, on_disk
from topicsteer.backends.dask import client_of
from topicsteer.corpora import Documents, ReadOptions
from topicsteer.estimator import TSNMF
from topicsteer.guidance.embeddings import Embeddings, embed, encoder_of
from topicsteer.guidance.guide import Guide
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.folds import nine_tenths
from topicsteer.labels.forms import extend, forbid
from topicsteer.labels.supervision import Supervision
from topicsteer.model import edit, files, pipeline, predictor
from topicsteer.model.fitted_model import FittedModel, is_pandas
from topicsteer.model.pipeline import Settings, documents_of
from topicsteer.model.spool import put_on_disk, too_large
from topicsteer.model.state import FittedState
from topicsteer.system.arrays import StorageError
from topicsteer.system.files import Scratch
from topicsteer.system.memory import in_bytes
from topicsteer.system.renamed import Renamed, renamed_arguments
from topicsteer.system.types import Array, Progress
from topicsteer.text import TextVectorizer

if TYPE_CHECKING:
    from distributed import Client

    from topicsteer.model.update import Update


class TopicModel(FittedModel, BaseEstimator):
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
    keywords, banned : dict of topic to list of words, optional
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

    update_: Update
    pinned, outlook = Renamed("keywords"), Renamed("stopping_advice")

    @renamed_arguments(pinned="keywords")
    def __init__(
        self,
        free_topics: int | str = 10,
        *,
        topics: Sequence[str] | Codebook | None = None,
        complete: bool = True,
        guidance: str | None = "auto",
        keywords: Mapping[str, Sequence[str]] | None = None,
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
        self.keywords = keywords
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

    @renamed_arguments(pinned="keywords")
    def set_params(self, **params: Any) -> Self:
        """Change arguments, for the next fit."""
        if "topics" in params:
            self._topics = params.pop("topics")
        return super().set_params(**params) if params else self

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
            Called as ``progress(stage, done, total, detail)`` with the stages "terms", "guide" and "fit", and before
            them "columns" and "blocks" where they come from a file.

        Returns
        -------
        self
        """
        work, settings = Scratch(folder), self._settings()
        if too_large(source, memory):
            options = ReadOptions(text=text, labels=labels if isinstance(labels, str) else None, id=id)
            own, limit = settings.new_vectorizer(), in_bytes(memory)
            source = put_on_disk(source, work.path / "corpus", options, own, memory=limit, progress=progress)
        earlier, rows = (None, None) if after is None else (after._fitted, after._rows)
        corpus = pipeline.prepare(
            settings, source, labels, text=text, id=id, after=earlier, rows=rows, progress=progress
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
            predictor.plain_parameters(self.get_params(deep=False)),
            corpus,
            folder=work.path,
            rows=rows,
            embeddings=E,
            confidence=pipeline.confidence_of(confidence, len(corpus.documents)),
            after=earlier,
            progress=progress,
        )
        # Only now, when nothing can fail any more, does the new fit take the place of an older one.
        self.state_, self.documents_ = state, corpus.documents
        self._lemmatizer, self._pandas = corpus.vectorizer.lemmatizer, is_pandas(source)
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

    def stopping_advice(self) -> StoppingAdvice:
        """Whether more labels pay: what a tenth of the labels changes in the answers for unlabelled documents."""
        fewer = self.relearn(nine_tenths(self.supervision_, self.random_state))
        rows = np.flatnonzero(~self.supervision_.labelled)
        after = self.memberships_[rows]
        before = np.zeros_like(after)
        if fewer is not None:
            X, E = self.training_rows, self._training_embeddings()
            E = None if E is None else E[rows]
            before = fewer.probabilities(X.take(rows), self.threads, embeddings=E)
        return stopping_advice(after, before, self.supervision_.counts)

    def relearn(self, supervision: Supervision) -> Guide | None:
        """The guide of the training documents under other labels; latent semantics stay. None without labels."""
        X = self.training_rows
        task = pipeline.Task(
            X, supervision, self.codebook, self.vectorizer_, np.ones(X.shape[0]), self._training_embeddings()
        )
        return pipeline.learn(
            self._settings(), replace(task, directions=None if self.guide_ is None else self.guide_.directions)
        )

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
        files.write(path, state if updatable else replace(state, reservoir=None, history=None))

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
        model = cls(**predictor.parameters_of(state.parameters, lemmatizer))
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
        if not self.accepts(documents):
            raise ValueError(
                "These are not the documents that the model was fitted to: it takes the same texts and ids in the same "
                "order, so the same columns for both."
            )
        self.documents_, self.state_ = documents, replace(self.state_, texts=documents.texts)
        return self

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
            As in :meth:`fit`, with the stages "terms" and "evaluate".

        Returns
        -------
        Evaluation
        """
        settings = self._settings()
        corpus = pipeline.prepare(settings, source, labels, text=text, id=id, progress=progress)
        return pipeline.evaluate(settings, corpus, embeddings=embeddings, folds=folds, curve=curve, progress=progress)


def _numbered_on(documents: Documents, taken: Sequence[Hashable]) -> Documents:
    """Documents that have no ids of their own, with numbers that are not taken."""
    first = 1 + max((name for name in taken if isinstance(name, int)), default=len(taken) - 1)
    return replace(documents, ids=[first + i for i in range(len(documents))])
