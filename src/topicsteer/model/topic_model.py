"""TopicModel: texts in, named topics out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from topicsteer.analysis.evaluate import Evaluation
from topicsteer.analysis.stopping import StoppingAdvice, advise
from topicsteer.backends import on_cluster, on_disk
from topicsteer.backends.dask import client_of
from topicsteer.corpora import Documents, ReadOptions
from topicsteer.corpora.options import Names
from topicsteer.estimator import TSNMF
from topicsteer.guidance.embeddings import Embeddings, embed, encoder_of
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.forms import extend, forbid, joined, refuse_new_topics
from topicsteer.labels.supervision import Supervision
from topicsteer.model import evaluation, files, learning, pipeline, predictor
from topicsteer.model.encoders import AnyEmbeddings, described, for_documents, remembered
from topicsteer.model.findings import Findings
from topicsteer.model.fitted_model import frames_of, is_pandas
from topicsteer.model.goals import ModelGoals
from topicsteer.model.settings import FreeTopics, Settings
from topicsteer.model.sources import difference, documents_of, named_columns, warn_of_unread_labels, without_column
from topicsteer.model.spool import put_on_disk, too_large
from topicsteer.model.state import FittedState
from topicsteer.model.suggestions import ModelSuggestions
from topicsteer.system.arrays import StorageError
from topicsteer.system.files import Scratch
from topicsteer.system.lock import one_at_a_time
from topicsteer.system.memory import frugal_memory, in_bytes
from topicsteer.system.renamed import Renamed, renamed_arguments
from topicsteer.system.stages import Stages
from topicsteer.system.types import Array, Progress
from topicsteer.system.warn import warn_user
from topicsteer.text import TextVectorizer

if TYPE_CHECKING:
    from distributed import Client

    from topicsteer.model.update import Update

# A fit of this many documents returns freed memory at once. That costs a sixth of the time of a smaller one.
MANY = 100_000


class TopicModel(Findings, ModelGoals, ModelSuggestions, BaseEstimator):
    """Topics of a corpus that follow the labels of a few documents.

    Parameters
    ----------
    free_topics : int, "auto", dict or None, default=None
        Number of topics without a name, in addition to the known ones. In an open world it is the largest number that
        is shown; small ones are left out. "auto": none in a closed world; in an open one as many as there would be if
        they were as large as the known topics. Without labels: up to 10. None: 10. A number that you choose shows that
        you expect unnamed topics: a doubtful world is open then, and free topics of a closed one are looked for among
        the documents that resemble the known topics least. A dict has free topics inside known ones:
        ``{"sport": 3, None: 10}`` looks for three below sport and ten at the top.
    world : "open", "closed" or None, default=None
        Whether documents may have none of the known topics. "closed": each has at least one. None: decided from the
        documents; see `topicsteer.guidance.open_world`.
    topics : sequence of str or Codebook, optional
        Names and order of the known topics, including topics without a label. Default: the names in the labels, sorted.
        A codebook has its own keys, descriptions and keywords. Names are read as words: without labels they decide
        which documents have a topic. A topic without a label and without a word of the corpus stays empty.
    parents : dict of topic to topic, optional
        The parent of each topic that is below another: ``{"football": "sport"}``. Parents are topics that may be
        labelled. A document with a topic has all topics above it, and a label leaves the topics below it open.
    path_separator : str, optional
        Separator of labels that are paths: with "/", the label "sport/football" is a topic below "sport". The default
        None reads no label as a path.
    complete : bool, default=True
        Whether the labels of a document are all its known topics. False: it may have others too.
    guidance : "auto" or None, default="auto"
        How labels reach unlabelled documents. "auto": memberships are probabilities learnt from the labels (see
        `topicsteer.guidance.guide`). They also guide the factorisation by penalties on unlikely topics (see
        `topicsteer.guidance.penalties`). None: the paper's method; memberships are topic shares of the factorisation.
    keywords, banned : dict of topic to list of words, optional
        Words that a known topic must contain, and words that it must not contain. Each keyword counts as a small
        document with the topic.
    descriptions : dict of topic to str, optional
        Descriptions of the known topics, read together with the names.
    vectorizer : TextVectorizer, optional
        The vectoriser of the texts. Default: ``TextVectorizer()``.
    estimator : TSNMF, optional
        The factorisation with its own settings, seed and threads; ``n_components`` is overwritten.
        Default: ``TSNMF(free_in_labelled=False)``, so that free topics cannot explain labelled documents. With guidance
        also ``label_weight=None``, because unlabelled documents follow the labels already.
    random_state : int, default=0
        Seed of the factorisation and of samples. The guide, its memberships and free topics do not depend on it.
    threads : int, optional
        Number of threads; None = all cores. The result does not depend on it.

    Attributes
    ----------
    result_ : Topics
        Names, terms and documents of the topics.
    supervision_ : Supervision
        The labels.
    thresholds_ : array (n_known,)
        Membership threshold of each known topic.
    estimator_, vectorizer_, guide_
        Fitted estimator, vectoriser and guide; ``guide_`` is None without labels and words, or without guidance.
    codebook : Codebook
        The known topics, each with a key that never changes.
    stage_seconds_ : mapping of str to float
        Seconds of each stage of the last fit.
    state_ : FittedState
        The fitted model as arrays and plain values.
    documents_ : Documents or None
        The training documents; None in a model that was loaded without them.
    frames_ : str
        Kind of the tables that methods return, "pandas" or "polars": as in the fit.
    matrix_ : CSR (n_documents, n_terms) or None
        The document–term matrix; None in a model that was loaded.

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
    # Folder that the model was loaded from or saved to, and its version there.
    _source: tuple[Path, files.Version]
    pinned, outlook = Renamed("keywords"), Renamed("stopping_advice")

    @renamed_arguments(pinned="keywords")
    def __init__(
        self,
        free_topics: FreeTopics = None,
        *,
        world: str | None = None,
        topics: Sequence[str] | Codebook | None = None,
        parents: Mapping[str, str] | None = None,
        path_separator: str | None = None,
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
        self.world = world
        self._topics = topics  # ``topics`` is the table of fitted topics
        self.parents = parents
        self.path_separator = path_separator
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
            Whether to include the arguments of vectoriser and estimator, as ``vectorizer__min_df``.
        """
        given = {name: getattr(self, "_topics" if name == "topics" else name) for name in self._get_param_names()}
        if deep:
            for part in ("vectorizer", "estimator"):
                inner = given[part].get_params() if given[part] is not None else {}
                given |= {f"{part}__{name}": value for name, value in inner.items()}
        return given

    @renamed_arguments(pinned="keywords")
    def set_params(self, **params: Any) -> Self:
        """Set arguments for the next fit."""
        if "topics" in params:
            self._topics = params.pop("topics")
        return super().set_params(**params) if params else self

    @one_at_a_time
    def fit(
        self,
        source: object,
        labels: object = None,
        *,
        text: Names | None = None,
        id: str | None = None,
        embeddings: AnyEmbeddings | None = None,
        confidence: ArrayLike | None = None,
        after: TopicModel | None = None,
        memory: int | str | None = None,
        folder: str | Path | None = None,
        client: Client | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit topics to documents and their labels.

        Parameters
        ----------
        source : list of str, Documents, DataFrame, path or Spool
            The texts, or a table or file that contains them. A Dask DataFrame and a
            :class:`~topicsteer.model.spool.Spool` are processed in blocks and never held in memory as a whole.
        labels : column name, or labels in any form, optional
            For a table: the name of the label column (guessed if obvious), or False for none. Or one column of 0 and 1
            per topic: a list of names, or a pattern such as ``"cs.*"``. For texts: one label per document (None =
            unlabelled), a list of labels per document, a dict ``{row: labels}``, or an indicator matrix.
        text, id : str, optional
            Column names of a table; a list of text columns is joined. The model remembers its columns.
        embeddings : array (n_documents, any), encoder, callable or str, optional
            An array, or an encoder of texts such as a sentence-transformers or model2vec model. Or their name: a .npy
            file, a column of the table, or ``model2vec:FOLDER``. Memberships are then learnt from terms and
            embeddings; the weight of the embeddings is chosen from the labels.
        confidence : array (n_documents,), optional
            Confidence in the labels of each document, above 0; the default is 1.
        after : TopicModel, optional
            An earlier model of the same documents under other labels. Its vocabulary and latent semantics are reused,
            which do not depend on labels. The result is the same as without it.
        memory : int or str, optional
            Memory limit of the fit in bytes, or as "4GB". A larger file is processed in blocks on disk.
        folder : path, optional
            Folder for the blocks, and for large memberships and weights; a fit in blocks that was interrupted continues
            there. Default: a temporary folder, deleted with the model.
        client : distributed.Client, optional
            Client of a Dask cluster. Its workers then hold and process the blocks; they must have access to the folder.
        progress : callable, optional
            Called as ``progress(stage, done, total, detail)`` with the stages "terms", "guide" and "fit"; files on disk
            have the stages "columns" and "blocks" too.

        Returns
        -------
        self
        """
        work, settings, progress = Scratch(folder), self._settings(), Stages(progress, "terms")
        unguessed = labels is None and not settings.topics and not isinstance(source, Documents)
        labels = without_column(labels)
        with ExitStack() as stack:
            if too_large(source, memory):
                stack.enter_context(work.in_use())
                options = ReadOptions(text=text, labels=named_columns(source, labels) or None, id=id)
                own, limit = settings.new_vectorizer(), in_bytes(memory)
                source = put_on_disk(source, work.path / "corpus", options, own, memory=limit, progress=progress)
            earlier, rows = (None, None) if after is None else (after._fitted, after._rows)
            corpus = pipeline.prepare(
                settings, source, labels, text=text, id=id, after=earlier, rows=rows, progress=progress
            )
            if len(corpus.documents) >= MANY:
                stack.enter_context(frugal_memory())
            if unguessed:
                warn_of_unread_labels(corpus.documents)
            vectors = None if self.guidance is None else for_documents(embeddings, corpus.documents)
            E = None if vectors is None else embed(vectors, corpus.documents.texts)
            client, rows = client or client_of(source), None
            stack.enter_context(work.in_use())
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
                encode=None if vectors is None else encoder_of(vectors),
                confidence=pipeline.confidence_of(confidence, len(corpus.documents)),
                after=earlier,
                progress=progress,
            )
        # A failed fit must leave the earlier one intact, so attributes are set at the end.
        self.frames_, self._lemmatizer = "pandas" if is_pandas(source) else "polars", corpus.vectorizer.lemmatizer
        state = replace(state, encoder={} if E is None or embeddings is None else described(embeddings))
        self.state_, self.documents_ = replace(state, seconds=progress.end(), frames=self.frames_), corpus.documents
        self._rows, self._work = corpus.rows, work  # the folder lives as long as the model
        self.__dict__.pop("_source", None)  # a new model may replace any other
        self.encoder_, self.embeddings_ = encoder_of(vectors), E
        self._warn_of_copies()
        return self

    def _warn_of_copies(self) -> None:
        """Warn about free topics that look like known ones."""
        if copies := self.result_.copies():
            listed = ", ".join(f"{free!r} ({name!r})" for free, name in copies)
            warn_user(
                f"Free topics that have the same top terms as a known topic: {listed}. Use fewer free topics, add "
                "labels for the known ones, or merge them."
            )

    def new_vectorizer(self) -> TextVectorizer:
        """An unfitted vectoriser with the options of this model."""
        return self._settings().new_vectorizer()

    def _settings(self) -> Settings:
        given = self.get_params(deep=False)
        settings = Settings(**{field.name: given[field.name] for field in fields(Settings)})
        settings.check()
        return settings

    @one_at_a_time
    def update(
        self,
        source: object = None,
        labels: object = None,
        *,
        text: Names | None = None,
        id: str | None = None,
        embeddings: AnyEmbeddings | None = None,
        confidence: ArrayLike | None = None,
        grow: bool = True,
        forget_factor: float = 1.0,
        new_topics: bool = True,
        progress: Progress | None = None,
    ) -> Self:
        """Add new documents, late labels for earlier documents, and new topics, without a complete fit.

        An update approximates a fit to all documents. It works on all labelled documents and on up to 20,000 others.
        For all other documents only summary statistics are kept: they still shape the topics, but their memberships no
        longer change. If an update fails, the model is unchanged.

        Documents are identified by their ids. A known document with another text is replaced. With the same text, or
        without a text, only its labels can change. A text without an id is always new. New labels replace earlier
        labels of the same document and topics. Unknown labels create new topics, after the known and before the free
        ones: known topics never change their names or positions. If labels are complete, documents that were labelled
        earlier do not have the new topics.

        Parameters
        ----------
        source : list of str, Documents, DataFrame or path, optional
            New documents, known documents, or both.
        labels : column name, or labels in any form, optional
            As in :meth:`fit`. Without a source: a dict that maps ids of known documents to labels.
        text, id : str, optional
            Column names of a table.
        embeddings : array, encoder or callable, optional
            Embeddings of these documents, for a model that was fitted with an array of embeddings.
        confidence : array (n_documents,), optional
            Confidence in the labels of each document, as in :meth:`fit`.
        grow : bool, default=True
            Add new terms after the old ones, and update the weights of all terms. False: terms and weights stay.
        forget_factor : float, default=1.0
            Weight of earlier documents and labels relative to new ones; 0.9 halves it in seven updates.
        new_topics : bool, default=True
            Whether unknown labels create topics. False: they raise an error that names similar topics.
        progress : callable, optional
            As in :meth:`fit`.

        Returns
        -------
        self
            ``update_`` summarises the changes.

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
                raise ValueError("without a source, labels must be a dict that maps document ids to labels.")
            documents = Documents(list(labels), [""] * len(labels))
            labels = list(labels.values())
        else:
            labels = without_column(labels)
            documents = documents_of(source, labels, text, id, like=self._columns)
        if documents.numbered:
            documents = documents.numbered_on(self.result_.ids)
        named: list[str] | None = None
        if named_columns(source, labels) is not False:
            labels, named = documents.labels, documents.topic_names
        known = self.supervision_.topics
        topics = None if named is None else joined(known, named)
        lineage = self._settings().lineage(self.codebook)
        given = extend(known, labels, len(documents), topics=topics, complete=self.complete, lineage=lineage)
        given = forbid(given, documents.forbidden, lineage)
        if not new_topics:
            refuse_new_topics(known, given, documents.ids)
        from topicsteer.model.update import update  # a fit does not need it

        vectors = for_documents(embeddings, documents)

        state, self.update_ = update(
            self.state_,
            self._settings(),
            documents,
            given,
            embeddings=self.encoder_ if vectors is None else vectors,
            confidence=pipeline.confidence_of(confidence, len(documents)),
            grow=grow,
            forget_factor=forget_factor,
            lemmatizer=self._lemmatizer,
            progress=progress,
        )
        if state is not self.state_:
            self._rows = None
            if self.embeddings_ is not None:
                encode = self.encoder_ if vectors is None else vectors
                self.embeddings_ = None if encode is None else self._embedded(state, documents, encode)
            self.documents_ = None if state.texts is None else Documents(state.ids, state.texts)
        self.state_ = state
        return self

    def _embedded(self, state: FittedState, documents: Documents, source: Embeddings) -> Array | None:
        """Embeddings of all documents after an update; None if an encoder can compute them again."""
        if self.embeddings_ is None or encoder_of(source) is not None:
            return None
        given, row_of = embed(source, documents.texts), {str(key): row for row, key in enumerate(state.ids)}
        found = np.zeros((len(state.ids), given.shape[1]), dtype=given.dtype)
        found[: len(self.embeddings_)] = self.embeddings_
        for name, text, row in zip(documents.ids, documents.texts, given, strict=True):
            if text:
                found[row_of[str(name)]] = row
        return found

    def stopping_advice(self, progress: Callable[[int, int], object] | None = None) -> StoppingAdvice:
        """Whether more labels help, from the learning curve of hidden labels, or else the last tenth of the labels.

        Parameters
        ----------
        progress : callable, optional
            Called with the number of guides learnt, and of all to learn.
        """
        unlabelled = self.memberships_[~self.supervision_.labelled]
        task, settings = self._task(), self._settings()
        # Hidden labels are of known topics, so groups of other documents need not be found for their curve.
        rank = partial(self._relearnt_scores, replace(settings, world="closed"), task)
        score = partial(self._relearnt_scores, settings, task)
        return advise(self.supervision_, rank, score, unlabelled, self.random_state, progress)

    def _relearnt_scores(
        self, settings: Settings, task: learning.Task, supervision: Supervision, rows: NDArray[np.integer]
    ) -> Array:
        """Probabilities of the known topics in some documents, learnt again from other labels."""
        learnt, known = learning.learn(settings, replace(task, supervision=supervision)), len(self.supervision_.topics)
        if learnt is None:
            return np.zeros((len(rows), known), dtype=np.float32)
        E = None if task.embeddings is None else task.embeddings[rows]
        found = learnt.probabilities(task.rows.take(rows), self.threads, embeddings=E)
        return found[:, :known]  # groups of an open world follow

    def save(self, path: str | Path, *, texts: bool = False, updatable: bool = True) -> None:
        """Write the model to a folder, without pickle; an existing model is replaced only once everything is written.

        Programs that write to one folder take turns. A model is not saved over a version that another program wrote
        after this one was loaded from the folder or saved there.

        Parameters
        ----------
        path : str or Path
            A new folder, or the folder of an earlier model.
        texts : bool, default=False
            Whether to store the documents too.
        updatable : bool, default=True
            Whether to store the data for :meth:`update`: term counts of the labelled documents and of up to 20,000
            others. These are not the texts, but they reveal much of their content.
        """
        if texts:
            self._texts()
        state = replace(self.state_, texts=self.documents_.texts if texts and self.documents_ else None)
        where, known = self.__dict__.get("_source", (None, None))
        now = files.write(
            path,
            state if updatable else replace(state, reservoir=None, history=None),
            expected=known if where == Path(path).resolve() else None,
        )
        self._source = Path(path).resolve(), now

    @classmethod
    def load(
        cls, path: str | Path, *, lemmatizer: Callable[[str], str] | None = None, encoder: Embeddings | None = None
    ) -> Self:
        """Read a model that :meth:`save` wrote; its predictions are the same, bit for bit.

        Parameters
        ----------
        path : str or Path
            The folder.
        lemmatizer : callable, optional
            The lemmatizer of the fit, if there was one; functions are not stored.
        encoder : encoder or callable, optional
            The encoder of the fit, if the model was fitted with embeddings. Default: the folder of a model2vec model
            that the model remembers.
        """
        state, version = files.read(path)
        if state.lemmatized and lemmatizer is None:
            raise StorageError(f"{path} was fitted with a lemmatizer: pass the same one to load.")
        try:
            model = cls(**predictor.parameters_of(state.parameters, lemmatizer))
            model._settings()
            predictor.estimator_of(state)
        except (TypeError, ValueError) as error:
            raise StorageError(f"{path} has parameters that this version does not accept: {error}") from error
        model.state_, model._lemmatizer, model._rows = state, lemmatizer, None
        model.frames_, model.embeddings_ = frames_of(state.frames), None
        model.encoder_ = encoder_of(remembered(state.encoder) if encoder is None else encoder)
        model._source = Path(path).resolve(), version
        model.documents_ = None if state.texts is None else Documents(state.ids, state.texts)
        return model

    @one_at_a_time
    def attach(self, source: object, *, text: Names | None = None, id: str | None = None) -> Self:
        """Attach the training documents to a model that was saved without them.

        Parameters
        ----------
        source : list of str, Documents, DataFrame, path or Spool
            The training documents; other documents raise an error.
        text, id : str, optional
            Column names of a table.

        Returns
        -------
        self
        """
        self._attach(source, text, id)
        return self

    def _attach(self, source: object, text: Names | None, id: str | None) -> None:
        ready = getattr(source, "ready", None)  # a spooled corpus
        documents = documents_of(source, False, text, id, like=self._columns) if ready is None else ready.documents
        if not self.accepts(documents):
            raise ValueError(
                f"These are not the training documents of the model: {difference(self.state_.ids, documents)}. Pass "
                "the same texts and ids in the same order, read from the same columns."
            )
        if ready is not None:
            if not np.array_equal(ready.vectorizer.get_feature_names_out(), self.vectorizer_.get_feature_names_out()):
                raise ValueError("The spooled documents have other terms than the model: use its new_vectorizer().")
            self._rows = ready.rows
        self.documents_, self.state_ = documents, replace(self.state_, texts=documents.texts)

    def evaluate(
        self,
        source: object,
        labels: object = None,
        *,
        text: Names | None = None,
        id: str | None = None,
        embeddings: AnyEmbeddings | None = None,
        folds: int = 3,
        curve: bool = True,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Hide labels, predict them with these settings, and compare with two baselines.

        Parameters
        ----------
        source, labels, text, id, embeddings
            As in :meth:`fit`.
        folds : int, default=3
            Number of folds; the labels of each fold are hidden once.
        curve : bool, default=True
            Whether to compute a learning curve from fewer labels. It takes three more fits per fold.
        progress : callable, optional
            As in :meth:`fit`, with the stages "terms" and "evaluate".

        Returns
        -------
        Evaluation
        """
        settings, labels = self._settings(), without_column(labels)
        corpus = pipeline.prepare(settings, source, labels, text=text, id=id, like=self._columns, progress=progress)
        vectors = for_documents(embeddings, corpus.documents)
        return evaluation.evaluate(settings, corpus, embeddings=vectors, folds=folds, curve=curve, progress=progress)
