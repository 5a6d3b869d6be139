"""A folder of arrays and one ``model.json``: versioned, checked, without pickle, and whole at every moment.

An array goes into a file named after its content, so a new model never writes over a file of the old one. Moving
``model.json`` into place is the moment at which the new model takes over; only then do the old files go.
"""

import hashlib
import io
import json
import os
import platform
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from topicsteer import __version__
from topicsteer.system.files import PART, replacing, sync
from topicsteer.system.types import JSON

FORMAT = 1
MAPPED = 1 << 28  # bytes from which an array stays in its file
_KINDS = "biufcSUmM"  # numbers, truth values, text and dates: what .npy holds without pickle
_MODEL = "model.json"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_FILE = re.compile(_NAME.pattern + r"-[0-9a-f]{12}\.npy")
# Files of a save that was killed; the second name is that of 0.1.
_UNFINISHED = re.compile(rf"\.({_FILE.pattern}|{re.escape(_MODEL)})\.[0-9a-f]{{12}}{re.escape(PART)}|\.topicsteer\.tmp")
_OURS = re.compile(f"{_FILE.pattern}|{_UNFINISHED.pattern}")
_PARSING = threading.Lock()
_AGAIN = "take the folder from a backup, or save the model again"


class StorageError(ValueError):
    """A model could not be saved or loaded; the message says which file is to blame and what to do.

    Examples
    --------
    >>> load("no/such/folder")
    Traceback (most recent call last):
    topicsteer.system.arrays.StorageError: there is no folder no/such/folder; give the folder that a model was saved to
    """


def save(folder: str | os.PathLike[str], meta: Mapping[str, JSON], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Save arrays and what belongs to them; an older model in the folder is replaced whole or not at all.

    Parameters
    ----------
    folder : path
        A new or empty folder, or one that holds a model. Files of others beside a model are left alone. One process
        at a time may save to it.
    meta : mapping of str to JSON
        Options, names, lists of text. It must come back as it is: no tuples, no NaN, no keys other than text.
    arrays : mapping of str to array
        Numbers, truth values, text or dates, under names such as ``components``.

    Raises
    ------
    StorageError
        If something cannot be stored, the folder is not ours to write to, or the disk is full. The older model, if
        there was one, can still be loaded.

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
        document: dict[str, JSON] = {"topicsteer": __version__, "format": FORMAT, "versions": _versions()}
        document |= {"arrays": entries, "meta": dict(meta)}
        text = _readable({**document, "sha256": _checksum(document)}) + "\n"
        sync(folder.parent)
        sync(folder)
        with replacing(folder / _MODEL, durable=True) as unfinished:  # half a surrogate pair becomes its JSON escape
            unfinished.write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        if before is not None:
            _sweep(folder, keep=before)
        raise StorageError(
            f"could not save to {folder}: {error.strerror or error}; what was in the folder is as it was; "
            "make room or choose another folder, and save again"
        ) from error
    with suppress(OSError):  # the new model is in place; the old files stay until the disk has confirmed that
        sync(folder)
        _sweep(folder, keep={str(entry["file"]) for entry in entries.values()})


def load(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What was saved to a folder, bit for bit; every file is checked.

    Parameters
    ----------
    folder : path
        Where a model was saved.

    Returns
    -------
    meta : dict
        As it was saved.
    arrays : dict of str to array
        With the dtype, shape and memory order that they had.

    Raises
    ------
    StorageError
        If there is no model, a newer topicsteer wrote it, or a file is missing, damaged or not where it should be.

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
        raise StorageError(f"{folder} is a file; give the folder that a model was saved to (unpack it from a .zip)")
    if not folder.is_dir():
        raise StorageError(f"there is no folder {folder}; give the folder that a model was saved to")
    path, data = folder / _MODEL, _read(folder, _MODEL).tobytes()
    try:
        document = json.loads(data)
        checksum = _checksum(document) if isinstance(document, dict) else None
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is not JSON ({error}); {_AGAIN}") from error
    match document:
        case {"topicsteer": str(writer), "format": int(number)} if number > FORMAT:
            raise StorageError(
                f"{path} has format {number}, written by topicsteer {writer}; this is topicsteer {__version__}, which "
                f"reads formats up to {FORMAT}: upgrade it with `pip install --upgrade topicsteer`"
            )
        case {"topicsteer": str(), "format": int(), "arrays": dict(entries), "meta": dict(meta)}:
            if document.get("sha256") != checksum:
                raise StorageError(f"{path} is damaged or was edited: its checksum is wrong; {_AGAIN}")
            return meta, {name: _get_array(folder, name, entry) for name, entry in entries.items()}
    raise StorageError(f"{path} was not written by topicsteer, or is damaged; give the folder of a model, or {_AGAIN}")


def load_array(file: str | os.PathLike[str] | BinaryIO, mmap_mode: Literal["r", "c"] | None = None) -> NDArray[Any]:
    """An array from a .npy file, one at a time: before 3.11.9 Python fails to parse two headers at once in threads."""
    with _PARSING:
        return np.asanyarray(np.load(file, mmap_mode=mmap_mode, allow_pickle=False))


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that `save` would refuse, for those who want to know before a long computation.

    Parameters
    ----------
    folder : path
        Where a model is to be saved.

    Raises
    ------
    StorageError
        If it is a file, or holds files of others and no model.

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
        elif foreign := sorted(name for name in os.listdir(folder) if not _OURS.fullmatch(name)):
            raise StorageError(f"{folder} holds other files, such as {foreign[0]!r}, and no {_MODEL}; {other}")
    except OSError as error:
        raise StorageError(f"cannot read {folder}: {error.strerror or error}; {other}") from error


def _check_content(meta: Mapping[str, JSON], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Refuse what would not come back as it is, before anything is written."""
    for key, value in meta.items():
        try:
            same = json.loads(json.dumps({key: value}, allow_nan=False)) == {key: value}
        except (TypeError, ValueError, RecursionError) as error:
            raise StorageError(f"meta[{key!r}] cannot be stored as JSON: {error}") from error
        if not same:
            raise StorageError(f"meta[{key!r}] does not come back from JSON as it is; use lists, and text for keys")
    for name, array in arrays.items():
        if not _NAME.fullmatch(name):
            raise StorageError(f"the array name {name!r} is not one of small letters, digits and _; rename it")
        if not isinstance(array, np.ndarray) or array.dtype.kind not in _KINDS:
            kind = f"dtype {array.dtype}" if isinstance(array, np.ndarray) else f"type {type(array).__name__}"
            raise StorageError(f"the array {name!r} has {kind}; expected an array of numbers, booleans, text or dates")


class _Checksum:
    """SHA-256 of what is written to it."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.sha256.update(data)


def _put_array(folder: Path, name: str, array: NDArray[np.generic]) -> dict[str, JSON]:
    """Write an array to a file named after its content; its entry in model.json."""
    checksum = _Checksum()
    np.lib.format.write_array(checksum, array, allow_pickle=False)
    sha256 = checksum.sha256.hexdigest()
    file = f"{name}-{sha256[:12]}.npy"
    with replacing(folder / file, durable=True) as unfinished, open(unfinished, "xb") as target:
        np.lib.format.write_array(target, array, allow_pickle=False)
    return {"file": file, "dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256}


def _get_array(folder: Path, name: str, entry: object) -> NDArray[np.generic]:
    """The array of an entry: a view of the file's bytes, trusted after their checksum, and of large files a mapping."""
    match entry:
        case {"file": str(file), "dtype": str(dtype), "shape": list(shape), "sha256": str(sha256)}:
            pass
        case _:
            raise StorageError(f"{folder / _MODEL} does not describe the array {name!r}; {_AGAIN}")
    if not _FILE.fullmatch(file):
        raise StorageError(
            f"{folder / _MODEL} names {file!r} as the file of the array {name!r}, which topicsteer would not; "
            "somebody may have tampered with it: load only models that you trust"
        )
    path, data = folder / file, _read(folder, file)
    if hashlib.sha256(data.data).hexdigest() != sha256:
        raise StorageError(f"{path} is damaged: its checksum is wrong; {_AGAIN}")
    try:
        head = io.BytesIO(data[: 1 << 16].tobytes())
        np.lib.format.read_magic(head)
        found_shape, by_columns, found = np.lib.format.read_array_header_1_0(head)
        if (found.str, list(found_shape)) != (dtype, shape) or found.kind not in _KINDS:
            raise ValueError(f"it holds dtype {found.str} and shape {list(found_shape)}")
        return data[head.tell() :].view(found).reshape(found_shape, order="F" if by_columns else "C")
    except Exception as error:  # the header of a forged file can fail in any way
        raise StorageError(
            f"{path} is not the array of dtype {dtype} and shape {shape} that {_MODEL} describes: {error}; {_AGAIN}"
        ) from error


def _read(folder: Path, name: str) -> NDArray[np.uint8]:
    """The bytes of a file that lies in the folder itself."""
    path = folder / name
    try:
        if not path.is_file():
            hint = "give the folder that a model was saved to" if name == _MODEL else _AGAIN
            raise StorageError(f"there is no file {path}; {hint}")
        if path.resolve().parent != folder.resolve():
            raise StorageError(f"{path} is a link to a file outside the folder; put the file itself there")
        if path.stat().st_size >= MAPPED:
            return np.memmap(path, dtype=np.uint8, mode="c")
        return np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise StorageError(
            f"cannot read {path}: {error.strerror or error}; check the disk and its permissions"
        ) from error


def _checksum(document: Mapping[str, JSON]) -> str:
    """SHA-256 of what model.json says, however it is laid out."""
    content = {key: value for key, value in document.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _readable(value: JSON, depth: int = 2, indent: str = "\n") -> str:
    """JSON with a line for each key of the outer levels, and one for a long list."""
    if not (depth and value and isinstance(value, dict)):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    lines = (f"{inner}{_readable(key)}: {_readable(item, depth - 1, inner)}" for key, item in value.items())
    return "{" + ",".join(lines) + indent + "}"


def _versions() -> dict[str, str]:
    """What the model was written with, for people who look into it later."""
    versions = {"python": platform.python_version()}
    for package in ("numpy", "scipy"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove files of ours, also those of a save that was killed; what cannot go now goes with the next save."""
    with suppress(OSError):
        for name in filter(_OURS.fullmatch, set(os.listdir(folder)) - keep):
            with suppress(OSError):
                (folder / name).unlink()
