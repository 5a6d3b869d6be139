"""The word processing of the TS-NMF paper, from NLTK with its data.

It keeps letters only, splits Treebank tokens and takes WordNet lemmas. It drops NLTK's English stop words, before and
after that, and words of fewer than 3 letters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from topicsteer.text import TextVectorizer


def paper_vectorizer(max_features: int = 2_000) -> TextVectorizer:
    """A vectoriser with the options of the paper; its texts come from `letters_only`."""
    lemmas, grammar = paper_words()
    return TextVectorizer(
        max_features=max_features,
        min_df=1,
        max_df=1.0,
        sublinear_tf=False,
        min_length=3,
        stop_words=grammar,
        lemmatizer=lemmas,
    )


def letters_only(texts: Iterable[str]) -> Iterator[str]:
    """The texts with a space in place of each digit."""
    for text in texts:
        yield "".join(" " if letter.isalnum() and not letter.isalpha() else letter for letter in text)


@cache
def paper_words() -> tuple[Callable[[str], str], frozenset[str]]:
    """A function from a word to its lemmas, and the stop words.

    The function is applied to each distinct word, not to whole texts. The result is the same: in text of letters only,
    the Treebank tokenizer splits nothing but contractions such as *cannot*, each on its own.
    """
    import nltk
    from nltk.corpus import stopwords, wordnet
    from nltk.stem import WordNetLemmatizer
    from nltk.tokenize import TreebankWordTokenizer

    if folder := os.environ.get("TOPICSTEER_DATA"):
        nltk.data.path.append(str(Path(folder) / "nltk_data"))
    try:
        wordnet.ensure_loaded()
        grammar = frozenset(stopwords.words("english"))
    except LookupError as error:
        raise LookupError(
            'the paper\'s words need the NLTK data "wordnet" and "stopwords": run `python -m nltk.downloader wordnet'
            " stopwords`, or set NLTK_DATA to a folder that holds them."
        ) from error
    treebank, lemma = TreebankWordTokenizer(), WordNetLemmatizer().lemmatize

    def lemmas(word: str) -> str:
        # This check takes a fiftieth of the time of the tokenizer.
        contracted = any(pattern.search(word) for pattern in treebank.CONTRACTIONS2)
        return " ".join(map(lemma, treebank.tokenize(word) if contracted else [word]))

    return lemmas, grammar
