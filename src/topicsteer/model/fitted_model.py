"""What a fitted model is asked: topics, memberships, explanations, what to label next, reports."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.effects import label_effects
from topicsteer.analysis.evaluate import Evaluation
from topicsteer.analysis.explain import Explanation
from topicsteer.analysis.suggest import Doubt, suggest
from topicsteer.analysis.topics import shares
from topicsteer.backends import as_rows
from topicsteer.backends.dask import shared_folder
from topicsteer.corpora import Documents
from topicsteer.guidance.embeddings import Embeddings, Encoder, embed
from topicsteer.labels.supervision import PERMITTED
from topicsteer.model.pipeline import documents_of
from topicsteer.model.predictor import Predictor
from topicsteer.model.state import FittedState, digests, fingerprint
from topicsteer.nmf.protocols import Rows
from topicsteer.report import viewers
from topicsteer.report.page import Example, ReportData
from topicsteer.report.page import write as write_report
from topicsteer.report.tables import columns, write_parts
from topicsteer.system.renamed import Renamed
from topicsteer.system.types import Array

if TYPE_CHECKING:
    from distributed import Client

Table = Any  # a DataFrame of polars, or of pandas where the documents came in pandas

EXAMPLES = 3  # documents shown for each topic in a report,
MARKED = 0.12  # with the words marked that contribute this much of what the strongest word does


class FittedModel:
    """A fitted model: a state, and what belongs to it while it is in memory. `TopicModel` makes one."""

    state_: FittedState
    documents_: Documents | None
    embeddings_: Array | None
    encoder_: Encoder | None
    threads: int | None
    random_state: int
    free_topics: int | str
    _rows: Rows | None
    _lemmatizer: Callable[[str], str] | None
    _pandas: bool

    result_ = property(attrgetter("state_.topics"), doc="Names, terms and documents of the topics.")
    codebook = property(attrgetter("state_.codebook"), doc="The known topics.")
    supervision_ = property(attrgetter("state_.supervision"), doc="The labels as they were understood.")
    memberships_ = property(attrgetter("state_.memberships"), doc="Of the training documents, labels obeyed.")
    cuts_ = Renamed("thresholds_")
    fits = Renamed("accepts")
    thresholds_ = property(
        attrgetter("state_.thresholds"), doc="The membership from which a known topic counts as present."
    )
    profiles_ = property(attrgetter("state_.profiles"), doc="Mean terms of the documents labelled with each topic.")
    fingerprint_ = property(attrgetter("state_.fingerprint"), doc="Hash of the training documents.")
    vectorizer_ = property(attrgetter("_fitted.vectorizer"), doc="From texts to rows.")
    estimator_ = property(attrgetter("_fitted.estimator"), doc="The factorisation.")
    guide_ = property(attrgetter("_fitted.guide"), doc="From documents to probabilities; None without labels.")

    def __repr__(self) -> str:
        if not hasattr(self, "state_"):
            return f"<TopicModel: not fitted, {self.free_topics} free topics>"
        known, free = len(self.state_.codebook), len(self.state_.free_names)
        labelled = int(self.state_.supervision.labelled.sum())
        documents = len(self.state_.ids)
        return f"<TopicModel: {known} known and {free} free topics of {documents:,} documents, {labelled:,} labelled>"

    def _repr_html_(self) -> str:
        table = getattr(self.topics, "_repr_html_", None) if hasattr(self, "state_") else None
        return f"<p>{repr(self)[1:-1]}</p>" + (table() if table else "")

    @property
    def matrix_(self) -> sp.csr_array | Rows | None:
        """The documents as the factorisation took them; None in a model that was loaded."""
        return None if self._rows is None else self._rows if self._rows.matrix is None else self._rows.matrix

    @property
    def _fitted(self) -> Predictor:
        """The state at work; made anew when the state or the number of threads is another."""
        now: Predictor | None = self.__dict__.get("_predictor")
        if now is None or now.state is not self.state_ or now.threads != self.threads:
            now = self._predictor = Predictor(self.state_, self._lemmatizer, self.threads)
        return now

    def _read(self, texts: Iterable[str], embeddings: Embeddings | None = None) -> tuple[sp.csr_array, Array | None]:
        """New texts as a matrix, and their embeddings if the model was fitted with any."""
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, got one text: put it in a list, [text].")
        if hasattr(texts, "columns"):
            raise TypeError("expected a list of texts, got a table: give its column of texts; memberships takes both.")
        texts = list(texts)
        X = sp.csr_array(self._fitted.vectorizer.transform(texts))
        if self._fitted.guide is None or not self._fitted.guide.embedding:
            return X, None
        source = self.encoder_ if embeddings is None else embeddings
        if source is None:
            raise ValueError("This model was fitted with embeddings: give those of the new texts too, as embeddings=.")
        return X, embed(source, texts)

    @property
    def topics(self) -> Table:
        """Table with a row a topic: name, known or free, labelled documents, share of the corpus, terms."""
        return self._table(self.state_.topics.table())

    @property
    def document_topics(self) -> Table:
        """Table with a row a training document: its id and the share of each topic, 0 where a label forbids it."""
        return self._table(columns(self.state_.topics.ids, self.state_.topics.names, self.state_.topics.proportions))

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
        known = self.state_.topics.names[: self.state_.topics.n_known]
        if source is None:
            return self._table(columns(self.state_.topics.ids, known, self.state_.memberships))
        documents = documents_of(source, None, text, id)
        belongs = self._fitted.belongs(*self._read(documents.texts, embeddings))
        pandas = is_pandas(source) if hasattr(source, "columns") else self._pandas
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
        return self.state_.topics.index(str(topic) if str(topic) in self.state_.topics.names else topic)

    def top_terms(self, topic: Hashable, n: int = 10) -> list[str]:
        """The terms that best tell a topic, given by its name or else by its number, from the others."""
        return self.state_.topics.top_terms(self._number(topic), n)

    def top_documents(self, topic: Hashable, n: int = 10) -> Table:
        """Table of the documents with most of a topic: id, share, whether labelled with it, beginning of the text."""
        result = self.state_.topics
        k = self._number(topic)
        rows = result.top_rows(k, n)
        states = self.state_.supervision.patterns[self.state_.supervision.pattern[rows]]
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
        if id not in self.state_.topics.ids:
            raise KeyError(f"the model was not fitted to a document with the id {id!r}")
        return self._explain_row(self.state_.topics.ids.index(id))

    def _explain_row(self, row: int) -> Explanation:
        text = self._texts()[row]
        return self._fitted.explain(
            text, sp.csr_array(self._fitted.vectorizer.transform([text])), self.state_.topics.W[row]
        )

    def guidance_report(self) -> Table:
        """Table with a row a known topic: whether its labels took effect; see `label_effects`."""
        return self._table(label_effects(self.state_.topics, self.state_.supervision, self.state_.profiles))

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
            documents = Documents(self.state_.topics.ids, self._texts())
        else:
            documents = documents_of(source, None, text, id)
            old = self.accepts(documents)
        if old:
            X, belongs = self._rows_of(documents.texts), self.state_.memberships
        else:
            matrix, embeddings = self._read(documents.texts)
            X, belongs = as_rows(matrix), self._fitted.belongs(matrix, embeddings)
        rows = np.flatnonzero((X.sizes > 0) & ~(self.state_.supervision.labelled if old else np.False_))
        chosen = suggest(
            lambda rows: self._fitted.positions(X.take(rows)),
            belongs,
            self.state_.supervision,
            self._fitted.seen,
            n,
            rows=rows,
            seed=self.random_state,
        )
        names = self.state_.topics.names
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
            "id": [self.state_.topics.ids[d.row] for d in doubts],
            "topic": [self.state_.topics.names[d.topic] for d in doubts],
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

    @property
    def training_rows(self) -> Rows:
        """The documents of the fit as rows; read again from their texts in a model that was loaded."""
        return self._rows_of(self._texts())

    def _rows_of(self, texts: Sequence[str]) -> Rows:
        return self._rows if self._rows is not None else as_rows(self._fitted.vectorizer.transform(texts))

    def _training_embeddings(self) -> Array | None:
        if self._fitted.guide is None or not self._fitted.guide.embedding:
            return None
        if self.embeddings_ is None and self.encoder_ is not None:
            self.embeddings_ = embed(self.encoder_, self._texts())
        if self.embeddings_ is None:
            raise ValueError("This model was fitted with embeddings: load it with the encoder that made them.")
        return self.embeddings_

    def accepts(self, documents: Documents) -> bool:
        """Whether these are the documents that the model was fitted to."""
        return fingerprint(digests(documents)) == self.state_.fingerprint

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
        folder, result = Path(folder), self.state_.topics
        if client is not None:
            folder.mkdir(parents=True, exist_ok=True)
            shared_folder(client, folder)
        known = result.names[: result.n_known]
        write_parts(folder / "memberships", self.state_.memberships, known, result.ids, client=client)
        share = partial(shares, sizes=result.H.sum(axis=1))
        write_parts(folder / "document_topics", result.W, result.names, result.ids, change=share, client=client)

    def prepare_topic_data(self) -> dict[str, Any]:
        """The model as topicwizard takes it: ``topicwizard.visualize(topic_data=model.prepare_topic_data())``."""
        texts = self._texts()
        return viewers.topic_data(self.state_.topics, texts, self._fitted.vectorizer.transform(texts), self.transform)

    def to_pyldavis(self) -> Table:
        """PyLDAvis's prepared data; needs that package. Its topic 1 is the first row of :attr:`topics`, and so on."""
        return viewers.pyldavis(self.state_.topics, self._fitted.vectorizer.transform(self._texts()))

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
            for k, name in enumerate(self.state_.topics.names):
                rows = self.state_.topics.top_rows(k, EXAMPLES)
                shown = [(i, self._explain_row(i)) for i in rows]
                examples[k] = [Example(self.state_.topics.ids[i], e.text, e.strengths(name, MARKED)) for i, e in shown]
        estimator = {k: v for k, v in self._fitted.estimator.get_params().items() if k not in ("init", "topics")}
        content = ReportData(
            title=title,
            topics=self.state_.topics,
            examples=examples,
            guidance=label_effects(self.state_.topics, self.state_.supervision, self.state_.profiles),
            evaluation=None if evaluation is None else evaluation.tables(),
            settings={"fingerprint of the documents": self.state_.fingerprint}
            | estimator
            | self._fitted.vectorizer.get_params(),
            history=self._fitted.estimator.objective_history_.tolist(),
        )
        write_report(content, path)

    def _texts(self) -> Sequence[str]:
        if self.documents_ is None:
            raise ValueError(
                "This model does not hold its documents: give them with attach, or save the model with texts=True."
            )
        return self.documents_.texts

    def _table(self, columns: dict[str, Any]) -> Table:
        return _table(columns, self._pandas)


def is_pandas(source: object) -> bool:
    """Whether a table is one of pandas."""
    return type(source).__module__.startswith("pandas")


def _table(columns: dict[str, Any], pandas: bool) -> Table:
    """A table in the user's kind: pandas if the documents came in pandas, else polars."""
    return nw.from_dict(columns, backend="pandas" if pandas else "polars").to_native()


def _beginning(text: str, length: int = 160) -> str:
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"
