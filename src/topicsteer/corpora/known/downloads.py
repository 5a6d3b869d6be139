"""Where the known corpora live: on this machine, and in public."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from topicsteer.corpora.read_report import ReadError

DATA_VARIABLE = "TOPICSTEER_DATA"


@dataclass(frozen=True)
class Corpus:
    """A corpus that can be downloaded.

    Parameters
    ----------
    title : str
        What it is.
    url : str
        Its public home.
    sha256 : str
        Hash of the file there.
    names : tuple of str
        What the file may be called in the data folder, the downloaded one first.

    Examples
    --------
    >>> CORPORA["reuters"].names[0]
    'reuters21578.tar.gz'
    """

    title: str
    url: str
    sha256: str
    names: tuple[str, ...]


CORPORA = {
    "reuters": Corpus(
        "Reuters-21578, distribution 1.0",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",
        "3bae43c9b14e387f76a61b6d82bf98a4fb5d3ef99ef7e7075ff2ccbcf59f9d30",
        ("reuters21578.tar.gz", "reuters21578"),
    ),
    "medline": Corpus(
        "MEDLINE/PubMed baseline of 2020, file 14",
        "https://data.lhncbc.nlm.nih.gov/public/ii/information/MBR/Baselines/2020/pubmed20n0014.xml.gz",
        "adb1bf5d1dac5e786eb2043586895e4aca80e3eaa293474c5afc936ce43d88e9",
        ("pubmed20n0014.xml.gz", "pubmed/pubmed20n0014.xml.gz"),
    ),
    "newsgroups": Corpus(
        "20 Newsgroups, sorted by date",
        "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        ("20news-bydate.tar.gz", "20newsgroups/20news-bydate.jsonl.gz", "20news-bydate"),
    ),
}


def fetch(name: str, folder: str | Path | None = None) -> Path:
    """Download a corpus from its public home, once, and check it against its hash.

    Needs the package pooch: ``pip install "topicsteer[data]"``.

    Parameters
    ----------
    name : {"reuters", "medline", "newsgroups"}
        Which corpus.
    folder : path, optional
        Where to put it. Default: the user's cache, where `load_reuters` and its like look too.

    Returns
    -------
    Path
        The file. Nothing is downloaded if it is there already.

    Raises
    ------
    ReadError
        If the name is unknown, the download fails, or what arrives is not what was published.

    Examples
    --------
    ``load_reuters(fetch("reuters"))`` downloads and reads; the names are these:

    >>> list(CORPORA)
    ['reuters', 'medline', 'newsgroups']
    """
    corpus = _known(name)
    try:
        import pooch
    except ImportError:
        raise ReadError('downloading needs the package pooch: pip install "topicsteer[data]"') from None
    target = Path(folder) if folder is not None else _cache()
    try:
        path = pooch.retrieve(corpus.url, known_hash=corpus.sha256, fname=corpus.names[0], path=target)
    except (OSError, ValueError) as error:
        raise ReadError(
            f"{corpus.title} could not be fetched from {corpus.url} ({error}). Try again later, or get the "
            f"file in another way, put it into a folder and let {DATA_VARIABLE} name that folder"
        ) from None
    return Path(path)


def find_corpus(name: str) -> Path:
    """Find a corpus in the folder that TOPICSTEER_DATA names, or where `fetch` put it.

    Parameters
    ----------
    name : {"reuters", "medline", "newsgroups"}
        Which corpus.

    Returns
    -------
    Path
        The file or folder.

    Raises
    ------
    ReadError
        If the name is unknown or the corpus is not on this machine.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> with TemporaryDirectory() as folder, patch.dict(os.environ, {"TOPICSTEER_DATA": folder}):
    ...     (Path(folder) / "reuters21578.tar.gz").touch()
    ...     find_corpus("reuters").name
    'reuters21578.tar.gz'
    """
    corpus = _known(name)
    folders = [Path(os.environ[DATA_VARIABLE])] if os.environ.get(DATA_VARIABLE) else []
    for folder in (*folders, _cache()):
        for file in corpus.names:
            if (folder / file).exists():
                return folder / file
    raise ReadError(
        f'{corpus.title} is not on this machine: download it with fetch("{name}"), or let the environment '
        f"variable {DATA_VARIABLE} name the folder that holds {corpus.names[0]}"
    )


def _known(name: str) -> Corpus:
    if name not in CORPORA:
        raise ReadError(f"unknown corpus {name!r}: expected one of {', '.join(map(repr, CORPORA))}")
    return CORPORA[name]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "topicsteer"
