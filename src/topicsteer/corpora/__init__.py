"""Readers: from files, tables and known corpora to one frozen `Documents`."""

from topicsteer.corpora.docstrings import load_docstrings
from topicsteer.corpora.documents import Documents
from topicsteer.corpora.reports import BadRow, ReadError, ReadReport

__all__ = ["BadRow", "Documents", "ReadError", "ReadReport", "load_docstrings"]
