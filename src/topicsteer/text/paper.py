"""What the TS-NMF paper did to words, by NLTK: Treebank tokens, WordNet lemmas, English stop words."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path


@cache
def paper_words() -> tuple[Callable[[str], str], frozenset[str]]:
    """Base forms of the parts of a word, and the stop words.

    Applied to each distinct word, not to the text: of letters alone the Treebank tokenizer parts only contractions
    such as *cannot*, one word at a time, so the result is the same.
    """
    try:
        import nltk
        from nltk.corpus import stopwords, wordnet
        from nltk.stem import WordNetLemmatizer
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise ImportError('preset="paper" needs NLTK: pip install "topicsteer[paper]"') from error
    if folder := os.environ.get("TOPICSTEER_DATA"):
        nltk.data.path.append(str(Path(folder) / "nltk_data"))
    try:
        wordnet.ensure_loaded()
        stop_words = frozenset(stopwords.words("english"))
    except LookupError as error:
        raise LookupError(
            'preset="paper" needs the NLTK data "wordnet" and "stopwords": run `python -m nltk.downloader wordnet'
            " stopwords`, or set NLTK_DATA to a folder that holds them."
        ) from error
    treebank, lemma = TreebankWordTokenizer(), WordNetLemmatizer().lemmatize

    def lemmas(word: str) -> str:
        contracted = any(pattern.search(word) for pattern in treebank.CONTRACTIONS2)  # a fiftieth of the time
        return " ".join(map(lemma, treebank.tokenize(word) if contracted else [word]))

    return lemmas, stop_words
