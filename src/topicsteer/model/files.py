"""Write a fitted state to a folder, and read it back; the schema checks the arrays."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from topicsteer.labels.codebook import Codebook
from topicsteer.model.state import PLAIN, FittedState, StateError
from topicsteer.system import arrays
from topicsteer.system.types import JSON

KIND = "TopicModel"
# Arrays of 0.1.0 under the names that they have now.
RENAMED = {"cuts": "thresholds", "history": "objectives", "past_charge": "history_penalty"}


def write(path: str | Path, state: FittedState) -> None:
    """Write a model to a folder; an existing model is replaced only once everything is written."""
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
            "ids": [_plain_id(i) for i in state.ids],
            "texts": None if state.texts is None else list(state.texts),
        }
    )
    arrays.save(path, meta, state.arrays())


def read(path: str | Path) -> FittedState:
    """Read a model of this version or of 0.1.0."""
    meta, found = arrays.load(path)
    try:
        if meta["kind"] != KIND:
            raise arrays.StorageError(f"{path} holds a {meta['kind']}, not a TopicModel.")
        if "codebook" in meta:
            plain = {name: meta[name] for name in PLAIN if name != "free_groups"}
            plain["free_groups"] = meta.get("free_groups", [])
        else:
            plain, found = _from_first_release(meta), {_name_now(name): array for name, array in found.items()}
        return FittedState.from_plain(plain, found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, arrays.StorageError):
            raise
        why = str(error) if isinstance(error, StateError) else repr(error)
        raise arrays.StorageError(f"{path} is not a complete model: {why}. Save it again.") from error


def _from_first_release(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values from a model of 0.1.0, which stored names without keys and only some arguments."""
    words = {"keywords": meta.get("pinned")} | {name: meta.get(name) for name in ("banned", "descriptions")}
    known = meta["names"][: meta["known"]]
    codebook = Codebook.of_names(known, **words)
    given = {name: meta[name] for name in ("free_topics", "complete", "guidance", "random_state")}
    return {
        "parameters": given | words,
        "codebook": codebook.to_json(),
        "free_names": meta["names"][meta["known"] :],
        "lemmatized": meta["lemmatizer"],
        "free_groups": [],
        **{name: meta[name] for name in PLAIN if name in meta},
    }


def _name_now(name: str) -> str:
    """The present name of an array of 0.1.0."""
    group, _, rest = name.partition("_")
    return RENAMED.get(name) or {"hand": f"reservoir_{rest}", "past": f"history_{rest}"}.get(group, name)


def _plain_id(value: Hashable) -> JSON:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int) else str(value)
