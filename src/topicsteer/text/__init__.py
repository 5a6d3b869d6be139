"""Convert texts to a TF-IDF matrix, with stop words of ten languages."""

from topicsteer.text.languages import stop_words
from topicsteer.text.vectorizer import TextVectorizer

__all__ = ["TextVectorizer", "stop_words"]
