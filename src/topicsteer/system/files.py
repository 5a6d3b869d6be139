"""Files that are whole or not there, and folders to work in."""

import errno
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PART = ".part"  # how the name of an unfinished file ends


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """A path to write to, beside the real one: moved into place at the end, removed if anything fails.

    Parameters
    ----------
    path : path
        The file that is to be.
    durable : bool, default=False
        Wait until it is on the disk before it takes the place of an older one.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(folder + "/a.txt") as unfinished:
    ...         _ = unfinished.write_text("all of it")
    ...     os.listdir(folder)
    ['a.txt']
    """
    path = Path(path)
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
    """Write a text file in UTF-8; whoever reads it meanwhile sees the old one or the new one."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk; some systems cannot do that for a folder."""
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
    """A folder to work in: one that is given, or a temporary one that goes when nothing refers to this any more."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.temporary = path is None
        self.path = Path(tempfile.mkdtemp(prefix="topicsteer-") if path is None else path)
        if self.temporary:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
