"""Convert texts to a matrix: tokens, stop words, TF-IDF."""

from topicsteer.text.languages import stop_words
from topicsteer.text.vectorizer import TextVectorizer

__all__ = ["TextVectorizer", "stop_words"]
