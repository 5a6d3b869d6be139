"""Readers of files and tables: all return one frozen `Documents`."""

from topicsteer.corpora.documents import Documents
from topicsteer.corpora.known.docstrings import load_docstrings
from topicsteer.corpora.known.downloads import CORPORA, Corpus, fetch, find_corpus
from topicsteer.corpora.known.medline import load_medline
from topicsteer.corpora.known.newsgroups import load_newsgroups
from topicsteer.corpora.known.reuters import load_reuters
from topicsteer.corpora.label_files.formats import read_labels
from topicsteer.corpora.label_files.records import LabelRecord, Labels, attach_labels
from topicsteer.corpora.options import ReadOptions
from topicsteer.corpora.read_report import BadRow, EmptyTable, ReadError, ReadReport
from topicsteer.corpora.stream import TableStream
from topicsteer.corpora.tables import read_documents, read_folder, read_table

__all__ = [
    "CORPORA",
    "BadRow",
    "Corpus",
    "Documents",
    "EmptyTable",
    "LabelRecord",
    "Labels",
    "ReadError",
    "ReadOptions",
    "ReadReport",
    "TableStream",
    "attach_labels",
    "fetch",
    "find_corpus",
    "load_docstrings",
    "load_medline",
    "load_newsgroups",
    "load_reuters",
    "read_documents",
    "read_folder",
    "read_labels",
    "read_table",
]
