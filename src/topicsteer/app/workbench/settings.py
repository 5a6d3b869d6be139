"""The settings of a project."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from topicsteer.app.workbench.errors import Invalid
from topicsteer.guidance.open_world import WORLDS
from topicsteer.system.renamed import warn_renamed

# Names of the fields in the project file, which 0.1.0 wrote with spaces.
STORED = {
    "target": "target", "refit_after": "refit after", "free_topics": "free topics", "complete": "complete",
    "world": "world", "blind": "blind", "overlap": "overlap", "overlap_people": "overlap people",
    "path_separator": "path separator", "free_inside": "free inside",
}  # fmt: skip
# Smallest and greatest value of each number.
RANGES = {
    "target": (1, 10_000_000), "refit_after": (0, 100_000), "free_topics": (0, 500), "overlap": (0, 1_000),
    "overlap_people": (2, 20),
}  # fmt: skip


@dataclass(frozen=True)
class ProjectSettings:
    """The settings of a project.

    Parameters
    ----------
    target : int, optional
        Number of documents to label. Default: ten per topic, at least fifty.
    refit_after : int
        Newly labelled documents after which a fit starts. 0: never.
    free_topics : int
        Number of free topics.
    complete : bool
        A labelled document has no topics other than its labels.
    world : "open", "closed" or None
        Whether documents may have none of the topics. None: each fit decides.
    blind : bool
        Hide suggestions, predictions and the labels of others from people who label.
    overlap : int
        Every n-th labelled document is labelled by several people. 0: none.
    overlap_people : int
        The number of these people.
    path_separator : str, optional
        Separator of the levels in labels and names that are paths, such as "sport/football". None: no name is a path.
    free_inside : mapping of str to int
        Number of free topics inside a topic, by its key.
    """

    target: int | None = None
    refit_after: int = 10
    free_topics: int = 10
    complete: bool = True
    world: str | None = None
    blind: bool = False
    overlap: int = 0
    overlap_people: int = 2
    path_separator: str | None = None
    free_inside: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> "ProjectSettings":
        """Return the settings of a project file."""
        return cls(**{name: stored[key] for name, key in STORED.items() if key in stored})

    def changed(self, values: Mapping[str, Any]) -> "ProjectSettings":
        """Return the settings with new values, or refuse them."""
        for name, value in values.items():
            if name not in STORED:
                raise Invalid(f"There is no setting {name!r}. The settings are {', '.join(STORED)}.")
            _check(name, value)
        return replace(self, **values)

    def stored(self) -> dict[str, Any]:
        """Return the values under their names in the project file."""
        return {STORED[field.name]: getattr(self, field.name) for field in fields(self)}


def renamed_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Accept the names of 0.1.0, with a warning."""
    old = {key: name for name, key in STORED.items() if key != name}
    for key in values.keys() & old.keys():
        warn_renamed(key, old[key])
    return {old.get(key, key): value for key, value in values.items()}


def _check(name: str, value: object) -> None:
    if name in ("complete", "blind"):
        if not isinstance(value, bool):
            raise Invalid(f"The setting {name!r} is true or false, not {value!r}.")
        return
    if name == "world":
        if value not in WORLDS:
            raise Invalid(f'The setting \'world\' is "open", "closed" or null, not {value!r}.')
        return
    if name == "path_separator":
        if value is not None and not (isinstance(value, str) and value.strip() and len(value) <= 8):
            raise Invalid("The separator of paths is a text of at most 8 characters such as /, or null for no paths.")
        return
    if name == "free_inside":
        found = list(value.items()) if isinstance(value, dict) else [("", 0)]
        if not all(key.isascii() and key.isdigit() and type(n) is int and 1 <= n <= 100 for key, n in found):
            raise Invalid("Free topics inside topics are numbers from 1 to 100, by the key of the topic.")
        return
    low, high = RANGES[name]
    if name == "target" and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Invalid(f"The setting {name!r} is a whole number from {low} to {high:,}, not {value!r}.")


# Default values under the names that the project file and the documentation use.
DEFAULTS: dict[str, Any] = ProjectSettings().stored()
