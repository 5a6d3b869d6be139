"""Convert texts to a TF-IDF matrix, with stop words of ten languages."""

from topicsteer.text.vectorizer import TextVectorizer
from topicsteer.text.words import stop_words

__all__ = ["TextVectorizer", "stop_words"]
