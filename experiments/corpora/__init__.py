"""Loaders of the public corpora of experiments and benchmarks; each returns `topicsteer.corpora.Documents`."""

from experiments.corpora.archives import CORPORA, find_corpus, where_to_get
from experiments.corpora.medline import load_medline
from experiments.corpora.newsgroups import load_newsgroups
from experiments.corpora.reuters import load_reuters

__all__ = ["CORPORA", "find_corpus", "load_medline", "load_newsgroups", "load_reuters", "where_to_get"]
