"""TopicModel: texts in, named topics out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from topicsteer.analysis.topics import believed
from topicsteer.corpora import Documents, ReadOptions
from topicsteer.corpora.documents import Names
from topicsteer.labels.supervision import PERMITTED, UNKNOWN
from topicsteer.model.predictor import (
    AnyEmbeddings,
    Predictor,
    beginning,
    described,
    for_documents,
    frame,
    frames_of,
    index_of,
    is_pandas,
    missing_embeddings,
    parameters_of,
    plain_parameters,
    remembered,
)
from topicsteer.model.settings import Settings
from topicsteer.model.spool import difference, documents_of, named_columns, without_column
from topicsteer.model.state import FittedState, Version, read_state, write_state
from topicsteer.nmf.solvers import check_settings
from topicsteer.report.table_files import columns
from topicsteer.system.arrays import StorageError
from topicsteer.system.files import Scratch, one_at_a_time
from topicsteer.system.memory import frugal_memory, in_bytes
from topicsteer.system.threads import Stages
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import NONE
from topicsteer.text.meaning import Embeddings, Encoder, embed, encoder_of

if TYPE_CHECKING:
    import scipy.sparse as sp
    from distributed import Client

    from topicsteer.analysis.evaluation import Evaluation
    from topicsteer.analysis.explain import Explanation
    from topicsteer.analysis.map_layout import Layout
    from topicsteer.guidance.guide import Guide
    from topicsteer.labels.codebook import Codebook
    from topicsteer.model.cross_fit import Evidence
    from topicsteer.model.edits import Edits
    from topicsteer.model.findings import Findings
    from topicsteer.model.labelling import LabelHelp
    from topicsteer.model.live import LiveGuide
    from topicsteer.model.predictor import Frame
    from topicsteer.model.spool import LabelSource, Source
    from topicsteer.model.update import Update
    from topicsteer.nmf.protocols import Rows
    from topicsteer.text.vectorizer import TextVectorizer

# A fit of this many documents returns freed memory at once. That costs a sixth of the time of a smaller one.
MANY = 100_000


class TopicModel:
    """Topics of a corpus that follow the labels of a few documents.

    Parameters
    ----------
    free_topics : int, "auto" or None, default=None
        Number of topics without a name, in addition to the known ones. In an open world it is the largest number that
        is shown; small ones are left out. "auto": none in a closed world; in an open one as many as there would be if
        they were as large as the known topics. Without labels: up to 10. None: 10. A number that you choose shows that
        you expect unnamed topics: a doubtful world is open then, and free topics of a closed one are looked for among
        the documents that resemble the known topics least.
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
    keywords, banned : dict of topic to list of words, optional
        Words that a known topic must contain, and words that it must not contain. Each keyword counts as a small
        document with the topic.
    descriptions : dict of topic to str, optional
        Descriptions of the known topics, read together with the names.
    vectorizer : TextVectorizer, optional
        The vectoriser of the texts. Default: ``TextVectorizer()``.
    embeddings : {"words", None}, default="words"
        "words": the meaning of words, from the word vectors of the package wordllama; English only. None: no meaning.
        ``fit(embeddings=...)`` takes embeddings of the documents instead.
    random_state : int, default=0
        Seed of the factorisation and of samples. The guide, its memberships and free topics do not depend on it.
    threads : int, optional
        Number of threads; None = all cores. The result does not depend on it.

    Attributes
    ----------
    state_ : FittedState
        The fitted model as arrays and plain values: ``state_.topics`` has names, terms and documents of the topics,
        ``state_.thresholds`` the membership threshold of each known topic, ``state_.seconds`` the time of each stage.
    vectorizer_, guide_
        Fitted vectoriser and guide; ``guide_`` is None without labels and words.
    codebook : Codebook
        The known topics, each with a key that never changes.
    documents_ : Documents or None
        The training documents; None in a model that was loaded without them.
    matrix_ : CSR (n_documents, n_terms) or None
        The document–term matrix, or its blocks on disk; None in a model that was loaded.
    predictor_ : Predictor
        Predictions for documents: memberships, decisions and tables.
    update_ : Update
        Summary of the last update.
    edit, labels, findings
        Further methods: edits of topics, labels, and results for readers.

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
    update_: Update
    _frames: str
    _embeddings: Array | None
    _encoder: Encoder | None
    _lemmatizer: Callable[[str], str] | None
    _rows: Rows | None
    # Evidence of the shares, with the state and clusters that it belongs to; see `Findings.evidence`.
    _gathered: tuple[FittedState, bytes | None, Evidence, Scratch]
    # Labels that were given since the fit; see `LabelHelp.give`.
    _live: LiveGuide
    # Folder of large arrays, which lives as long as the model.
    _work: Scratch
    # Folder that the model was loaded from or saved to, and its version there.
    _source: tuple[Path, Version]
    # Index of the training documents in a pandas frame.
    _index: Any = None

    def __init__(
        self,
        free_topics: int | str | None = None,
        *,
        world: str | None = None,
        topics: Sequence[str] | Codebook | None = None,
        parents: Mapping[str, str] | None = None,
        path_separator: str | None = None,
        complete: bool = True,
        keywords: Mapping[str, Sequence[str]] | None = None,
        banned: Mapping[str, Sequence[str]] | None = None,
        descriptions: Mapping[str, str] | None = None,
        vectorizer: TextVectorizer | None = None,
        embeddings: str | None = "words",
        random_state: int = 0,
        threads: int | None = None,
    ) -> None:
        self.free_topics = free_topics
        self.world = world
        self._topics = topics  # ``topics`` is the table of fitted topics
        self.parents = parents
        self.path_separator = path_separator
        self.complete = complete
        self.keywords = keywords
        self.banned = banned
        self.descriptions = descriptions
        self.vectorizer = vectorizer
        self.embeddings = embeddings
        self.random_state = random_state
        self.threads = threads

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("__") and "state_" not in vars(self):
                from sklearn.exceptions import NotFittedError

                raise NotFittedError(f"this TopicModel is not fitted, so it has no {name}: call fit, or load a model.")
            raise AttributeError(f"a TopicModel has no {name!r}.")

    def get_params(self) -> dict[str, Any]:
        """Return the arguments that the model was made with."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, "_topics" if name == "topics" else name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Set arguments for the next fit."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"TopicModel has no parameter {name!r}; it has {', '.join(known)}.")
            setattr(self, "_topics" if name == "topics" else name, value)
        return self

    @one_at_a_time
    def fit(
        self,
        source: Source,
        labels: LabelSource = None,
        *,
        text: Names | None = None,
        id: str | None = None,
        chosen: str | Sequence[str | None] | None = None,
        embeddings: AnyEmbeddings | None = None,
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
            The texts, or a table or file that contains them. A :class:`~topicsteer.model.spool.Spool` is processed in
            blocks and never held in memory as a whole.
        labels : column name, or labels in any form, optional
            For a table: the name of the label column (guessed if obvious), or False for none. Or one column of 0 and 1
            per topic: a list of names, or a pattern such as ``"cs.*"``. For texts: one label per document (None =
            unlabelled), a list of labels per document, a dict ``{row: labels}``, or an indicator matrix.
        text, id : str, optional
            Column names of a table; a list of text columns is joined. The model remembers its columns.
        chosen : str or one value per document, optional
            How the labelled documents were chosen, such as "random". Default: the column ``chosen`` of the table. Only
            labels of random documents give shares with intervals.
        embeddings : array (n_documents, any), encoder, callable or str, optional
            An array, or an encoder of texts such as a sentence-transformers or model2vec model. Or their name: a .npy
            file, or ``model2vec:FOLDER``. Memberships are then learnt from terms and
            embeddings; the weight of the embeddings is chosen from the labels.
        after : TopicModel, optional
            An earlier model of the same documents under other labels. Its vocabulary and latent semantics are reused,
            which do not depend on labels. The result is the same as without it.
        memory : int or str, optional
            Memory limit of the fit in bytes, or as "4GB". A larger file is processed in blocks on disk.
        folder : path, optional
            Folder for the blocks, and for large memberships and weights. Default: a temporary folder, deleted with the
            model.
        client : distributed.Client, optional
            Client of a Dask cluster. Its workers then hold and process the blocks; they must have access to the folder.
        progress : callable, optional
            Called as ``progress(stage, done, total, detail)`` with the stages "terms", "guide" and "fit"; files on disk
            have the stages "columns" and "blocks" too.

        Returns
        -------
        self
        """
        from topicsteer.backends import on_cluster, on_disk
        from topicsteer.model import pipeline
        from topicsteer.model.spool import spool, too_large

        work, settings, progress = Scratch(folder), self._settings(), Stages(progress, "terms")
        labels = without_column(labels)
        with ExitStack() as stack:
            if too_large(source, memory):
                stack.enter_context(work.in_use())
                options = ReadOptions(text=text, labels=named_columns(source, labels) or None, id=id)
                source = spool(
                    source,
                    work.path / "corpus",
                    options,
                    vectorizer=settings.new_vectorizer(),
                    memory=in_bytes(memory),
                    progress=progress,
                )
            earlier, rows = (None, None) if after is None else (after.predictor_, after._rows)
            corpus = pipeline.prepare(
                settings, source, labels, text=text, id=id, chosen=chosen, after=earlier, rows=rows, progress=progress
            )
            if len(corpus.documents) >= MANY:
                stack.enter_context(frugal_memory())
            vectors = for_documents(embeddings, corpus.documents)
            E = None if vectors is None else embed(vectors, corpus.documents.texts)
            encode = None if vectors is None else encoder_of(vectors)
            corpus = replace(corpus, embeddings=E, encode=encode)
            rows = None
            stack.enter_context(work.in_use())
            if client is not None:
                corpus = replace(corpus, rows=on_disk(corpus.rows, work.path / "blocks"))
                rows = on_cluster(corpus.rows, client)
            state = pipeline.fit(
                corpus,
                settings,
                start=pipeline.reuse_of(earlier),
                arguments=plain_parameters(self.get_params()),
                folder=work.path,
                cluster=rows,
                progress=progress,
            )
        # A failed fit must leave the earlier one intact, so attributes are set at the end.
        self._frames, self._lemmatizer = "pandas" if is_pandas(source) else "polars", corpus.vectorizer.lemmatizer
        state = replace(state, encoder={} if E is None or embeddings is None else described(embeddings))
        self.state_, self.documents_ = replace(state, seconds=progress.end(), frames=self._frames), corpus.documents
        self._rows, self._work = corpus.rows, work  # the folder lives as long as the model
        self.__dict__.pop("_source", None)  # a new model may replace any other
        self._index = index_of(source, corpus.documents)
        self._encoder, self._embeddings = encode, E
        return self

    def _settings(self) -> Settings:
        return Settings.of(self.get_params())

    @one_at_a_time
    def update(
        self,
        source: Source | None = None,
        labels: LabelSource = None,
        *,
        text: Names | None = None,
        id: str | None = None,
        embeddings: AnyEmbeddings | None = None,
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
        from topicsteer.labels.forms import extend, forbid, joined, label_counts, refuse_new_topics
        from topicsteer.model.update import update

        if source is None:
            if not isinstance(labels, Mapping):
                raise ValueError("without a source, labels must be a dict that maps document ids to labels.")
            documents = Documents(list(labels), [""] * len(labels))
            labels = list(labels.values())
        else:
            labels = without_column(labels)
            documents = documents_of(source, labels, text, id, like=self._columns)
        if documents.numbered:
            documents = documents.numbered_on(self.state_.topics.ids)
        named: list[str] | None = None
        if named_columns(source, labels) is not False:
            labels, named = documents.labels, documents.topic_names
        known = self.state_.supervision.topics
        topics = None if named is None else joined(known, named)
        lineage = self._settings().lineage(self.codebook)
        lineage = lineage.spelled(label_counts(labels) + label_counts(documents.forbidden))
        given = extend(known, labels, len(documents), topics=topics, complete=self.complete, lineage=lineage)
        given = forbid(given, documents.forbidden, lineage)
        if not new_topics:
            refuse_new_topics(known, given, documents.ids)
        vectors = for_documents(embeddings, documents)
        state, self.update_ = update(
            self.state_,
            self._settings(),
            documents,
            given,
            embeddings=self._encoder if vectors is None else vectors,
            lemmatizer=self._lemmatizer,
            progress=progress,
        )
        if state is not self.state_:
            self._rows = self._embeddings = self._index = None
            self.documents_ = None if state.texts is None else Documents(state.ids, state.texts)
        self.state_ = state
        return self

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
        now = write_state(
            path,
            state if updatable else replace(state, reservoir=None, history=None),
            expected=known if where == Path(path).resolve() else None,
        )
        self._source = Path(path).resolve(), now

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        lemmatizer: Callable[[str], str] | None = None,
        encoder: Embeddings | None = None,
        embeddings: Array | None = None,
        frames: str | None = None,
    ) -> Self:
        """Read a model that :meth:`save` wrote; its predictions are the same, bit for bit.

        Parameters
        ----------
        path : str or Path
            The folder.
        lemmatizer : callable, optional
            The lemmatizer of the fit, if there was one; functions are not stored, and new texts need it.
        encoder : encoder or callable, optional
            The encoder of the fit, if the model was fitted with embeddings. Default: the folder of a model2vec model
            that the model remembers.
        embeddings : array (n_documents, any), optional
            Embeddings of the training documents, for a model that was fitted with an array of embeddings.
        frames : {"polars", "pandas"}, optional
            Kind of the tables that methods return. Default: as in the fit.
        """
        state, version = read_state(path)
        try:
            model = cls(**parameters_of(state.parameters, lemmatizer))
            model._settings()
            check_settings(state.estimator)
        except (TypeError, ValueError) as error:
            raise StorageError(f"{path} has parameters that this version does not accept: {error}") from error
        model.state_, model._lemmatizer, model._rows = state, lemmatizer, None
        model._frames = frames_of(state.frames) if frames is None else frames
        model._embeddings = embeddings
        encoder = remembered(state.encoder) if encoder is None else encoder
        model._encoder = None if encoder is None else encoder_of(encoder)
        model._source = Path(path).resolve(), version
        model.documents_ = None if state.texts is None else Documents(state.ids, state.texts)
        return model

    @one_at_a_time
    def attach(self, source: Source, *, text: Names | None = None, id: str | None = None) -> Self:
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
        from topicsteer.model.spool import Spool

        documents = documents_of(source, False, text, id, like=self._columns)
        if not self.state_.accepts(documents):
            raise ValueError(
                f"These are not the training documents of the model: {difference(self.state_.ids, documents)}. Pass "
                "the same texts and ids in the same order, read from the same columns."
            )
        if isinstance(source, Spool):
            if not np.array_equal(source.vectorizer.get_feature_names_out(), self.vectorizer_.get_feature_names_out()):
                raise ValueError("The spooled documents have other terms than the model: use the same vectoriser.")
            self._rows = source.matrix
        self.documents_, self.state_ = documents, replace(self.state_, texts=documents.texts)
        self._index = index_of(source, documents)
        return self

    def __repr__(self) -> str:
        if "state_" not in vars(self):
            wanted = "" if self.free_topics is None else f", {self.free_topics} free topics"
            return f"<TopicModel: not fitted{wanted}>"
        known, free = len(self.state_.codebook), len(self.state_.free_names)
        labelled = int(self.state_.supervision.labelled.sum())
        documents = len(self.state_.ids)
        return f"<TopicModel: {known} known and {free} free topics of {documents:,} documents, {labelled:,} labelled>"

    @property
    def codebook(self) -> Codebook:
        """The known topics."""
        return self.state_.codebook

    @property
    def matrix_(self) -> sp.csr_array | Rows | None:
        """The document–term matrix, or its blocks on disk; None in a model that was loaded."""
        if self._rows is None:
            return None
        return self._rows if self._rows.matrix is None else self._rows.matrix

    @property
    def predictor_(self) -> Predictor:
        """Predictions of the fitted model, with its present number of threads."""
        now: Predictor | None = self.__dict__.get("_predictor")
        if now is None or now.state is not self.state_ or now.threads != self.threads:
            now = self._predictor = Predictor(self.state_, self._lemmatizer, self._encoder, self.threads)
        return now

    @property
    def vectorizer_(self) -> TextVectorizer:
        """The fitted vectoriser."""
        return self.predictor_.vectorizer

    @property
    def guide_(self) -> Guide | None:
        """The guide; None without labels and words."""
        return self.predictor_.guide

    @property
    def edit(self) -> Edits:
        """Edits of topics: ``rename``, ``merge``, ``move``, ``adopt`` and ``split``."""
        from topicsteer.model.edits import Edits

        return Edits(self)

    @property
    def labels(self) -> LabelHelp:
        """Further labels at once, and help with labels: ``give``, ``suggest`` and ``audit``."""
        from topicsteer.model.labelling import LabelHelp

        return LabelHelp(self)

    @property
    def findings(self) -> Findings:
        """Results for readers: ``prevalence``, ``coders``, ``disagreements`` and ``methods``."""
        from topicsteer.model.findings import Findings

        return Findings(self)

    @property
    def topics(self) -> Frame:
        """Table with one row per topic: name, known or free, labelled documents, share of the documents, terms."""
        return self._table(self.state_.topics.table())

    @property
    def document_topics(self) -> Frame:
        """Table with one row per training document: id, and the part of it that each topic makes up.

        It is 0 where a label forbids the topic. :meth:`memberships` are the probabilities of topics.
        """
        return self._table(columns(self.state_.topics.ids, self.state_.topics.names, self.state_.topics.proportions))

    def memberships(
        self,
        source: Source | None = None,
        *,
        text: Names | None = None,
        id: str | None = None,
        embeddings: AnyEmbeddings | None = None,
    ) -> Frame:
        """Probability that each document has each topic, and that it has none of the known ones.

        Free topics that the guide does not know, as in a closed world, have the part of the document that they make up.

        Parameters
        ----------
        source : list of str, Documents, DataFrame or path, optional
            New documents. Default: the training documents, with 1 or 0 where a label decides.
        text, id : str, optional
            Column names of a table.
        embeddings : array, encoder or callable, optional
            Embeddings of new documents, for a model that was fitted with an array of embeddings.

        Returns
        -------
        table
            The id, one column per known topic, one per free topic, and ``(none)``. The last is 0 in a closed world,
            except for documents that are marked as having none of the topics. New documents have one row for every row
            of their table, in its order; a row without a text has NaN. A pandas table has the index of its documents.
        """
        names = (*self.state_.topics.names, NONE)
        if source is None:
            topics = self.state_.topics
            return frame(columns(topics.ids, names, topics.all_memberships()), self._frames == "pandas", self._index)
        documents = documents_of(source, False, text, id, like=self._columns, keep_all=True)
        found = self.predictor_.predict(documents, for_documents(embeddings, documents))
        pandas = is_pandas(source) if hasattr(source, "columns") else self._frames == "pandas"
        return frame(columns(documents.ids, names, found.memberships), pandas, index_of(source, documents))

    def predict(
        self, texts: Iterable[str], *, embeddings: Embeddings | None = None, ancestors: bool = False
    ) -> list[list[str]]:
        """Return the known topics of new texts, strongest first; none of empty texts. A pandas series keeps its index.

        A topic is predicted if its membership is at or above its threshold. In a tree these are the deepest topics.

        Parameters
        ----------
        texts : iterable of str
        embeddings : array, encoder or callable, optional
            Embeddings of the texts, for a model that was fitted with an array of embeddings.
        ancestors : bool, default=False
            Whether the topics above the deepest ones are returned too.
        """
        found = self.predictor_.predict(texts, embeddings).decisions(ancestors=ancestors)
        series = cast("Any", texts)
        return found if not is_pandas(series) else cast("list[list[str]]", type(series)(found, index=series.index))

    def predict_proba(self, texts: Iterable[str], *, embeddings: Embeddings | None = None) -> Array:
        """Return the memberships of new texts in known and free topics; the last column is P(none)."""
        return self.predictor_.predict(texts, embeddings).memberships

    def score(self, texts: Sequence[str], labels: LabelSource, *, embeddings: Embeddings | None = None) -> float:
        """Return the average precision of the known topics in labelled texts: the mean over topics.

        They must not be among the training documents; :meth:`evaluate` hides labels.
        """
        from topicsteer.labels.forms import supervise
        from topicsteer.metrics import average_precision

        lineage, topics = self._settings().lineage(self.codebook), self.codebook.names
        given = supervise(labels, len(texts), topics=topics, complete=self.complete, lineage=lineage)
        states = given.patterns[given.pattern]
        found = self.predict_proba(texts, embeddings=embeddings)[:, : len(topics)]
        return average_precision(states == PERMITTED, found, states != UNKNOWN).macro

    def fit_transform(self, source: Source, labels: LabelSource = None, **options: Any) -> Array:
        """Fit, and return the topic weights of the training documents; the options are the ones of :meth:`fit`."""
        return self.fit(source, labels, **options).state_.document_topics

    def transform(self, texts: Iterable[str], *, embeddings: Embeddings | None = None) -> Array:
        """Return the topic weights of new texts for known and free topics; each text is treated by itself."""
        return self.predictor_.weights(*self.predictor_.read(texts, embeddings))

    def _number(self, topic: Hashable) -> int:
        """Number of a topic given by name or number, or as "free 3"; where names are numbers, a number is a name."""
        topics, text = self.state_.topics, str(topic)
        if not isinstance(topic, str) and any(name.isdecimal() for name in topics.names[: topics.n_known]):
            topic = text
        if text not in topics.names and (position := text.removeprefix("free ")) != text and position.isdigit():
            free = int(position)
            if 1 <= free <= len(topics) - topics.n_known:
                return topics.n_known + free - 1
        return topics.index(text if text in topics.names else topic)

    def top_terms(self, topic: Hashable, n: int = 10) -> list[str]:
        """The most distinctive terms of a topic, given by name or number."""
        return self.state_.topics.top_terms(self._number(topic), n)

    def top_documents(self, topic: Hashable, n: int = 10) -> Frame:
        """Table of the documents with the largest parts of a topic: id, part, labelled or not, start of the text."""
        result = self.state_.topics
        k = self._number(topic)
        rows = result.top_rows(k, n)
        states = self.state_.supervision.patterns[self.state_.supervision.pattern[rows]]
        part = [float(result.proportions[i, k]) for i in rows]
        labelled = [bool(result.known(k) and state[k] == PERMITTED) for state in states]
        return self._documents_table(rows, {"part": part, "labelled": labelled})

    @property
    def belief(self) -> str:
        """One sentence: whether documents without a known topic exist, and how to learn how many."""
        return believed(self.state_.topics, self.state_.parameters.get("world"), self.state_.drawn)

    def explain(
        self,
        text: str | None = None,
        *,
        id: Hashable | None = None,
        row: int | None = None,
        embeddings: Embeddings | None = None,
    ) -> Explanation:
        """Return the contribution of each word of a text to each topic.

        Parameters
        ----------
        text : str, optional
            A new text. With a row: the text of this training document, or its beginning.
        id, row : optional
            A training document by its id or row number; it is explained under its labels.
        embeddings : array, encoder or callable, optional
            Embeddings of a new text, for a model that was fitted with an array of embeddings.
        """
        from topicsteer.analysis.explain import explain
        from topicsteer.text.words import without_weak

        fitted = self.predictor_
        if id is not None:
            row = next((row for row, key in enumerate(self.state_.ids) if str(key) == str(id)), None)
            if row is None:
                raise KeyError(f"there is no training document with the id {id!r}")
        if row is not None:
            text = self._texts()[row] if text is None else text
            x, w = fitted.read([text], None, embed=False)[0], self.state_.topics.W[row]
        elif text is None:
            raise ValueError("pass a text, or the id of a training document.")
        else:
            x, E = fitted.read([text], embeddings)
            w = fitted.weights(x, E)[0]
        topics = self.state_.topics
        x = without_weak(x, self.state_.idf)
        return explain(text, x, w, topics.H, topics.names, topics.vocabulary, self.vectorizer_.locate(text))

    def evaluate(
        self, *, embeddings: AnyEmbeddings | None = None, folds: int = 3, progress: Progress | None = None
    ) -> Evaluation:
        """Hide labels, predict them with everything that the model was fitted with, and compare with a baseline.

        Parameters
        ----------
        embeddings : array, encoder, callable or str, optional
            Embeddings of the training documents, for a loaded model that was fitted with an array of embeddings.
        folds : int, default=3
            Number of folds; the labels of each fold are hidden once.
        progress : callable, optional
            As in :meth:`fit`, with the stage "evaluate".

        Returns
        -------
        Evaluation
        """
        from topicsteer.model import cross_fit, pipeline
        from topicsteer.model.labelling import training_corpus

        documents = self.documents_
        if documents is not None and (vectors := for_documents(embeddings, documents)) is not None:
            self._embeddings = embed(vectors, documents.texts)
        corpus = training_corpus(self)
        # Folds share the decision of the fit and the features, which do not depend on labels.
        settings = replace(self._settings(), world="open" if self.state_.open else "closed")
        reuse = pipeline.reuse_of(self.predictor_, choice=True)
        if reuse.features is not None and (corpus.embeddings is not None or not reuse.features.given):
            reuse = replace(reuse, choice=None)
        report = pipeline.stage_progress("evaluate", progress)
        return cross_fit.evaluate(cross_fit.Hidden(corpus, settings, reuse), folds, report)

    def report(
        self,
        path: str | Path,
        *,
        title: str = "Topics",
        evaluation: Evaluation | None = None,
        by: str | Sequence[str] = (),
        map: bool | Layout = True,
        progress: Progress | None = None,
    ) -> None:
        """Write one self-contained HTML page: shares, topics, examples, map, evaluation.

        It has the shares of topics if some labels are known to be drawn at random, or with ``by``. They take as long as
        a fit.

        Parameters
        ----------
        path : str or Path
            The file to write: .html or .htm.
        title : str, default="Topics"
            Title of the page.
        evaluation : Evaluation, optional
            Result of :meth:`evaluate`, to be included.
        by : str or sequence of str, optional
            Columns of the documents. The report shows the shares of topics by each of them; ``"date:month"`` is a
            column of dates by month. Needs the training documents.
        map : bool or Layout, default=True
            Whether the page has the document map, which contains the beginning of every document; or its layout.
        progress : callable, optional
            Called with the stage, the work done, the total and a detail.
        """
        from topicsteer.model.findings import report_data
        from topicsteer.report import page
        from topicsteer.report.table_files import check_suffix

        check_suffix(Path(path), (".html", ".htm"))
        data = report_data(self, title=title, evaluation=evaluation, by=by, map=map, progress=progress)
        page.write(data, path)

    # --- for the namespaces ---

    def _training_rows(self) -> Rows:
        """Rows of the training documents; a loaded model vectorises their texts again."""
        from topicsteer.backends import as_rows

        texts = self._texts()
        return self._rows if self._rows is not None else as_rows(self.vectorizer_.transform(texts))

    def _training_embeddings(self) -> Array | None:
        if self.guide_ is None or not self.guide_.embedding:
            return None
        if self._embeddings is None and self._encoder is not None:
            self._embeddings = embed(self._encoder, self._texts())
        if self._embeddings is None:
            raise ValueError(missing_embeddings(self.state_.encoder, len(self.guide_.features.rotation)))
        return self._embeddings

    @property
    def _columns(self) -> Mapping[str, Any]:
        """Columns of the training documents, from `ReadOptions.to_json`."""
        return self.state_.reading if "state_" in vars(self) else {}

    def _texts(self) -> Sequence[str]:
        if self.documents_ is None:
            raise ValueError(
                "This model has no documents: pass them to attach, or save the model with texts=True. On the command "
                "line: name the table of the documents too, or fit with --keep-texts."
            )
        return self.documents_.texts

    def _documents_table(self, rows: Sequence[int], columns: Mapping[str, Any]) -> Frame:
        """A table of training documents: id, the columns, and the start of the text if there are texts."""
        table: dict[str, Any] = {"id": [self.state_.ids[row] for row in rows], **columns}
        if self.documents_ is not None:
            table["text"] = [beginning(self.documents_.texts[row]) for row in rows]
        return self._table(table)

    def _table(self, columns: Mapping[str, Any]) -> Frame:
        return frame(columns, self._frames == "pandas")
