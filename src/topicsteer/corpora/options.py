"""Options of the readers: columns, encoding, label file and bad rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from topicsteer.corpora.read_report import OnError


@dataclass(frozen=True)
class ReadOptions:
    """Options of a reader, described in `read_table`; the reader chooses where an option is None.

    Parameters
    ----------
    text, labels, id, forbidden : str, optional
        Names of the columns. ``False`` for labels or forbidden: no column holds them. With a label file, labels and
        forbidden name its columns. ``labels="folders"`` takes the names of the folders as labels of their files.
    separator, encoding, delimiter : str, optional
        Separator of labels in a cell, encoding of the file, and delimiter of its fields.
    label_file : path, optional
        A second file with the labels.
    on_error : {"skip", "raise"}, default="skip"
        Leave bad rows out, or raise an error.

    Examples
    --------
    >>> ReadOptions(text="body").labels is None
    True
    """

    text: str | None = None
    labels: str | Literal[False] | None = None
    id: str | None = None
    forbidden: str | Literal[False] | None = None
    separator: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    label_file: str | Path | None = None
    on_error: OnError = "skip"
