"""Arrays in files, and a check of sparse ones: a folder of arrays and one ``model.json``, with checksums, no pickle.

Each array is stored in a file named after its content, so a new model never overwrites a file of the old one. The new
model replaces the old one when its ``model.json`` is moved into place. The old files are removed afterwards, so an
interrupted save leaves a complete model.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from topicsteer import __version__
from topicsteer.system.files import PART, replacing, sync
from topicsteer.system.types import JSON

if TYPE_CHECKING:
    import scipy.sparse as sp

# Version of the file format.
FORMAT = 2
# Arrays of at least this many bytes are mapped from their file, not read into memory.
MAPPED = 1 << 28
# Kinds of dtype that .npy stores without pickle: numbers, booleans, text and dates.
_KINDS = "biufcSUmM"
# The file that describes a model.
_MODEL = "model.json"
# Name of an array.
_NAME = re.compile(r"[a-z][a-z0-9_]*")
# File of an array: its name and the start of its checksum.
_FILE = re.compile(_NAME.pattern + r"-[0-9a-f]{12}\.npy")
# Files left by an interrupted save.
_UNFINISHED = re.compile(rf"\.({_FILE.pattern}|{re.escape(_MODEL)})\.[0-9a-f]{{12}}{re.escape(PART)}")
# Files that topicsteer may delete.
_OURS = re.compile(f"{_FILE.pattern}|{_UNFINISHED.pattern}")
# The lock of a model folder, which its writers hold; see `topicsteer.model.state`.
LOCK = ".topicsteer.lock"
# Held while numpy parses the header of a .npy file; see `load_array`.
_PARSING = threading.Lock()
# Advice in messages about damaged files.
_AGAIN = "restore the folder from a backup, or save the model again"


class StorageError(ValueError):
    """A model could not be saved or loaded; the message names the file and a remedy.

    Examples
    --------
    >>> load("no/such/folder")
    Traceback (most recent call last):
    topicsteer.system.arrays.StorageError: there is no folder no/such/folder; give the folder of a saved model
    """


def save(folder: str | os.PathLike[str], meta: Mapping[str, JSON], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Save arrays and their metadata; an older model in the folder is replaced completely or not at all.

    Parameters
    ----------
    folder : path
        A new or empty folder, or one that holds a model. Unrelated files next to a model are left alone. Only one
        process at a time may save to it: `topicsteer.model.state` holds its lock.
    meta : mapping of str to JSON
        Options, names, lists of text. It must survive JSON unchanged: no tuples, no NaN, only strings as keys.
    arrays : mapping of str to array
        Numbers, booleans, text or dates, under names such as ``components``.

    Raises
    ------
    StorageError
        If a value cannot be stored, the folder holds unrelated files and no model, or the disk is full. An older
        model can still be loaded.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder, {"topics": ["tea"]}, {"components": np.eye(2)})
    ...     sorted(os.listdir(folder))
    ['components-....npy', 'model.json']
    """
    folder = Path(folder)
    _check_content(meta, arrays)
    check_folder(folder)
    before: set[str] | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = {name for name in os.listdir(folder) if not _UNFINISHED.fullmatch(name)}
        entries = {name: _put_array(folder, name, array) for name, array in arrays.items()}
        document: dict[str, JSON] = {"topicsteer": __version__, "format": FORMAT, "arrays": entries, "meta": dict(meta)}
        text = json.dumps({**document, "sha256": _checksum(document)}, ensure_ascii=False) + "\n"
        sync(folder.parent)
        sync(folder)
        with replacing(folder / _MODEL, durable=True) as unfinished:
            # Half of a surrogate pair is written as its JSON escape.
            unfinished.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        if before is not None:
            _sweep(folder, keep=before)
        raise StorageError(
            f"could not save to {folder}: {error.strerror or error}; the folder is unchanged; "
            "make room or choose another folder, and save again"
        ) from error
    # The new model is in place. The old files stay until it is safely on disk.
    with suppress(OSError):
        sync(folder)
        _sweep(folder, keep={str(entry["file"]) for entry in entries.values()})


def load(folder: str | os.PathLike[str], *, mapped: int = MAPPED) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Load a saved model, bit for bit; every file is checked.

    Parameters
    ----------
    folder : path
        The folder of a saved model.
    mapped : int
        Arrays of at least this many bytes are mapped from their file, not read into memory.

    Returns
    -------
    meta : dict
        As saved.
    arrays : dict of str to array
        With their original dtype, shape and memory order.

    Raises
    ------
    StorageError
        If there is no model, it has a newer format, or a file is missing, damaged or outside the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(folder, {"topics": ["tea"]}, {"components": np.eye(2)})
    ...     load(folder)
    ({'topics': ['tea']}, {'components': array([[1., 0.], [0., 1.]])})
    """
    folder = Path(folder)
    if folder.is_file():
        raise StorageError(f"{folder} is a file; give the folder of a saved model (unpack a .zip first)")
    if not folder.is_dir():
        raise StorageError(f"there is no folder {folder}; give the folder of a saved model")
    path, data = folder / _MODEL, _read(folder, _MODEL, mapped).tobytes()
    try:
        document = json.loads(data)
        checksum = _checksum(document) if isinstance(document, dict) else None
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is not JSON ({error}); {_AGAIN}") from error
    match document:
        case {"topicsteer": str(writer), "format": int(number)} if number > FORMAT:
            raise StorageError(
                f"{path} has format {number}, written by topicsteer {writer}; this is topicsteer {__version__}, which "
                f"reads formats up to {FORMAT}: upgrade topicsteer"
            )
        case {"topicsteer": str(writer), "format": int(number)} if number < FORMAT:
            raise StorageError(
                f"{path} was written by topicsteer {writer}, an earlier version whose models topicsteer {__version__} "
                "does not read: fit again"
            )
        case {"topicsteer": str(), "format": int(), "arrays": dict(entries), "meta": dict(meta)}:
            if document.get("sha256") != checksum:
                raise StorageError(f"{path} is damaged or was edited: its checksum is wrong; {_AGAIN}")
            return meta, {name: _get_array(folder, name, entry, mapped) for name, entry in entries.items()}
    raise StorageError(f"{path} was not written by topicsteer, or is damaged; give the folder of a model, or {_AGAIN}")


def load_array(file: str | os.PathLike[str] | BinaryIO, mmap_mode: Literal["r", "c"] | None = None) -> NDArray[Any]:
    """Load a .npy file.

    Only one thread at a time may parse a header: before Python 3.11.9, two at once can fail.
    """
    with _PARSING:
        return np.asanyarray(np.load(file, mmap_mode=mmap_mode, allow_pickle=False))


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Raise if `save` would refuse a folder; call it before a long computation.

    Parameters
    ----------
    folder : path
        The folder to save to.

    Raises
    ------
    StorageError
        If it is a file, or holds unrelated files and no model.

    Examples
    --------
    >>> check_folder("a/new/folder")
    """
    folder, other = Path(folder), "choose a new or empty folder, or one that holds a model"
    try:
        if not folder.is_dir():
            if folder.exists() or folder.is_symlink():
                raise StorageError(f"{folder} is not a folder; {other}")
        elif (folder / _MODEL).exists():
            if b'"topicsteer"' not in (folder / _MODEL).read_bytes()[:1000]:
                raise StorageError(f"{folder / _MODEL} was not written by topicsteer; delete it, or {other}")
        elif foreign := sorted(name for name in os.listdir(folder) if name != LOCK and not _OURS.fullmatch(name)):
            raise StorageError(f"{folder} holds other files, such as {foreign[0]!r}, and no {_MODEL}; {other}")
    except OSError as error:
        raise StorageError(f"cannot read {folder}: {error.strerror or error}; {other}") from error


def _check_content(meta: Mapping[str, JSON], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Raise for values that would change when saved and loaded, before anything is written."""
    for key, value in meta.items():
        try:
            same = json.loads(json.dumps({key: value}, allow_nan=False)) == {key: value}
        except (TypeError, ValueError, RecursionError) as error:
            raise StorageError(f"meta[{key!r}] cannot be stored as JSON: {error}") from error
        if not same:
            raise StorageError(f"meta[{key!r}] changes when stored as JSON; use lists and text keys")
    for name, array in arrays.items():
        if not _NAME.fullmatch(name):
            raise StorageError(f"the array name {name!r} has characters other than a-z, 0-9 and _; rename it")
        if not isinstance(array, np.ndarray) or array.dtype.kind not in _KINDS:
            kind = f"dtype {array.dtype}" if isinstance(array, np.ndarray) else f"type {type(array).__name__}"
            raise StorageError(f"the array {name!r} has {kind}; expected an array of numbers, booleans, text or dates")


class _Checksum:
    """A file-like object that computes the SHA-256 of the bytes written to it."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.sha256.update(data)


def _put_array(folder: Path, name: str, array: NDArray[np.generic]) -> dict[str, JSON]:
    """Write an array to a file named after its content, and return its entry for model.json."""
    checksum = _Checksum()
    np.lib.format.write_array(checksum, array, allow_pickle=False)
    sha256 = checksum.sha256.hexdigest()
    file = f"{name}-{sha256[:12]}.npy"
    with replacing(folder / file, durable=True) as unfinished, open(unfinished, "wb") as target:
        np.lib.format.write_array(target, array, allow_pickle=False)
    return {"file": file, "dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256}


def _get_array(folder: Path, name: str, entry: object, mapped: int) -> NDArray[np.generic]:
    """Load the array of an entry, as a view of the file's bytes; large files are mapped into memory."""
    match entry:
        case {"file": str(file), "dtype": str(dtype), "shape": list(shape), "sha256": str(sha256)}:
            pass
        case _:
            raise StorageError(f"{folder / _MODEL} does not describe the array {name!r}; {_AGAIN}")
    if not _FILE.fullmatch(file):
        raise StorageError(
            f"{folder / _MODEL} names {file!r} as the file of the array {name!r}, which topicsteer never writes; "
            "somebody may have changed it: load only models that you trust"
        )
    path, data = folder / file, _read(folder, file, mapped)
    if hashlib.sha256(data.data).hexdigest() != sha256:
        raise StorageError(f"{path} is damaged: its checksum is wrong; {_AGAIN}")
    try:
        head = io.BytesIO(data[: 1 << 16].tobytes())
        np.lib.format.read_magic(head)
        found_shape, by_columns, found = np.lib.format.read_array_header_1_0(head)
        if (found.str, list(found_shape)) != (dtype, shape) or found.kind not in _KINDS:
            raise ValueError(f"it holds dtype {found.str} and shape {list(found_shape)}")
        return data[head.tell() :].view(found).reshape(found_shape, order="F" if by_columns else "C")
    except Exception as error:  # A forged header can raise any exception.
        raise StorageError(
            f"{path} is not the array of dtype {dtype} and shape {shape} that {_MODEL} describes: {error}; {_AGAIN}"
        ) from error


def _read(folder: Path, name: str, mapped: int) -> NDArray[np.uint8]:
    """Read the bytes of a file; links that lead out of the folder are refused."""
    path = folder / name
    try:
        if not path.is_file():
            hint = "give the folder of a saved model" if name == _MODEL else _AGAIN
            raise StorageError(f"there is no file {path}; {hint}")
        if path.resolve().parent != folder.resolve():
            raise StorageError(f"{path} is a link to a file outside the folder; put the file itself there")
        if path.stat().st_size >= mapped:
            return np.memmap(path, dtype=np.uint8, mode="c")
        return np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise StorageError(
            f"cannot read {path}: {error.strerror or error}; check the disk and its permissions"
        ) from error


def _checksum(document: Mapping[str, JSON]) -> str:
    """Return SHA-256 of the content of model.json, whatever its layout."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove our files, also of interrupted saves; a file that cannot be removed now goes with the next save."""
    with suppress(OSError):
        for name in filter(_OURS.fullmatch, set(os.listdir(folder)) - keep):
            with suppress(OSError):
                (folder / name).unlink()


def checked_csr(X: Any, name: str = "X", **options: Any) -> sp.csr_array:
    """Return a sparse matrix as a CSR whose indices are in range; other input is converted by scipy.

    scipy does not check the arrays that a matrix is made of, and compiled code reads or writes wherever they point.

    Parameters
    ----------
    X : sparse matrix or array-like
    name : str
        Name of the matrix in messages.
    **options
        Arguments of ``scipy.sparse.csr_array``.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> X = sp.csr_array(np.eye(2))
    >>> X.indices[1] = -1
    >>> checked_csr(X)
    Traceback (most recent call last):
    ValueError: X has the column index -1, but 2 columns: build the matrix again from valid indices.
    """
    import scipy.sparse as sp  # files are read without it

    given = getattr(X, "format", None)
    if given in ("csr", "csc", "coo", "bsr") and len(X.shape) == 2:
        check_indices(X, name)
    X = sp.csr_array(X, **options)
    if given in ("lil", "dok", "dia"):
        check_indices(X, name)
    return X


def unmasked(values: Any, name: str) -> Any:
    """Return values without a mask; numpy would read masked entries as numbers.

    Examples
    --------
    >>> unmasked(np.ma.array([1, 2], mask=[False, True]), "X")
    Traceback (most recent call last):
    ValueError: X has masked entries: fill them, for example with X.filled(0), or leave them out.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: fill them, for example with {name}.filled(0), or leave them out.")
    return values


def check_indices(X: Any, name: str = "X") -> None:
    """Raise ValueError if a sparse matrix has indices out of range; two passes over the indices."""
    again = "build the matrix again from valid indices."
    if X.format == "coo":
        limits = zip(("row", "column"), (X.row, X.col), X.shape, strict=True)
    else:
        n, m = X.shape if X.format != "csc" else X.shape[::-1]
        rows, columns = X.blocksize if X.format == "bsr" else (1, 1)
        indptr, entries = X.indptr, min(len(X.indices), len(X.data))
        if len(indptr) != n // rows + 1 or indptr[0] != 0 or indptr[-1] > entries or (indptr[1:] < indptr[:-1]).any():
            raise ValueError(f"{name} has limits of rows (indptr) that do not match its {entries:,} entries: {again}")
        used = X.indices[: indptr[-1]]
        limits = zip(("row" if X.format == "csc" else "column",), (used,), (m // columns,), strict=True)
    for kind, indices, limit in limits:
        if indices.size and not (indices.min() >= 0 and indices.max() < limit):
            bad = indices[(indices < 0) | (indices >= limit)][0]
            raise ValueError(f"{name} has the {kind} index {bad}, but {limit:,} {kind}s: {again}")
