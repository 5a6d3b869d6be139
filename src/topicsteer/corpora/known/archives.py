"""The files of a tar archive or of a folder, one after another."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from topicsteer.corpora.read_report import ReadError


def read_members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in an archive (in its order) or in a folder (sorted by name).

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
        raise ReadError(f"{path}: damaged or no tar archive ({error}); download it again") from None
