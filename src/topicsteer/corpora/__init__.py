"""Readers: from files, tables and known corpora to one frozen `Documents`."""

from topicsteer.corpora.docstrings import load_docstrings
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.labelfiles import read_labels
from topicsteer.corpora.labels import LabelRecord, Labels, attach_labels
from topicsteer.corpora.reports import BadRow, ReadError, ReadReport
from topicsteer.corpora.tables import read_table

__all__ = [
    "BadRow",
    "Documents",
    "LabelRecord",
    "Labels",
    "ReadError",
    "ReadReport",
    "attach_labels",
    "load_docstrings",
    "read_labels",
    "read_table",
]
