"""How a corpus is read: which column is which, and what to do with bad rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from topicsteer.corpora.read_report import OnError


@dataclass(frozen=True)
class ReadOptions:
    """The choices of a reader, which `read_table` describes; None is a choice that the reader makes.

    Parameters
    ----------
    text, labels, id, forbidden : str, optional
        Names of the columns. ``False`` for labels or forbidden: no column holds them. With a label file, labels and
        forbidden name its columns. ``labels="folders"``: the labels of a folder's files are the names of its folders.
    separator, encoding, delimiter : str, optional
        What stands between labels, how a file is encoded, and what stands between its fields.
    label_file : path, optional
        A second file, which holds the labels.
    on_error : {"skip", "raise"}, default="skip"
        What to do with bad rows.

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
