"""Everything that a fitted model returns: topics, memberships, predictions, explanations, suggestions, reports."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from topicsteer import metrics
from topicsteer.analysis import keyword_advice
from topicsteer.analysis.belief import believed
from topicsteer.analysis.compare import Comparison, compare
from topicsteer.analysis.document_map import Layout
from topicsteer.analysis.effects import label_effects
from topicsteer.analysis.evaluate import Evaluation
from topicsteer.analysis.explain import Explanation
from topicsteer.analysis.prevalence import Prevalence
from topicsteer.analysis.suggest import Doubt
from topicsteer.analysis.topics import COLUMNS, parts
from topicsteer.backends import as_rows
from topicsteer.backends.dask import shared_folder
from topicsteer.corpora import Documents
from topicsteer.corpora.options import Names
from topicsteer.guidance.embeddings import Embeddings, Encoder, embed
from topicsteer.guidance.support import unsupported_topics
from topicsteer.labels.supervision import PERMITTED
from topicsteer.model.document_map import document_map
from topicsteer.model.encoders import AnyEmbeddings, for_documents, missing_embeddings
from topicsteer.model.predictor import Predictor, embed_new
from topicsteer.model.reports import write_report
from topicsteer.model.sources import documents_of
from topicsteer.model.state import FittedState, digests, fingerprint
from topicsteer.nmf.protocols import Rows
from topicsteer.report import viewers
from topicsteer.report.document_map import map_table
from topicsteer.report.shell import model_summary
from topicsteer.report.tables import columns, one_type, write_parts
from topicsteer.system.renamed import Renamed
from topicsteer.system.types import Array, Progress
from topicsteer.system.values import NONE, is_missing

if TYPE_CHECKING:
    from distributed import Client

Table = Any  # a DataFrame of polars, or of pandas where the documents came in pandas


class FittedModel:
    """The results of a fitted `TopicModel`; `TopicModel` inherits them."""

    state_: FittedState
    documents_: Documents | None
    embeddings_: Array | None
    encoder_: Encoder | None
    threads: int | None
    random_state: int
    free_topics: Any
    prevalence: Callable[..., Prevalence]
    _rows: Rows | None
    _lemmatizer: Callable[[str], str] | None
    frames_: str

    result_ = property(attrgetter("state_.topics"), doc="Names, terms and documents of the topics.")
    codebook = property(attrgetter("state_.codebook"), doc="The known topics.")
    supervision_ = property(attrgetter("state_.supervision"), doc="The labels.")

    @property
    def memberships_(self) -> Array:
        """Memberships of the training documents in the known topics; a label makes them 1 or 0."""
        return self.state_.memberships[:, : len(self.state_.codebook)]

    cuts_ = Renamed("thresholds_")
    fits = Renamed("accepts")
    thresholds_ = property(attrgetter("state_.thresholds"), doc="Membership threshold of each known topic.")
    stage_seconds_ = property(attrgetter("state_.seconds"), doc="Seconds of each stage of the last fit.")
    profiles_ = property(attrgetter("state_.profiles"), doc="Mean terms of the documents labelled with each topic.")
    fingerprint_ = property(attrgetter("state_.fingerprint"), doc="Hash of the training documents.")
    vectorizer_ = property(attrgetter("_fitted.vectorizer"), doc="The fitted vectoriser.")
    estimator_ = property(attrgetter("_fitted.estimator"), doc="The fitted estimator.")
    guide_ = property(attrgetter("_fitted.guide"), doc="The guide; None without labels and words, or without guidance.")

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the fit, or the last update, before its time."""
        return self.state_.estimator.get("ended") == "interrupted"

    def __repr__(self) -> str:
        if not hasattr(self, "state_"):
            wanted = "" if self.free_topics is None else f", {self.free_topics} free topics"
            return f"<TopicModel: not fitted{wanted}>"
        inside = len(self.state_.topics.found)
        known, free = len(self.state_.codebook) - inside, len(self.state_.free_names) + inside
        labelled = int(self.state_.supervision.labelled.sum())
        documents = len(self.state_.ids)
        return f"<TopicModel: {known} known and {free} free topics of {documents:,} documents, {labelled:,} labelled>"

    def _repr_html_(self) -> str:
        if not hasattr(self, "state_"):
            return model_summary(repr(self)[1:-1])
        return model_summary(repr(self)[1:-1], self.state_.topics.table(none=True), COLUMNS, self.belief)

    @property
    def unsupported(self) -> list[Hashable]:
        """Names of known topics that nothing ties to a document: no label, and no word that occurs in the corpus."""
        return unsupported_topics(self.supervision_, self.guide_)

    def proposed_keywords(self, n: int = 5) -> dict[str, list[str]]:
        """Terms that go with each known topic and are not among its words yet, as further keywords."""
        return keyword_advice.proposed_keywords(self.result_, self.codebook, n)

    def ambiguous_keywords(self) -> list[tuple[str, str, str]]:
        """Keywords that fit another known topic as well: the word, its topic, and the other topic."""
        return keyword_advice.ambiguous_keywords(self.result_, self.codebook)

    @property
    def matrix_(self) -> sp.csr_array | Rows | None:
        """The document–term matrix; None in a model that was loaded."""
        return None if self._rows is None else self._rows if self._rows.matrix is None else self._rows.matrix

    @property
    def _fitted(self) -> Predictor:
        """The predictor of the present state and number of threads."""
        now: Predictor | None = self.__dict__.get("_predictor")
        if now is None or now.state is not self.state_ or now.threads != self.threads:
            now = self._predictor = Predictor(self.state_, self._lemmatizer, self.threads)
        return now

    def _read(self, texts: Iterable[str], embeddings: Embeddings | None = None) -> tuple[sp.csr_array, Array | None]:
        """Vectorise new texts, and embed them if the model was fitted with embeddings."""
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, but got one text: put it in a list, [text].")
        if hasattr(texts, "columns"):
            raise TypeError("expected a list of texts, but got a table: pass its text column, or use memberships.")
        texts = list(texts)
        X = sp.csr_array(self._fitted.vectorizer.transform(texts))
        if self._fitted.guide is None or not self._fitted.guide.embedding:
            return X, None
        source = self.encoder_ if embeddings is None else embeddings
        width = len(self._fitted.guide.dense) - len(self._fitted.guide.seen)
        if not texts:
            return X, np.zeros((0, width), dtype=np.float32)
        return X, embed_new(source, texts, width, self.state_.encoder)

    @property
    def uses_embeddings(self) -> bool:
        """Whether the guide was learnt from embeddings too, so that new texts need them."""
        return self._fitted.guide is not None and self._fitted.guide.embedding > 0

    @property
    def topics(self) -> Table:
        """Table with one row per topic: name, known or free, labelled documents, share of the documents, terms."""
        return self._table(self.state_.topics.table())

    @property
    def document_topics(self) -> Table:
        """Table with one row per training document: id, and the part of it that each topic makes up.

        It is 0 where a label forbids the topic. :meth:`memberships` are the probabilities of topics.
        """
        return self._table(columns(self.state_.topics.ids, self.state_.topics.names, self.state_.topics.proportions))

    def memberships(
        self,
        source: object = None,
        *,
        text: Names | None = None,
        id: str | None = None,
        embeddings: AnyEmbeddings | None = None,
    ) -> Table:
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
            of their table, in its order; a row without a text has NaN.
        """
        names = (*self.state_.topics.names, NONE)
        if source is None:
            topics = self.state_.topics
            return self._table(columns(topics.ids, names, topics.all_memberships(self.state_.supervision.outsiders)))
        documents = documents_of(source, False, text, id, like=self._columns, keep_all=True)
        X, E = self._read(documents.texts, for_documents(embeddings, documents))
        belongs = self._fitted.all_memberships(X, E)
        belongs[[is_missing(words) for words in documents.texts]] = np.nan
        pandas = is_pandas(source) if hasattr(source, "columns") else self.frames_ == "pandas"
        return _table(columns(documents.ids, names, belongs), pandas)

    def transform(self, texts: Iterable[str], *, embeddings: Embeddings | None = None) -> Array:
        """Topic weights of new texts for known and free topics; each text is treated by itself."""
        return self._fitted.weights(*self._read(texts, embeddings))

    def decide(self, belongs: Array, threshold: float | None = None, *, ancestors: bool = False) -> list[list[str]]:
        """Known topics from memberships with one column per known topic; one threshold, or that of each topic.

        In a tree these are the deepest topics, and with ``ancestors`` also the topics above them.
        """
        return self._fitted.decide(belongs, threshold, ancestors=ancestors)

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

    def surest(self, topic: Hashable, n: int = 10) -> Table:
        """Table of the unlabelled documents that most surely have a topic: id, membership, start of the text."""
        k, result = self._number(topic), self.state_.topics
        belongs = np.array(result.all_memberships(self.state_.supervision.outsiders)[:, k])
        belongs[self.state_.supervision.labelled] = -1
        rows = [int(i) for i in np.argsort(-belongs, kind="stable")[:n] if belongs[i] > 0]
        table: dict[str, list[Any]] = {
            "id": [result.ids[i] for i in rows],
            "membership": [float(belongs[i]) for i in rows],
        }
        if self.documents_ is not None:
            table["text"] = [beginning(self.documents_.texts[i]) for i in rows]
        return self._table(table)

    @property
    def belief(self) -> str:
        """One sentence: whether documents without a known topic exist, how many, and what describes them."""
        return believed(self.state_.topics, self.state_.believes_open, self.state_.parameters.get("world"))

    def top_documents(self, topic: Hashable, n: int = 10) -> Table:
        """Table of the documents with the largest parts of a topic: id, part, labelled or not, start of the text."""
        result = self.state_.topics
        k = self._number(topic)
        rows = result.top_rows(k, n)
        states = self.state_.supervision.patterns[self.state_.supervision.pattern[rows]]
        table: dict[str, list[Any]] = {
            "id": [result.ids[i] for i in rows],
            "part": [float(result.proportions[i, k]) for i in rows],
            "labelled": [bool(result.known(k) and state[k] == PERMITTED) for state in states],
        }
        if self.documents_ is not None:
            table["text"] = [beginning(self.documents_.texts[i]) for i in rows]
        return self._table(table)

    def explain(self, text: str, *, embeddings: Embeddings | None = None) -> Explanation:
        """Contribution of each word of a text to each topic."""
        x, E = self._read([text], embeddings)
        return self._fitted.explain(text, x, self._fitted.weights(x, E)[0])

    def explain_document(self, id: Hashable) -> Explanation:
        """Contribution of each word of a training document to each topic, under its labels."""
        row = next((row for row, key in enumerate(self.state_.topics.ids) if str(key) == str(id)), None)
        if row is None:
            raise KeyError(f"there is no training document with the id {id!r}")
        return self.explain_row(row)

    def explain_row(self, row: int, text: str | None = None) -> Explanation:
        """Contribution of each word of a training document, by its row number, under its labels.

        Parameters
        ----------
        row : int
            The row number.
        text : str, optional
            Its text, or the beginning of it. Default: the text that the model was fitted with.
        """
        text = self._texts()[row] if text is None else text
        return self._fitted.explain(
            text, sp.csr_array(self._fitted.vectorizer.transform([text])), self.state_.topics.W[row]
        )

    def guidance_report(self) -> Table:
        """Table with one row per known topic: whether its labels took effect; see `label_effects`."""
        return self._table(label_effects(self.state_.topics, self.state_.supervision, self.state_.profiles))

    def audit(self, n: int | None = None) -> Table:
        """Labels that look wrong or missing, most doubtful first; each document is predicted without its own labels.

        Parameters
        ----------
        n : int, optional
            Number of rows. Default: all labels, and all labels that seem to be missing.

        Returns
        -------
        table
            The id, the topic, the label ("permitted", "forbidden", "unknown"), the probability and the reason.
        """
        doubts = self.doubts(n)
        table: dict[str, list[Any]] = {
            "id": [self.state_.topics.ids[d.row] for d in doubts],
            "topic": [self.state_.topics.names[d.topic] for d in doubts],
            "given": [d.given for d in doubts],
            "probability": [d.probability for d in doubts],
            "why": [d.why for d in doubts],
        }
        if self.documents_ is not None:
            table["text"] = [beginning(self.documents_.texts[d.row]) for d in doubts]
        return self._table(table)

    def doubts(self, n: int | None = None) -> list[Doubt]:
        """The rows of :meth:`audit` as records, with numbers of documents and topics."""
        return self._fitted.doubts(n)

    @property
    def training_rows(self) -> Rows:
        """Rows of the training documents; a loaded model vectorises their texts again."""
        return self._rows_of(self._texts())

    def _rows_of(self, texts: Sequence[str]) -> Rows:
        return self._rows if self._rows is not None else as_rows(self._fitted.vectorizer.transform(texts))

    def _training_embeddings(self) -> Array | None:
        if self._fitted.guide is None or not self._fitted.guide.embedding:
            return None
        if self.embeddings_ is None and self.encoder_ is not None:
            self.embeddings_ = embed(self.encoder_, self._texts())
        if self.embeddings_ is None:
            width = len(self._fitted.guide.dense) - len(self._fitted.guide.seen)
            raise ValueError(missing_embeddings(self.state_.encoder, width))
        return self.embeddings_

    def accepts(self, documents: Documents) -> bool:
        """Whether these are the training documents of the model."""
        return fingerprint(digests(documents)) == self.state_.fingerprint

    def to_parquet(self, folder: str | Path, *, client: Client | None = None) -> None:
        """Write the tables of the training documents as Parquet files, block by block.

        ``folder/memberships/*.parquet`` holds the rows of :meth:`memberships`, and ``folder/document_topics/*.parquet``
        the rows of :attr:`document_topics`. Memory holds one block at a time.

        Parameters
        ----------
        folder : str or Path
            Existing tables in it are replaced.
        client : distributed.Client, optional
            Client of a Dask cluster whose workers write the files; they must have access to this folder and to the
            folder of the fit.
        """
        folder, result = Path(folder), self.state_.topics
        if client is not None:
            folder.mkdir(parents=True, exist_ok=True)
            shared_folder(client, folder)
        belongs = result.all_memberships(self.state_.supervision.outsiders)
        write_parts(folder / "memberships", belongs, (*result.names, NONE), result.ids, client=client)
        composition = partial(parts, sizes=result.H.sum(axis=1))
        write_parts(folder / "document_topics", result.W, result.names, result.ids, change=composition, client=client)

    def prepare_topic_data(self) -> dict[str, Any]:
        """Data for topicwizard: ``topicwizard.visualize(topic_data=model.prepare_topic_data())``."""
        texts = self._texts()
        return viewers.topic_data(self.state_.topics, texts, self._fitted.vectorizer.transform(texts), self.transform)

    def to_pyldavis(self) -> Table:
        """Data for pyLDAvis, which must be installed. Its topic 1 is the first row of :attr:`topics`."""
        return viewers.pyldavis(self.state_.topics, self._fitted.vectorizer.transform(self._texts()))

    def coherence(self, n: int = 10, measure: Literal["npmi", "umass"] = "npmi") -> Table:
        """Table of the coherence of each topic: how often its top terms occur in the same training documents.

        Parameters
        ----------
        n : int, default=10
            Number of top terms.
        measure : {"npmi", "umass"}, default="npmi"
            As in :func:`topicsteer.metrics.coherence`.

        Returns
        -------
        table
            The topic, its coherence (NaN with fewer than two terms), and the terms.
        """
        topics, places = self.state_.topics, {term: k for k, term in enumerate(self.state_.vocabulary)}
        terms = [topics.top_terms(k, n) for k in range(len(topics))]
        rows = self._rows_of(self._texts())
        X = rows.matrix if rows.matrix is not None else rows.take(np.arange(rows.shape[0]))
        found = [
            float(metrics.coherence(X, [[places[term] for term in own]], measure)[0]) if len(own) > 1 else np.nan
            for own in terms
        ]
        shown = [", ".join(own) for own in terms]
        return self._table({"topic": list(topics.names), "coherence": found, "terms": shown})

    def compare(self, other: FittedModel) -> Comparison:
        """Compare with another model: matched topics, terms that came and went, and documents that moved.

        Parameters
        ----------
        other : TopicModel
            A fitted model, such as an earlier one; its vocabulary and documents may be others.

        Returns
        -------
        Comparison
            ``table()`` has one row per topic of either model, and ``moves()`` counts the common documents whose main
            topic is another one.
        """
        return compare(self.state_.topics, other.state_.topics)

    def document_map(self, *, progress: Progress | None = None) -> Table:
        """Table of the training documents with their places on a map, for other tools that draw one.

        Documents with similar words are close. Of more than 100,000 documents it has a sample with all labelled ones.

        Parameters
        ----------
        progress : callable, optional
            Called with the stage, the work done, the total and a detail.

        Returns
        -------
        table
            The id, the coordinates ``x`` and ``y`` (upwards), the main ``topic`` and the ``membership`` in it. Then the
            ``kind`` of the topic ("known", "free" or "none"), whether the document is ``labelled``, and the start of
            its ``text``.
        """
        return self._table(map_table(document_map(self, progress=progress)))

    def report(
        self,
        path: str | Path,
        *,
        title: str = "Topics",
        evaluation: Evaluation | None = None,
        by: str | Sequence[str] = (),
        shares: bool | None = None,
        map: bool | Layout = True,
        progress: Progress | None = None,
    ) -> None:
        """Write one self-contained HTML page, or an Excel workbook: topics, examples, shares, evaluation, settings.

        Parameters
        ----------
        path : str or Path
            The file to write: .html, or .xlsx for a workbook with one sheet per table.
        title : str, default="Topics"
            Title of the page.
        evaluation : Evaluation, optional
            Result of :meth:`evaluate`, to be included.
        by : str or sequence of str, optional
            Columns of the documents. The report shows the shares of topics by each of them; ``"date:month"`` is a
            column of dates by month. Needs the training documents.
        shares : bool, optional
            Whether to estimate the shares of topics with their intervals, as in :meth:`prevalence`, which takes as
            long as a fit. Default: with ``by``, and for a workbook if the model has its documents.
        map : bool or Layout, default=True
            Whether the page has the document map, which contains the beginning of every document; or its layout.
        progress : callable, optional
            Called with the stage, the work done, the total and a detail.
        """
        write_report(self, path, title=title, evaluation=evaluation, by=by, shares=shares, map=map, progress=progress)

    @property
    def _columns(self) -> Mapping[str, Any]:
        """Columns of the training documents, from `ReadOptions.to_json`."""
        return self.state_.reading if hasattr(self, "state_") else {}

    def _texts(self) -> Sequence[str]:
        if self.documents_ is None:
            raise ValueError(
                "This model has no documents: pass them to attach, or save the model with texts=True. On the command "
                "line: name the table of the documents too, or fit with --keep-texts."
            )
        return self.documents_.texts

    def _table(self, columns: dict[str, Any]) -> Table:
        return _table(columns, self.frames_ == "pandas")


def is_pandas(source: object) -> bool:
    """Whether a source is a pandas DataFrame."""
    return type(source).__module__.startswith("pandas")


def frames_of(kind: str) -> str:
    """The kind of tables of a loaded model: that of its fit, if the package is installed."""
    return "pandas" if kind == "pandas" and find_spec("pandas") else "polars"


def _table(columns: dict[str, Any], pandas: bool) -> Table:
    """A pandas DataFrame if the documents came in one, else a polars DataFrame."""
    if "id" in columns and isinstance(columns["id"], list):
        columns = columns | {"id": one_type(columns["id"])}
    return nw.from_dict(columns, backend="pandas" if pandas else "polars").to_native()


def beginning(text: str, length: int = 160) -> str:
    """The start of a text on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"
