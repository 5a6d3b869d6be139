"""Convert texts to a TF-IDF matrix, with stop words of ten languages."""

from typing import TYPE_CHECKING

from topicsteer.text.words import stop_words

if TYPE_CHECKING:
    from topicsteer.text.vectorizer import TextVectorizer

__all__ = ["TextVectorizer", "stop_words"]


def __getattr__(name: str) -> object:
    """Load the vectoriser on first use: it needs scikit-learn and the compiler."""
    if name == "TextVectorizer":
        from topicsteer.text.vectorizer import TextVectorizer

        return TextVectorizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
