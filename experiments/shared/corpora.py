"""Corpora as matrices, prepared as in the paper or by default; made once and kept in results/."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from experiments import corpora
from experiments.corpora import find_corpus, where_to_get
from experiments.shared.internals import Supervision, supervise
from experiments.shared.paper_words import letters_only, paper_vectorizer
from experiments.shared.terminal import RESULTS, note
from topicsteer.corpora import Documents, ReadError
from topicsteer.text import TextVectorizer

# A token of NLTK's reader of Reuters: letters and digits, or other signs.
TOKEN = re.compile(r"\w+|[^\w\s]+")
# The last word of most stories, which NLTK's copy does not have.
SIGN_OFF = re.compile(r"\s*reuter\W*$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Tf-idf and counts (documents × terms), true labels (documents × topics), and names."""

    name: str
    X: sp.csr_array
    counts: sp.csr_array
    truth: sp.csr_array
    topics: list[str]
    terms: list[str]
    ids: list[int]

    def supervision(self, rows: np.ndarray) -> Supervision:
        """True labels of these documents; the others are unlabelled."""
        ends, columns = self.truth.indptr, self.truth.indices
        labels = {int(i): [self.topics[k] for k in columns[ends[i] : ends[i + 1]]] for i in rows}
        return supervise(labels, self.X.shape[0], topics=self.topics)


def reuters() -> Documents:
    """Reuters stories of more than 250 characters."""
    documents = corpora.load_reuters()
    return documents.select(i for i, text in enumerate(documents.texts) if len(text) > 250)


def authors_reuters() -> Documents:
    """Reuters stories as the paper's authors read them: tokens, no sign-off, more than 250 characters."""
    documents = corpora.load_reuters()
    texts = [" ".join(TOKEN.findall(SIGN_OFF.sub("", text))) for text in documents.texts]
    joined = Documents(list(documents.ids), texts, list(documents.labels))
    return joined.select(i for i, text in enumerate(texts) if len(text) > 250)


def authors_pubmed() -> Documents:
    """PubMed abstracts of more than 250 characters, with headings of at least 100 abstracts, check tags too."""
    documents = corpora.load_medline(titles=False, min_documents=100)
    long = [len(text) > 250 for text in documents.texts]
    return documents.select(i for i, labels in enumerate(documents.labels) if labels and long[i])


def abstracts() -> Documents:
    """PubMed abstracts with titles and a heading that at least 100 abstracts have; check tags do not count."""
    documents = corpora.load_medline(check_tags=False, min_documents=100)
    return documents.select(i for i, labels in enumerate(documents.labels) if labels)


def toy() -> Documents:
    """120 made-up documents on six topics, for tests."""
    rng = np.random.default_rng(0)
    topics = [f"topic{k}" for k in range(6)]
    words = np.array([[f"{a}{b}{c}ord" for b in "aeiou" for c in "lmnr"] for a in "bdfgkp"])
    labels = [sorted(rng.choice(6, size=rng.integers(1, 3), replace=False)) for _ in range(120)]
    texts = [" ".join([*rng.choice(words[own].ravel(), 25), *rng.choice(words.ravel(), 8)]) for own in labels]
    return Documents(list(range(120)), texts, [[topics[k] for k in own] for own in labels])


# Fields of a corpus that are kept as matrices.
MATRICES = ("X", "counts", "truth")
# Corpora of the paper: its own vectorizer and 2,000 terms. Their study is the only one with matrices.
SOURCES = {"reuters": authors_reuters, "reuters with sign-offs": reuters, "pubmed": authors_pubmed, "toy": toy}
STUDIES = {"paper": SOURCES}
# Names in `experiments.corpora`, where they differ.
ARCHIVES = {"pubmed": "medline", "reuters with sign-offs": "reuters"}


def load_all(names: list[str], study: str = "paper") -> dict[str, Corpus]:
    """Prepared corpora; one error names all that are missing and how to get them."""
    absent = []
    for name in dict.fromkeys(ARCHIVES.get(name, name) for name in names if not is_there(name, study)):
        try:
            find_corpus(name)
        except ReadError:
            absent.append(name)
    if absent:
        raise ReadError(
            f"These experiments need corpora that are not on this machine: {', '.join(absent)}. {where_to_get(absent)}"
        )
    return {name: load(name, study) for name in names}


def is_there(name: str, study: str) -> bool:
    """Whether a corpus is prepared or made up here."""
    return name == "toy" or place(name, study).exists()


def place(name: str, study: str) -> Path:
    """Folder of a prepared corpus, in the folder that `TOPICSTEER_PREPARED` names."""
    folder = Path(os.environ.get("TOPICSTEER_PREPARED", RESULTS / "corpora"))
    return folder / f"{study}-{name}"


@lru_cache(maxsize=2)
def load(name: str, study: str = "paper") -> Corpus:
    """A prepared corpus; real ones are read once and kept."""
    if name == "toy":
        return prepare(name, study)
    folder = place(name, study)
    if not folder.exists():
        note(f"{name}: reading (only once)")
        keep(prepare(name, study), folder)
    matrices = {part: sp.csr_array(sp.load_npz(folder / f"{part}.npz")) for part in MATRICES}
    return Corpus(name, **matrices, **json.loads((folder / "names.json").read_text()))


def prepare(name: str, study: str = "paper") -> Corpus:
    """Read a corpus and compute its matrices."""
    documents = STUDIES[study][name]()
    texts = documents.texts
    if study == "paper" and name != "toy":
        vectorizer, texts = paper_vectorizer(), letters_only(texts)
    else:
        vectorizer = TextVectorizer(**({"max_features": 2000} if study == "paper" else {}), sublinear_tf=False)
    X = sp.csr_array(vectorizer.fit_transform(texts))
    counts = count(X, vectorizer.idf_)
    if study != "paper":
        X = sp.csr_array(TextVectorizer().fit_transform(documents.texts))  # sublinear tf, the same terms
    truth = supervise(documents.labels, len(documents)).indicator()
    return Corpus(name, X, counts, truth, documents.topic_names, list(vectorizer.vocabulary_), list(documents.ids))


def keep(corpus: Corpus, folder: Path) -> None:
    """Write a prepared corpus; an interrupted write leaves nothing behind under its name."""
    making = folder.with_suffix(".part")
    making.mkdir(parents=True, exist_ok=True)
    for part in MATRICES:
        sp.save_npz(making / f"{part}.npz", getattr(corpus, part))
    (making / "names.json").write_text(json.dumps({part: getattr(corpus, part) for part in ("topics", "terms", "ids")}))
    making.rename(folder)


def count(X: sp.csr_array, idf: np.ndarray) -> sp.csr_array:
    """Counts from tf-idf rows of unit length.

    A row divided by idf is proportional to its counts, and the smallest count is taken as 1.
    """
    data = X.data / idf[X.indices]
    filled = np.diff(X.indptr) > 0
    least = np.minimum.reduceat(data, X.indptr[:-1][filled])
    data = np.rint(data / np.repeat(least, np.diff(X.indptr)[filled]))
    return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
