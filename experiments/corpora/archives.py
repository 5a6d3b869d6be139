"""Find and read the files of the public corpora."""

from __future__ import annotations

import os
import tarfile
import tomllib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topicsteer.corpora import Documents, ReadError, ReadReport

# Environment variable with the folder of the corpora.
DATA_VARIABLE = "TOPICSTEER_DATA"


@dataclass(frozen=True)
class Archive:
    """A public corpus: title, address, hash and possible names of its file, the published name first."""

    title: str
    url: str
    sha256: str
    names: tuple[str, ...]


_LISTED = tomllib.loads(Path(__file__).with_name("corpora.toml").read_text("utf-8"))
CORPORA = {name: Archive(**entry | {"names": tuple(entry["names"])}) for name, entry in _LISTED.items()}


def find_corpus(name: str) -> Path:
    """Find the file or folder of a corpus in the folder of the environment variable TOPICSTEER_DATA."""
    folder = os.environ.get(DATA_VARIABLE)
    for file in CORPORA[name].names if folder else ():
        path = Path(str(folder)) / file
        if path.exists():
            return path
    raise ReadError(f"{CORPORA[name].title} is not on this machine. {where_to_get([name])}")


def where_to_get(names: Sequence[str]) -> str:
    """Return the addresses of corpora, and the folder for their files, in words."""
    addresses = "".join(f"    {CORPORA[name].url}\n" for name in names)
    return f"Download\n{addresses}to a folder, and set the environment variable {DATA_VARIABLE} to it."


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


def documents_of(rows: Sequence[tuple[Any, ...]], columns: Sequence[str], report: ReadReport) -> Documents:
    """Make documents from rows of id, text, labels, and one value per further column."""
    ids, texts, labels, *more = ([row[field] for row in rows] for field in range(3 + len(columns)))
    return Documents(ids, texts, labels, dict(zip(columns, more, strict=True)), report=report)
