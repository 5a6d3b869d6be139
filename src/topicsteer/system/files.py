"""Atomic writes and temporary folders."""

import errno
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Ending of the name of an unfinished file.
PART = ".part"


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Give a temporary path in the same folder; move it into place at the end, or remove it on failure.

    Parameters
    ----------
    path : path
        The file to write or replace.
    durable : bool, default=False
        Wait until the new file is on disk before it replaces an older one.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(folder + "/a.txt") as unfinished:
    ...         _ = unfinished.write_text("all of it")
    ...     os.listdir(folder)
    ['a.txt']
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}: create it, or choose another.")
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}{PART}")
    try:
        yield unfinished
        if durable:
            sync(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8; a reader sees the old file or the new one, never a part of it."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="")


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on disk; not all systems can sync a folder."""
    folder = path.is_dir()
    try:
        descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not folder or error.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP):
            raise


class Scratch:
    """A working folder: the given one, or a temporary one that is deleted together with this object."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.temporary = path is None
        self.path = Path(tempfile.mkdtemp(prefix="topicsteer-") if path is None else path)
        if self.temporary:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
