"""Readers: from files, tables and known corpora to one frozen `Documents`."""

from topicsteer.corpora.docstrings import load_docstrings
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.downloads import CORPORA, Corpus, fetch, find_corpus
from topicsteer.corpora.folders import read_folder
from topicsteer.corpora.labelfiles import read_labels
from topicsteer.corpora.labels import LabelRecord, Labels, attach_labels
from topicsteer.corpora.medline import load_medline
from topicsteer.corpora.newsgroups import load_newsgroups
from topicsteer.corpora.reports import BadRow, ReadError, ReadReport
from topicsteer.corpora.reuters import load_reuters
from topicsteer.corpora.tables import TableStream, read_table

__all__ = [
    "CORPORA",
    "BadRow",
    "Corpus",
    "Documents",
    "LabelRecord",
    "Labels",
    "ReadError",
    "ReadReport",
    "TableStream",
    "attach_labels",
    "fetch",
    "find_corpus",
    "load_docstrings",
    "load_medline",
    "load_newsgroups",
    "load_reuters",
    "read_folder",
    "read_labels",
    "read_table",
]
