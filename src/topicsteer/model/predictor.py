"""Predictions of a fitted state, with the embeddings that they may need."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from topicsteer.analysis.topics import all_memberships, proportions
from topicsteer.corpora import Documents
from topicsteer.guidance.apply import covered_topics, topic_classes, topic_penalties, topic_probabilities
from topicsteer.guidance.guide import Guide
from topicsteer.labels.codebook import Codebook
from topicsteer.model.state import FittedState
from topicsteer.nmf.solvers import Regularisation
from topicsteer.nmf.weights import FEW, document_weights
from topicsteer.report.table_files import columns, one_type, own_column
from topicsteer.system.types import JSON, Array
from topicsteer.system.values import NONE, UNSURE, is_missing
from topicsteer.text.meaning import Embeddings, Encoder, embed, encoder_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from topicsteer.corpora import Documents

    Frame: TypeAlias = pl.DataFrame | pd.DataFrame
    from topicsteer.text.vectorizer import TextVectorizer


# Beginning of the name of a model2vec model.
MODEL2VEC = "model2vec:"
# Files of a model2vec model that decide its embeddings.
MODEL_FILES = ("model.safetensors", "tokenizer.json")
# Largest number of columns.
WIDEST = 100_000


class Model2Vec:
    """A model2vec model in a folder of this machine, loaded when it is first used.

    Parameters
    ----------
    folder : Path
    digest : str, optional
        Hash of the model that is expected, such as that of the fit.
    """

    def __init__(self, folder: Path, digest: str | None = None) -> None:
        self.folder, self._expected = folder, digest

    @property
    def source(self) -> str:
        """Its name."""
        return f"{MODEL2VEC}{self.folder.absolute()}"

    @cached_property
    def digest(self) -> str:
        """Hash of the files of the model."""
        found = hashlib.sha256()
        for name in MODEL_FILES:
            with (self.folder / name).open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
        return found.hexdigest()[:32]

    @cached_property
    def _model(self) -> Any:
        if missing := [name for name in MODEL_FILES if not (self.folder / name).is_file()]:
            raise ValueError(
                f"{self.folder} is not the folder of a model2vec model: it has no {missing[0]}."
                f" Pass the folder with --embeddings {MODEL2VEC}FOLDER."
            )
        if self._expected not in (None, self.digest):
            raise ValueError(
                f"{self.folder} is another model2vec model than that of the fit: pass the folder of that one."
            )
        try:
            from model2vec import StaticModel
        except ImportError as error:
            raise ImportError(f"{error}. Embeddings by model2vec: pip install 'topicsteer[embeddings]'") from error
        try:
            return StaticModel.from_pretrained(str(self.folder))  # a folder, so nothing is downloaded
        except Exception as error:  # of safetensors, of tokenizers, and of model2vec itself
            raise ValueError(f"{self.folder} cannot be read as a model2vec model: {error}") from error

    def check(self) -> None:
        """Raise an error if the model cannot be used."""
        assert self._model is not None  # noqa: S101

    def encode(self, texts: Sequence[str]) -> Array:
        """One row per text."""
        return np.asarray(self._model.encode(list(texts)), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class VectorFile:
    """Embeddings in a .npy file with one row per row of the table."""

    path: Path

    @property
    def source(self) -> str:
        """Its name."""
        return str(self.path.absolute())

    @cached_property
    def vectors(self) -> Array:
        """The vectors, mapped from the file."""
        try:
            found = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise ValueError(f"there is no file {self.path} with embeddings.") from None
        except Exception as error:  # a damaged header has errors of its parser
            raise ValueError(f"{self.path} is not a .npy file of numbers ({error}).") from None
        if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind not in "fiu" or not found.size:
            kind = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
            raise ValueError(f"{self.path} holds {kind}; expected numbers with one row per document and some columns.")
        if found.shape[1] > WIDEST:
            raise ValueError(f"{self.path} has {found.shape[1]:,} columns; expected at most {WIDEST:,}.")
        return found

    def rows(self, documents: Documents) -> Array:
        """The rows of documents; rows of the table that were left out are left out here too."""
        n, left_out = len(documents), documents.report.left_out
        if len(self.vectors) == n:
            return self.vectors
        if len(self.vectors) == n + len(left_out) and left_out:
            return np.delete(self.vectors, left_out, axis=0)
        raise ValueError(_wrong_rows(self.path, len(self.vectors), n + len(left_out), len(left_out)))

    def check_rows(self, rows: int) -> None:
        """Raise an error unless there is one vector per row of the table."""
        if len(self.vectors) != rows:
            raise ValueError(_wrong_rows(self.path, len(self.vectors), rows, 0))


NamedEmbeddings = Model2Vec | VectorFile
# Embeddings of any kind, or their name.
AnyEmbeddings = Embeddings | str | VectorFile


def embeddings_named(name: str) -> NamedEmbeddings:
    """Embeddings by their name: ``vectors.npy`` or ``model2vec:FOLDER``, which must be usable."""
    if name.startswith(MODEL2VEC):
        encoder = Model2Vec(Path(name.removeprefix(MODEL2VEC)).expanduser())
        encoder.check()
        return encoder
    if not name.lower().endswith(".npy"):
        raise ValueError(f"embeddings are {name!r}: expected a .npy file, or {MODEL2VEC}FOLDER.")
    file = VectorFile(Path(name).expanduser())
    file.vectors  # noqa: B018, an unreadable file is refused at once
    return file


def for_documents(source: AnyEmbeddings | None, documents: Documents) -> Embeddings | None:
    """The embeddings of some documents: rows of a file; an encoder or an array as it is."""
    source = embeddings_named(source) if isinstance(source, str) else source
    return source.rows(documents) if isinstance(source, VectorFile) else source


def described(source: AnyEmbeddings) -> dict[str, JSON]:
    """The memory of a model of its embeddings: their name, and a hash of a model2vec model."""
    if isinstance(source, str):
        return described(embeddings_named(source))
    if isinstance(source, Model2Vec):
        return {"source": source.source, "digest": source.digest}
    if isinstance(source, VectorFile):
        return {"source": source.source}
    encode = encoder_of(source)
    if encode is None:
        return {"source": "an array"}
    return {"source": getattr(source, "__name__", type(source).__name__)}


def remembered(encoder: Mapping[str, Any]) -> Model2Vec | None:
    """The encoder that a model remembers, if it can be loaded from a folder."""
    source = str(encoder.get("source", ""))
    if not source.startswith(MODEL2VEC):
        return None
    return Model2Vec(Path(source.removeprefix(MODEL2VEC)), encoder.get("digest"))


def missing_embeddings(encoder: Mapping[str, Any], width: int | None = None) -> str:
    """The message for a model with embeddings that gets none."""
    source = encoder.get("source")
    named = (f" of {source}" if source else "") + (f" ({width} columns)" if width else "")
    return (
        f"This model was fitted with embeddings{named}: pass the embeddings of these texts too,"
        f" as --embeddings (embeddings= in Python), or the encoder when you load the model."
    )


def _wrong_rows(path: Path, found: int, rows: int, left_out: int) -> str:
    without = f" ({rows - left_out:,} without rows that were left out)" if left_out else ""
    return f"{path} has {found:,} rows, and the table has {rows:,}{without}: expected one row per row of the table."


def frame(columns: Mapping[str, Any], pandas: bool, index: Any = None) -> Frame:
    """Return columns as a DataFrame of pandas, with an index if there is one, or of polars."""
    import narwhals.stable.v2 as nw

    table = dict(columns)
    if isinstance(table.get("id"), list):
        table["id"] = one_type(table["id"])
    found = nw.from_dict(table, backend="pandas" if pandas else "polars").to_native()
    return found if index is None or not pandas else found.set_axis(index)


def index_of(source: object, documents: Documents) -> Any:
    """Return the index of the documents in a frame or series of pandas; None of any other source."""
    if not is_pandas(source):
        return None
    index: Any = getattr(source, "index")  # noqa: B009
    return index if len(index) == len(documents) else index.delete(list(documents.report.left_out))


def is_pandas(source: object) -> bool:
    """Whether a source is a DataFrame or Series of pandas."""
    return type(source).__module__.startswith("pandas")


def frames_of(kind: str) -> str:
    """Return the kind of tables of a loaded model: that of its fit, if the package is installed."""
    return "pandas" if kind == "pandas" and find_spec("pandas") else "polars"


def beginning(text: str, length: int = 160) -> str:
    """Return the start of a text on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"


def embed_new(source: Embeddings | None, texts: Sequence[str], width: int, encoder: Mapping[str, Any]) -> Array:
    """The embeddings of new texts, with as many columns as in the fit, whose encoder an error names."""
    if source is None:
        raise ValueError(missing_embeddings(encoder, width))
    found = embed(source, texts)
    if found.shape[1] != width:
        raise ValueError(f"embeddings have {found.shape[1]} columns, and {width} in the fit: use the same encoder.")
    return found


@dataclass(eq=False, repr=False)
class Predictor:
    """A fitted state with its vectoriser and guide, each built on first use.

    Parameters
    ----------
    state : FittedState
    lemmatizer : callable, optional
        The lemmatizer of the fit, if there was one.
    encoder : callable, optional
        The encoder of the fit, if there was one.
    threads : int, optional
    """

    state: FittedState
    lemmatizer: Callable[[str], str] | None = None
    encoder: Encoder | None = None
    threads: int | None = None

    def predict(self, documents: Documents | Iterable[str], embeddings: Embeddings | None = None) -> Predictions:
        """Predict the topics of documents, without regard to labels.

        Parameters
        ----------
        documents : Documents or iterable of str
            A document without a text has no topics, and NaN as its memberships.
        embeddings : array, encoder or callable, optional
            Embeddings of the documents, if the model was fitted with an array of embeddings.
        """
        if not isinstance(documents, Documents):
            texts = _texts(documents)
            documents = Documents(range(len(texts)), texts)
        return Predictions(self, documents, *self.read(documents.texts, embeddings))

    def read(
        self, texts: Iterable[str], embeddings: Embeddings | None = None, *, embed: bool = True
    ) -> tuple[sp.csr_array, Array | None]:
        """Vectorise new texts, and embed them if the model was fitted with embeddings."""
        texts = _texts(texts)
        X = sp.csr_array(self.vectorizer.transform(texts))
        guide = self.guide
        if guide is None or not guide.embedding or not embed:
            return X, None
        source = self.encoder if embeddings is None else embeddings
        width = len(guide.features.rotation)
        if not texts:
            return X, np.zeros((0, width), dtype=np.float32)
        return X, embed_new(source, texts, width, self.state.encoder)

    @cached_property
    def vectorizer(self) -> TextVectorizer:
        """The vectoriser of texts."""
        if self.state.lemmatized and self.lemmatizer is None:
            raise ValueError("this model was fitted with a lemmatizer: pass the same one to load.")
        from topicsteer.text.vectorizer import TextVectorizer

        state = self.state
        return TextVectorizer.from_state(state.vectorizer, state.vocabulary, state.idf, lemmatizer=self.lemmatizer)

    @cached_property
    def guide(self) -> Guide | None:
        """The guide; None without labels and words."""
        state = self.state
        if state.guide is None:
            return None
        return Guide.from_arrays(state.guide, state.outside)

    def belongs(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """Memberships of documents, with the columns of the state's memberships; labels are ignored."""
        known, forest = len(self.state.groups), self.state.codebook.forest
        if self.guide is None:
            return forest.summed(self._shares(X)[:, :known])
        classes = self.guide.probabilities(X, self.threads, embeddings=embeddings, plain=X.shape[0] <= FEW)
        return topic_probabilities(classes, self._classes, forest, known, self.guide)

    def all_memberships(self, X: sp.csr_array, embeddings: Array | None, found: Array | None = None) -> Array:
        """Memberships of documents in all topics, from the result of :meth:`belongs`; the last column is P(none)."""
        found = self.belongs(X, embeddings) if found is None else found
        if found.shape[1] == len(self.state.names) + 1:
            return found
        parts = proportions(self.weights(X, embeddings), self.state.components)
        return all_memberships(found, parts, len(self.state.groups))

    def weights(self, X: sp.csr_array, embeddings: Array | None) -> Array:
        """Topic weights of documents; labels are ignored. With a guide, the same penalties apply as in the fit."""
        if self.guide is None or not X.shape[0]:
            return self._solve(X)
        covered = covered_topics(self.guide, self._classes)
        penalties = topic_penalties(
            self.state.codebook.forest.rest(self.belongs(X, embeddings)[:, : len(covered)]),
            covered,
            len(self.state.components),
            open_world=self.guide.open,
        )
        return self._solve(X, penalties)

    def positions(self, X: sp.csr_array) -> Array:
        """Positions of documents in the latent space; topic shares without a guide or in a tiny corpus."""
        if self.guide is not None and self.guide.seen.size:
            return self.guide.positions(X, self.threads)
        return self._shares(X)

    @property
    def seen(self) -> Array:
        """ZᵀZ of the labelled documents' positions."""
        if self.guide is not None and self.guide.seen.size:
            return self.guide.seen
        Z = self.state.topics.proportions[self.state.supervision.labelled]
        return np.asarray(Z.T @ Z)

    def _shares(self, X: sp.csr_array) -> Array:
        return proportions(self._solve(X), self.state.components)

    def _solve(self, X: sp.csr_array, penalties: sp.csr_array | None = None) -> Array:
        """Topic weights of documents."""
        given, H = self.state.estimator, self.state.components
        strength = {name: float(str(given.get(name) or 0.0)) for name in ("alpha_W", "alpha_H", "l1_ratio")}
        return document_weights(X, H, penalties, Regularisation.of(H.shape[1], **strength), self.threads)

    @property
    def _classes(self) -> list[tuple[int, ...]]:
        """Classes of the guide that make up each topic."""
        n_known = 0 if self.guide is None else self.guide.n_known
        return topic_classes(self.state.groups, self.state.free_groups, n_known)


class Predictions:
    """Predicted topics of documents.

    Parameters
    ----------
    predictor : Predictor
    documents : Documents
    X : CSR (n_documents, n_terms)
        Terms of the documents.
    embeddings : array, optional
    """

    def __init__(self, predictor: Predictor, documents: Documents, X: sp.csr_array, embeddings: Array | None) -> None:
        self.documents = documents
        self._predictor = predictor
        self._X = X
        self._embeddings = embeddings
        self._filled = np.array([not is_missing(text) for text in documents.texts], dtype=np.bool_)

    @cached_property
    def memberships(self) -> Array:
        """Memberships in all topics; the last column is P(none). NaN without a text."""
        found = self._predictor.all_memberships(self._X, self._embeddings, self._known)
        found[~self._filled] = np.nan
        return found

    @cached_property
    def _known(self) -> Array:
        """Memberships in the topics that the guide knows; without a guide, in all known topics."""
        return self._predictor.belongs(self._X, self._embeddings)

    def decisions(self, *, ancestors: bool = False) -> list[list[str]]:
        """Return the known topics of each document, strongest first: memberships at or above their thresholds.

        In a tree these are the deepest topics, and with ``ancestors`` also the topics above them.
        """
        state = self._predictor.state
        found = state.judge(self._known).decisions(state.names, ancestors=ancestors)
        return [names if full else [] for names, full in zip(found, self._filled.tolist(), strict=True)]

    def table(self, *, as_text: bool = False) -> dict[str, list[Any]]:
        """Return the columns of the documents' own table, then predicted topics and memberships; empty without a text.

        Free topics without a term have no column.

        Parameters
        ----------
        as_text : bool, default=False
            Whether numbers of the table become text with all their digits, for formats in which they would be rounded.
        """
        documents, topics = self.documents, self._predictor.state.topics
        filled = self._filled.tolist()
        answers: dict[str, list[Any]] = {"predicted": []}
        unsure = UNSURE if topics.n_known else ""
        outside = self._predictor.state.judge(self.memberships).has_none.tolist()
        for each, none, full in zip(self.decisions(), outside, filled, strict=True):
            shown = "; ".join(each) or (NONE if none else unsure)
            answers["predicted"].append(shown if full else None)
        named = columns(documents.ids, (*topics.names, NONE), self.memberships)
        for name in topics.empty:
            del named[name]
        (key, ids), *rest = named.items()
        for topic, values in rest:
            name = f"{topic} (topic)" if topic == "predicted" else topic
            answers[name] = [float(value) if full else None for value, full in zip(values, filled, strict=True)]
        has_ids = documents.reading is not None and bool(documents.reading.id)
        table: dict[str, list[Any]] = {} if has_ids else {key: list(ids)}
        for name, cells in documents.columns.items():
            while name in table or name in answers:
                name = f"{name} (table)"
            table[name] = own_column(cells, as_text=as_text)
        return table | answers


def _texts(given: Iterable[str]) -> list[str]:
    """Return texts as a list; other input raises an error."""
    if isinstance(given, str):
        raise TypeError("expected a list of texts, but got one text: put it in a list, [text].")
    if hasattr(given, "columns"):
        raise TypeError("expected a list of texts, but got a table: pass its text column, or use memberships.")
    return list(given)


# --- arguments of a TopicModel ---


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, JSON]:
    """Arguments of a `TopicModel` as JSON values, without functions and start matrices."""
    plain = dict(parameters)
    if plain["parents"] is not None:
        plain["parents"] = {str(topic): str(parent) for topic, parent in plain["parents"].items()}
    for name in ("keywords", "banned", "descriptions"):
        if plain[name] is not None:
            words = plain[name].items()
            plain[name] = {str(topic): value if isinstance(value, str) else list(value) for topic, value in words}
    topics, vectorizer = plain["topics"], plain["vectorizer"]
    if isinstance(topics, Codebook):
        plain["topics"] = {"codebook": topics.to_json()}
    elif topics is not None:
        plain["topics"] = [name.item() if isinstance(name, np.generic) else name for name in topics]
    if vectorizer is not None:
        options = vectorizer.get_params()
        if not isinstance(vectorizer.stop_words, str | None):
            options["stop_words"] = sorted(vectorizer.stop_words)
        plain["vectorizer"] = {name: value for name, value in options.items() if name != "lemmatizer"}
    return plain


def parameters_of(plain: Mapping[str, Any], lemmatizer: Callable[[str], str] | None = None) -> dict[str, Any]:
    """Arguments of a `TopicModel` from the values of :func:`plain_parameters`."""
    from topicsteer.text.vectorizer import TextVectorizer

    given = dict(plain)
    if isinstance(given.get("topics"), dict):
        given["topics"] = Codebook.from_json(given["topics"]["codebook"])
    if given.get("vectorizer") is not None:
        given["vectorizer"] = TextVectorizer(**given["vectorizer"], lemmatizer=lemmatizer)
    return given
