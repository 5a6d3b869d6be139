"""Embeddings by name, for commands and projects: a file of vectors, a column of the table, or a model2vec model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from topicsteer.guidance.embeddings import Embeddings, encoder_of
from topicsteer.system.types import JSON, Array

if TYPE_CHECKING:
    from topicsteer.corpora import Documents

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
        _check_width(str(self.path), found.shape[1])
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


@dataclass(frozen=True)
class VectorColumn:
    """Embeddings in a column of the table: lists of numbers, or text such as "[0.5, 1.25]"."""

    name: str

    def rows(self, documents: Documents) -> Array:
        """The vectors of documents; a document without a text may have none."""
        if self.name not in documents.columns:
            named = ", ".join(map(repr, documents.columns)) or "none"
            raise ValueError(
                f"there is no column {self.name!r} with embeddings; further columns are {named}. --embeddings takes a"
                f" .npy file, a column, or {MODEL2VEC}FOLDER. A corpus in blocks on disk needs a .npy file or a model."
            )
        found = [
            None if not text and cell is None else _vector(cell, f"column {self.name!r}, document {key}")
            for key, text, cell in zip(documents.ids, documents.texts, documents.columns[self.name], strict=True)
        ]
        widths = {len(vector): key for key, vector in zip(documents.ids, found, strict=True) if vector is not None}
        if len(widths) > 1:
            (one, key), (other, second) = list(widths.items())[:2]
            raise ValueError(
                f"column {self.name!r}: the embedding of document {key} has {one} numbers, and that of {second} has"
                f" {other}; expected the same number in every row."
            )
        width = next(iter(widths), 0)
        return np.array([vector or [0.0] * width for vector in found], dtype=np.float32).reshape(len(found), width)


NamedEmbeddings = Model2Vec | VectorFile | VectorColumn
# Embeddings of any kind, or their name.
AnyEmbeddings = Embeddings | str | VectorFile | VectorColumn


def embeddings_named(name: str) -> NamedEmbeddings:
    """Embeddings by their name: ``vectors.npy``, a column, or ``model2vec:FOLDER``; a file or folder must be usable.

    Examples
    --------
    >>> embeddings_named("vector")
    VectorColumn(name='vector')
    """
    if name.startswith(MODEL2VEC):
        encoder = Model2Vec(Path(name.removeprefix(MODEL2VEC)).expanduser())
        encoder.check()
        return encoder
    if name.lower().endswith(".npy"):
        file = VectorFile(Path(name).expanduser())
        file.vectors  # noqa: B018, an unreadable file is refused at once
        return file
    return VectorColumn(name)


def for_documents(source: AnyEmbeddings | None, documents: Documents) -> Embeddings | None:
    """The embeddings of some documents: rows of a file or column; an encoder or an array as it is."""
    source = embeddings_named(source) if isinstance(source, str) else source
    return source.rows(documents) if isinstance(source, VectorFile | VectorColumn) else source


def described(source: AnyEmbeddings) -> dict[str, JSON]:
    """The memory of a model of its embeddings: their name, a hash of a model2vec model, and a column of the table."""
    if isinstance(source, str):
        return described(embeddings_named(source))
    if isinstance(source, Model2Vec):
        return {"source": source.source, "digest": source.digest}
    if isinstance(source, VectorColumn):
        return {"source": f"the column {source.name!r}", "column": source.name}
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


def remembered_column(encoder: Mapping[str, Any], columns: Collection[str]) -> VectorColumn | None:
    """The column of embeddings that a model remembers, if a table has it."""
    name = encoder.get("column")
    return VectorColumn(str(name)) if name in columns else None


def missing_embeddings(encoder: Mapping[str, Any], width: int | None = None) -> str:
    """The message for a model with embeddings that gets none."""
    source = encoder.get("source")
    named = (f" of {source}" if source else "") + (f" ({width} columns)" if width else "")
    return (
        f"This model was fitted with embeddings{named}: pass the embeddings of these texts too,"
        f" as --embeddings (embeddings= in Python), or the encoder when you load the model."
    )


def _vector(cell: object, where: str) -> list[float]:
    """The numbers of a cell."""
    try:
        found = json.loads(cell) if isinstance(cell, str) else cell
        vector = np.asarray(found, dtype=np.float32)
    except (ValueError, TypeError, RecursionError):
        vector = np.zeros(0, dtype=np.float32)
    if vector.ndim != 1 or not vector.size:
        raise ValueError(f"{where}: expected a list of numbers such as [0.5, 1.25].")
    _check_width(where, len(vector))
    return list(map(float, vector))


def _check_width(where: str, width: int) -> None:
    if width > WIDEST:
        raise ValueError(f"{where}: an embedding has {width:,} numbers; expected at most {WIDEST:,}.")


def _wrong_rows(path: Path, found: int, rows: int, left_out: int) -> str:
    without = f" ({rows - left_out:,} without rows that were left out)" if left_out else ""
    return f"{path} has {found:,} rows, and the table has {rows:,}{without}: expected one row per row of the table."
