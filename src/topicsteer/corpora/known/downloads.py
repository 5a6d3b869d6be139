"""Find, download and read the archives of the known corpora."""

import os
import tarfile
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from topicsteer.corpora.read_report import ReadError

# Environment variable with the folder of the corpora.
DATA_VARIABLE = "TOPICSTEER_DATA"


@dataclass(frozen=True)
class Corpus:
    """A corpus that can be downloaded.

    Parameters
    ----------
    title : str
        Its name.
    url : str
        Public address of the file.
    sha256 : str
        Hash of the file.
    names : tuple of str
        Possible names of the file in the data folder, the downloaded one first.

    Examples
    --------
    >>> CORPORA["reuters"].names[0]
    'reuters21578.tar.gz'
    """

    title: str
    url: str
    sha256: str
    names: tuple[str, ...]


_HOMES = tomllib.loads(files("topicsteer.corpora.known").joinpath("corpora.toml").read_text("utf-8"))
CORPORA = {name: Corpus(**home | {"names": tuple(home["names"])}) for name, home in _HOMES.items()}


def fetch(name: str, folder: str | Path | None = None) -> Path:
    """Download a corpus once from its public address, and check its hash.

    Needs the package pooch: ``pip install pooch``.

    Parameters
    ----------
    name : {"reuters", "medline", "newsgroups"}
        Which corpus.
    folder : path, optional
        The target folder. Default: the user's cache, where the loaders find it.

    Returns
    -------
    Path
        The file. Nothing is downloaded if it already exists.

    Raises
    ------
    ReadError
        If the name is unknown, the download fails, or the file has another hash.

    Examples
    --------
    ``load_reuters(fetch("reuters"))`` downloads and reads a corpus. These are the names:

    >>> list(CORPORA)
    ['reuters', 'medline', 'newsgroups']
    """
    corpus = _known(name)
    try:
        import pooch
    except ImportError:
        raise ReadError("downloading needs the package pooch: pip install pooch") from None
    target = Path(folder) if folder is not None else _cache()
    try:
        path = pooch.retrieve(corpus.url, known_hash=corpus.sha256, fname=corpus.names[0], path=target)
    except (OSError, ValueError) as error:
        raise ReadError(
            f"{corpus.title} could not be downloaded from {corpus.url} ({error}). Try again later, or put the "
            f"file into a folder and set {DATA_VARIABLE} to that folder"
        ) from None
    return Path(path)


def find_corpus(name: str) -> Path:
    """Find a corpus in the folder of the environment variable TOPICSTEER_DATA, or in the cache of `fetch`.

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


def read_members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file in an archive (in its order) or in a folder (sorted by name).

    Nothing is unpacked to disk, so that names in an archive can do no harm.
    """
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            yield file.relative_to(path).as_posix(), file.read_bytes()
        return
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                stream = archive.extractfile(member)
                if stream is not None:
                    yield member.name, stream.read()
    except FileNotFoundError:
        raise ReadError(f"{path}: there is no such file or folder; check the name") from None
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ReadError(f"{path}: damaged, or not a tar archive ({error}); download it again") from None


def _known(name: str) -> Corpus:
    if name not in CORPORA:
        raise ReadError(f"unknown corpus {name!r}: expected one of {', '.join(map(repr, CORPORA))}")
    return CORPORA[name]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "topicsteer"
