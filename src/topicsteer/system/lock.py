"""One writer at a time: locks between processes, which a crash releases, and between threads of one object."""

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from topicsteer.system.warn import warn_user

# Seconds until a waiting writer gives notice.
NOTICE = 1.0
# The lock of each object whose methods run one at a time. It is not an attribute, so objects can be copied and pickled.
_OBJECTS: weakref.WeakKeyDictionary[object, threading.RLock] = weakref.WeakKeyDictionary()
_NEW = threading.Lock()

Method = TypeVar("Method", bound=Callable[..., Any])


class Busy(OSError):
    """Another program holds a lock."""


@contextmanager
def locked(file: Path, what: object, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which is created and stays; a second call in the same thread holds it too.

    Parameters
    ----------
    file : Path
        The lock file, in a folder that exists.
    what : object
        The protected folder or file, for messages.
    wait : bool, default=True
        Wait for another writer, with a warning after a second; otherwise raise `Busy` at once.

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
        lock.acquire(timeout=NOTICE if wait else 0)
    except NotImplementedError:  # a file system without locks
        yield
        return
    except PermissionError as error:
        raise PermissionError(
            f"cannot open the lock {file}: it belongs to another user. Delete it if nobody is writing to {what}."
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
        with _NEW:
            lock = _OBJECTS.setdefault(self, threading.RLock())
        with lock:
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


def hold(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; False if another process holds it, None where this is not possible."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # no such locks on this system, or on this file system
        return None
    return True
