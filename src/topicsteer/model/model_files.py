"""Write a fitted state to a folder, and read it back; the schema checks the arrays.

Writers hold the lock of the folder. A new version has files of its own and appears by one rename, that of
``model.json``. Readers need no lock: if a new version removes files that they are about to read, they read that one.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from topicsteer.model.state import PLAIN, FittedState, StateError
from topicsteer.system import arrays
from topicsteer.system.files import locked
from topicsteer.system.values import plain_id

KIND = "TopicModel"
# Arrays of 0.2.0 that are no longer read: free topics inside known topics, mostly empty, and weights of documents.
EARLIER = ("weights", "levels_found", "levels_component_weights", "levels_component_levels", "levels_component_slopes")
# Attempts to read a model without a lock while others write it.
ATTEMPTS = 5

# Version of a model in its folder: inode, size and time of its model.json. None without a model.
Version = tuple[int, ...] | None


@contextmanager
def writing(path: str | Path, *, new: bool = False) -> Iterator[None]:
    """Hold the lock of a model folder, from reading a model to writing its next version; others wait.

    A folder that does not exist is created if it is ``new``. Otherwise there is nothing to lose, and no lock.
    """
    folder = Path(path)
    arrays.check_folder(folder)
    if not new and not folder.is_dir():
        yield
        return
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder / arrays.LOCK, folder))
        except OSError as error:
            raise arrays.StorageError(
                f"could not save to {folder}: {error.strerror or error}; make room or choose another folder"
            ) from error
        yield


def version(path: str | Path) -> Version:
    """The present version of the model in a folder."""
    try:
        found = os.stat(Path(path) / "model.json")
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def write(path: str | Path, state: FittedState, *, expected: Version = None) -> Version:
    """Write a model to a folder; an existing model is replaced only once everything is written.

    Parameters
    ----------
    path : str or Path
    state : FittedState
    expected : Version, optional
        The version that the state comes from. If another one is there now, nothing is written.

    Returns
    -------
    Version
        The version that was written.
    """
    with writing(path, new=True):
        if expected is not None and version(path) not in (expected, None):
            raise arrays.StorageError(
                f"{path} was changed by another program after this model was loaded from it; nothing was written. "
                "Load the model again and repeat your change, or save to another folder."
            )
        _write(path, state)
        return version(path)


def _write(path: str | Path, state: FittedState) -> None:
    plain = {name: getattr(state, name) for name in PLAIN}
    meta: dict[str, Any] = (
        {"kind": KIND}
        | plain
        | {
            "codebook": state.codebook.to_json(),
            "free_names": list(state.free_names),
            "groups": [list(group) for group in state.groups],
            "free_groups": [list(group) for group in state.free_groups],
            "vocabulary": list(state.vocabulary),
            "ids": [plain_id(key) for key in state.ids],
            "texts": None if state.texts is None else list(state.texts),
        }
    )
    arrays.save(path, meta, state.arrays())


def read(path: str | Path, *, mapped: int = arrays.MAPPED) -> tuple[FittedState, Version]:
    """Read a model, and its version in the folder.

    Another program may write to the folder meanwhile. The result is always one whole version. Arrays of at least
    ``mapped`` bytes are mapped from their file.
    """
    for _ in range(ATTEMPTS):
        before = version(path)
        try:
            state = _read(path, mapped)
        except arrays.StorageError:
            if version(path) == before:
                raise
        else:
            if version(path) == before:
                return state, before
    with writing(path):
        return _read(path, mapped), version(path)


def _read(path: str | Path, mapped: int) -> FittedState:
    meta, found = arrays.load(path, mapped=mapped)
    try:
        if meta["kind"] != KIND:
            raise arrays.StorageError(f"{path} holds a {meta['kind']}, not a TopicModel.")
        if any(topic.get("found") for topic in meta["codebook"]):
            raise arrays.StorageError(
                f"{path} has free topics inside known topics, which this version does not have: adopt them with "
                "topicsteer 0.2.0, or fit again."
            )
        found = {name: array for name, array in found.items() if name not in EARLIER}
        return FittedState.from_plain({name: meta[name] for name in PLAIN}, found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, arrays.StorageError):
            raise
        why = str(error) if isinstance(error, StateError) else repr(error)
        raise arrays.StorageError(f"{path} is not a complete model: {why}. Save it again.") from error
