"""Atomic writes, locks between writers, work folders and temporary folders."""

import errno
import functools
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, TypeVar

from topicsteer.system.failures import warn_user

# Seconds until a waiting writer gives notice.
NOTICE = 1.0
# The lock of each object whose methods run one at a time. It is not an attribute, so objects can be copied and pickled.
_OBJECTS: weakref.WeakKeyDictionary[object, threading.RLock] = weakref.WeakKeyDictionary()
_NEW = threading.Lock()

Method = TypeVar("Method", bound=Callable[..., Any])


class Busy(OSError):
    """Another program holds a lock."""


@contextmanager
def locked(file: Path, what: object, *, wait: bool = True, notice: float = NOTICE) -> Iterator[None]:
    """Hold the lock of a file, which is created and stays; a second call in the same thread holds it too.

    Parameters
    ----------
    file : Path
        The lock file, in a folder that exists.
    what : object
        The protected folder or file, for messages.
    wait : bool, default=True
        Wait for another writer, with a warning after ``notice`` seconds; otherwise raise `Busy` at once.
    notice : float, default=1.0
        Seconds until a waiting writer gives notice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder, ".lock"), folder):
    ...     os.listdir(folder)
    ['.lock']
    """
    from filelock import FileLock, Timeout

    # One object per file: reentrant in one thread, and exclusive between threads.
    lock = FileLock(os.path.abspath(file), is_singleton=True)
    try:
        lock.acquire(timeout=notice if wait else 0)
    except PermissionError as error:
        raise PermissionError(
            f"cannot open the lock {file}: it belongs to another user. Delete it if nobody is writing to {what}."
        ) from error
    except NotImplementedError as error:
        raise OSError(
            f"{what} cannot be locked, as on some network drives: choose a folder on a local disk."
        ) from error
    except Timeout:
        if not wait:
            raise Busy(f"{what} is in use by another program: wait for its end, or choose another folder.") from None
        warn_user(f"Another program is writing to {what}: waiting for its end.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def one_at_a_time(method: Method) -> Method:
    """Let threads run the decorated methods of an object one after another.

    The methods of a namespace share the lock of its model, ``self._model``.

    Examples
    --------
    >>> class Counter:
    ...     value = 0
    ...     @one_at_a_time
    ...     def add(self):
    ...         self.value += 1
    >>> counter = Counter()
    >>> counter.add()
    >>> counter.value
    1
    """

    @functools.wraps(method)
    def run(self: object, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(self, "_model", self)
        with _NEW:
            lock = _OBJECTS.setdefault(owner, threading.RLock())
        with lock:
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


def hold(descriptor: int) -> bool:
    """Lock an open file until it is closed, unless another process holds it; OSError where this is not possible.

    Unlike the lock of `locked`, it holds under every name of the file, also if it is renamed.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 1 << 40, os.SEEK_SET)  # nobody can read a locked byte there: one after the end
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


# Ending of the name of an unfinished file.
PART = ".part"
# Name of an unfinished file: its final name, and twelve random digits.
_UNFINISHED = re.compile(rf"\..+\.[0-9a-f]{{12}}{re.escape(PART)}")
# File that marks a folder as made by topicsteer. It is locked while a temporary folder is in use.
MARKER = ".topicsteer"
# Start of the name of a temporary folder.
TEMPORARY = "topicsteer-"
# Seconds before a file without a lock counts as abandoned: it is created first and locked afterwards.
YOUNG = 60
# Folders that this process has swept.
_SWEPT: set[Path] = set()


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, durable: bool = False, new: bool = False, sweeping: bool = True
) -> Iterator[Path]:
    """Give a temporary file in the same folder; move it into place at the end, or remove it on failure.

    The file is new and empty: a link that somebody planted is never followed. It is locked, so the next process that
    writes to this folder can remove it after a crash.

    Parameters
    ----------
    path : path
        The file to write or replace.
    durable : bool, default=False
        Wait until the new file is on disk before it replaces an older one.
    new : bool, default=False
        Raise FileExistsError, and never replace a file, if the path exists at the end.
    sweeping : bool, default=True
        Remove unfinished files of ended processes first, once per folder.

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
    if sweeping:
        _sweep_once(path.parent)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}{PART}")
    with open(unfinished, "xb") as owner:
        try:
            with suppress(OSError):
                hold(owner.fileno())
            yield unfinished
            if durable:
                sync(unfinished)
            if os.name == "nt":  # an open file cannot be moved there
                owner.close()
            _place_new(unfinished, path) if new else os.replace(unfinished, path)
        except BaseException:
            _discard(unfinished)
            raise


def _discard(unfinished: Path) -> None:
    """Remove an unfinished file, and the files that SQLite has next to its own."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            os.unlink(f"{unfinished}{suffix}")


def _place_new(unfinished: Path, path: Path) -> None:
    """Give a file its final name, which must be free."""
    try:
        os.link(unfinished, path)
    except OSError as error:
        if isinstance(error, FileExistsError) or path.exists():
            raise FileExistsError(errno.EEXIST, "the file exists", str(path)) from None
        os.replace(unfinished, path)  # a file system without hard links
    else:
        unfinished.unlink()


def through(path: str | os.PathLike[str]) -> Path:
    """Return the target of a symbolic link, to write there; a link that another user planted is replaced itself."""
    linked = os.path.islink(path) and not _from_a_stranger(Path(path))
    return Path(os.path.realpath(path)) if linked else Path(path)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8; a reader sees the old file or the new one, never a part of it."""
    with replacing(through(path)) as unfinished:
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


def reserve(file: IO[bytes], size: int) -> None:
    """Reserve room on the disk for a file that is written through memory; raises OSError if there is none.

    Without a reservation, the system kills a process that writes to a page without room.
    """
    if not hasattr(os, "posix_fallocate") or not size:
        return
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # a file system that reserves nothing
            raise


# --- folders ---


class Scratch:
    """A working folder: the given one, or a temporary one that is deleted together with this object.

    Parameters
    ----------
    path : path, optional
        A folder for the files of a fit, which stays. Call :meth:`claim` before anything is written. Default: a
        temporary folder.
    parent : path, optional
        Folder of the temporary folder, for files that are moved out of it at the end. Default: that of the system.

    Examples
    --------
    >>> with Scratch() as folder:
    ...     _ = (folder / "notes").write_text("for a while")
    >>> folder.exists()
    False
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, parent: str | os.PathLike[str] | None = None
    ) -> None:
        self.temporary = path is None
        if path is not None:
            self.path = Path(path)
            return
        home = Path(tempfile.gettempdir() if parent is None else parent)
        _sweep_once(home)
        if parent is None:
            self.path = Path(tempfile.mkdtemp(prefix=TEMPORARY))
        else:  # its content is as private as the rest of that folder
            self.path = home / f".{TEMPORARY}{uuid.uuid4().hex[:12]}"
            self.path.mkdir()
        owner = open(self.path / MARKER, "xb")  # noqa: SIM115
        with suppress(OSError):
            hold(owner.fileno())
        self._end = weakref.finalize(self, _remove, self.path, owner)

    def claim(self) -> Self:
        """Mark the folder, and create it if it does not exist; one with files of others is refused.

        Raises
        ------
        ValueError
            If it is a file, or holds files and no marker, or if a stranger may have made it.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file: choose a new folder for temporary files.")
        if self.path.exists() and _from_a_stranger(self.path):
            raise ValueError(f"{self.path} belongs to another user: choose a new folder for temporary files.")
        if self.path.exists() and not self.claimed and (other := next(self.path.iterdir(), None)):
            raise ValueError(
                f"{self.path} holds files that topicsteer did not write, such as {other.name!r}: choose a new or "
                "empty folder for temporary files, or delete this one."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / MARKER).touch()
        return self

    @property
    def claimed(self) -> bool:
        """Whether the folder has the marker."""
        return (self.path / MARKER).is_file()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Claim the folder, and keep other fits out of it meanwhile."""
        if self.temporary:
            yield
            return
        with locked(self.claim().path / f"{MARKER}.lock", self.path, wait=False):
            yield

    def remove(self) -> None:
        """Delete the folder if it is marked; without a marker nothing happens."""
        if self.temporary:
            self._end()
        elif self.claimed:
            shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder on the same disk; at the end it replaces the folder ``path``.

    The caller checks first that an earlier folder may be replaced.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with replacing_folder(Path(home, "tables")) as unfinished:
    ...         _ = (unfinished / "a.txt").write_text("all of it")
    ...     os.listdir(home)
    ['tables']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with Scratch(parent=path.parent) as scratch:
        new = scratch / "new"
        new.mkdir()
        yield new
        if path.exists():
            path.rename(scratch / "old")
        new.rename(path)


def _from_a_stranger(folder: Path) -> bool:
    """Return whether a folder belongs to another user and stands where everybody can create folders, as in /tmp."""
    if not hasattr(os, "getuid"):
        return False
    return bool(folder.absolute().parent.stat().st_mode & 0o002) and folder.lstat().st_uid not in (os.getuid(), 0)


def _remove(folder: Path, owner: BinaryIO) -> None:
    """Delete a temporary folder, then release its lock."""
    with closing(owner):
        if os.name == "nt":  # an open file cannot be deleted there
            owner.close()
        shutil.rmtree(folder, ignore_errors=True)


def _sweep_once(folder: Path) -> None:
    """Remove unfinished files and temporary folders of ended processes, once per folder and process."""
    folder = folder.absolute()
    if folder in _SWEPT:
        return
    _SWEPT.add(folder)
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.name.lstrip(".").startswith(TEMPORARY) and entry.is_dir(follow_symlinks=False):
                if _abandoned(Path(entry, MARKER)):
                    shutil.rmtree(entry, ignore_errors=True)
            elif _UNFINISHED.fullmatch(entry.name) and _abandoned(Path(entry)):
                _discard(Path(entry))


def _abandoned(file: Path) -> bool:
    """Return whether a file belongs to this user, is older than a minute, and no process holds its lock."""
    try:
        found = file.lstat()
        mine = hasattr(os, "getuid") and found.st_uid == os.getuid()
        if not mine or not file.is_file() or file.is_symlink() or time.time() - found.st_mtime < YOUNG:
            return False
        with open(file, "rb") as other:
            return hold(other.fileno())
    except OSError:
        return False
