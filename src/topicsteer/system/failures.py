"""From exceptions to sentences, and warnings at the line of the user's own code."""

import errno
import linecache
import sqlite3
import sys
import warnings
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType


class Kind(Enum):
    """Who can remedy a failure."""

    INPUT = "the input or a file"
    MACHINE = "the machine: memory, disk, locks"
    DEFECT = "topicsteer itself"


@dataclass(frozen=True)
class Failure:
    """A failure in words."""

    kind: Kind
    sentence: str


# Errors of the system that come from the machine, with a remedy.
REMEDIES = {
    errno.ENOSPC: "make room, and run it again",
    errno.EDQUOT: "make room, and run it again",
    errno.EFBIG: "the file would exceed a limit: raise it, or write elsewhere",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
    errno.ENOMEM: "close other programs, or use a machine with more memory",
}
# Parts of messages of SQLite, with a remedy.
SQLITE = {
    "locked": "another program uses the project: close it, and try again",
    "full": "make room, and run it again",
    "malformed": "restore the project from a backup",
    "not a database": "restore the project from a backup",
    "readonly": "make the project file and its folder writable",
    "unable to open": "check the folder of the project and its permissions",
    "I/O error": "check the disk",
}
_PACKAGE = str(Path(__file__).parents[1])


def failure(error: BaseException) -> Failure:
    """Return the failure behind an exception.

    Errors that this package raises on purpose have a sentence as their message. All others of Python's own kinds are
    defects, and their names are part of the sentence.

    Examples
    --------
    >>> failure(ValueError("the column 'x' is missing")).sentence
    "the column 'x' is missing"
    >>> failure(OSError(28, "No space left on device", "m.csv")).sentence
    'No space left on device: m.csv; make room, and run it again'
    >>> failure(ZeroDivisionError("division by zero")).kind.name
    'DEFECT'
    """
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error).strip()
    match error:
        case MemoryError():
            return Failure(Kind.MACHINE, text or "there is not enough memory: use fewer documents, or --memory 4GB")
        case OSError(errno=int(number), strerror=str(reason)):
            place = f": {error.filename}" if error.filename is not None else ""
            remedy = f"; {REMEDIES[number]}" if number in REMEDIES else ""
            return Failure(Kind.MACHINE if remedy else Kind.INPUT, f"{reason}{place}{remedy}")
        case ConnectionError() | TimeoutError() if text:
            return Failure(Kind.MACHINE, text)
        case sqlite3.Error():
            remedy = next((remedy for part, remedy in SQLITE.items() if part in text), "restore it from a backup")
            return Failure(Kind.MACHINE, f"the project file cannot be used ({text}); {remedy}")
        case UnicodeError():
            return Failure(Kind.INPUT, f"a text cannot be encoded or decoded ({text}); repair it, or pass --encoding")
        case ValueError() | OSError() | ImportError() if text:
            return Failure(Kind.INPUT, text)
        case KeyError() | TypeError() if text and _deliberate(error.__traceback__):
            return Failure(Kind.INPUT, text)
    if type(error).__module__.split(".")[0] == "polars":
        if "os error 28" in text or "No space left" in text:
            return Failure(Kind.MACHINE, f"{text}; {REMEDIES[errno.ENOSPC]}")
        return Failure(Kind.INPUT, text or type(error).__name__)
    return Failure(Kind.DEFECT, f"topicsteer failed with {type(error).__name__}: {text or 'no message'}")


def _deliberate(traceback: TracebackType | None) -> bool:
    """Return whether a ``raise`` statement of this package raised an exception."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    file = traceback.tb_frame.f_code.co_filename
    return file.startswith(_PACKAGE) and linecache.getline(file, traceback.tb_lineno).strip().startswith("raise ")


# Frames that are skipped: our own, and decorators and context managers between our code and the user's.
_INNER = frozenset({"topicsteer", "sklearn", "contextlib"})


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, however deep the problem was found.

    Parameters
    ----------
    message : str
    category : type of Warning, default=UserWarning

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("No document is labelled.")
    >>> print(caught[0].message)
    No document is labelled.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
