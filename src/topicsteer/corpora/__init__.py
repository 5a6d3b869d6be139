"""Readers of files and tables: all return one frozen `Documents`."""

from topicsteer.corpora.documents import (
    BadRow,
    Documents,
    EmptyTable,
    ReadError,
    ReadOptions,
    ReadReport,
    UnclearLabels,
)
from topicsteer.corpora.example_corpora import example_table, load_docstrings
from topicsteer.corpora.label_files import LabelRecord, Labels, attach_labels, read_labels
from topicsteer.corpora.tables import TableStream, read_documents, read_folder, read_table

__all__ = [
    "BadRow",
    "Documents",
    "EmptyTable",
    "LabelRecord",
    "Labels",
    "ReadError",
    "ReadOptions",
    "ReadReport",
    "TableStream",
    "UnclearLabels",
    "attach_labels",
    "example_table",
    "load_docstrings",
    "read_documents",
    "read_folder",
    "read_labels",
    "read_table",
]
