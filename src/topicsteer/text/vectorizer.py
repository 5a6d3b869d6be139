"""TextVectorizer: texts in, TF-IDF matrix out."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from topicsteer.system.threads import OrderedMap, ordered_map
from topicsteer.text import kernels
from topicsteer.text.languages import detect_languages, paper_words, stop_words
from topicsteer.text.terms import Finder, choose, count
from topicsteer.text.tokens import Keep, Progress, Spill, Tokens, read, replace

Rows = tuple[kernels.Longs, kernels.Ints, kernels.Floats]  # sizes of some rows, their columns and values

_WORD = re.compile(r"[^\W_]+")
_COUNT = Interval(Integral, 1, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="both")
_AUTO = StrOptions({"auto"})
_PRESETS: dict[str, dict[str, Any]] = {
    "default": {"max_features": 10_000, "min_df": 2, "max_df": 0.5, "sublinear_tf": True, "min_length": 2},
    "paper": {"max_features": 2_000, "min_df": 1, "max_df": 1.0, "sublinear_tf": False, "min_length": 3},
}
_FEW_TEXTS, _IF_FEW = 100, {"min_df": 1, "max_df": 1.0}  # in few texts, one of them or half of them says little


class TextVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Turn texts into a TF-IDF matrix with rows of unit length, on all cores.

    A word is a run of letters and digits with at least one letter, in lower case; apostrophes, hyphens and underscores
    part words. Chinese and Japanese, which have no spaces, give pairs of neighbouring characters. Where the options
    coincide the matrix is that of scikit-learn's ``TfidfVectorizer``; of equally frequent terms ``max_features`` keeps
    the first in the alphabet. The result does not depend on the number of threads.

    Parameters
    ----------
    preset : {"default", "paper"}, default="default"
        What "auto" means in the other parameters. "default" suits texts in most languages and downloads nothing.
        "paper" is the preprocessing of the TS-NMF paper: letters only, Treebank tokens, WordNet lemmas, no word that
        is one of NLTK's English stop words before or after that, 3 letters or more, the 2,000 most frequent terms; it
        needs NLTK and its data.
    max_features : int, None or "auto", default="auto"
        Keep the terms that occur most often in the corpus; None keeps all. 10,000 by default, 2,000 in the paper.
    min_df, max_df : int, float or "auto", default="auto"
        Keep terms found in at least and at most this many texts (int) or this share of them (float). 2 and 0.5 by
        default, where there are 100 texts or more; else, and in the paper, 1 and 1.0.
    ngram_range : (int, int), default=(1, 1)
        Shortest and longest run of neighbouring words that is a term.
    stop_words : "auto", str, collection of str or None, default="auto"
        Words left out: a language by name or code (see `stop_words`), the words themselves, or none. "auto" finds out
        which languages the corpus is in.
    sublinear_tf : bool or "auto", default="auto"
        Replace a count c by 1 + log c. True by default, False in the paper.
    min_length : int or "auto", default="auto"
        Fewest letters of a word: 2 by default, 3 in the paper.
    lemmatizer : callable or None, default=None
        From a word to its base form, called once for each distinct word. An empty answer drops the word, an answer
        with spaces stands for several words. None means none by default, WordNet's in the paper.
    segmented : bool, default=False
        The Chinese or Japanese texts have spaces between words already: no pairs of characters.
    threads : int or None, default=None
        None uses all cores.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        Column of each term; terms are in alphabetical order, and those that `grow` found behind them.
    idf_ : ndarray of shape (n_terms,)
        Weight of each term: 1 + log((1 + n) / (1 + df)).
    n_texts_ : float
        Number of texts that the weights are from.
    stop_words_ : frozenset of str
        The words left out.
    languages_ : list of str
        Codes of the languages that were recognised, the most frequent first.

    Examples
    --------
    >>> from topicsteer.text import TextVectorizer
    >>> texts = ["The ships carry grain.", "Grain prices fell in May.", "The bank raised its rates."]
    >>> vectorizer = TextVectorizer()
    >>> X = vectorizer.fit_transform(texts)
    >>> X.shape
    (3, 8)
    >>> list(vectorizer.vocabulary_)
    ['bank', 'carry', 'fell', 'grain', 'prices', 'raised', 'rates', 'ships']
    >>> vectorizer.languages_
    ['en']
    """

    idf_: NDArray[np.float64]
    n_texts_: float
    _parameter_constraints: dict[str, list[object]] = {  # noqa: RUF012
        "preset": [StrOptions(set(_PRESETS))],
        "max_features": [_COUNT, None, _AUTO],
        "min_df": [_COUNT, _SHARE, _AUTO],
        "max_df": [_COUNT, _SHARE, _AUTO],
        "ngram_range": [tuple],
        "stop_words": [str, "array-like", set, frozenset, None],
        "sublinear_tf": ["boolean", _AUTO],
        "min_length": [_COUNT, _AUTO],
        "lemmatizer": [callable, None],
        "segmented": ["boolean"],
        "threads": [_COUNT, None],
    }

    def __init__(
        self,
        *,
        preset: str = "default",
        max_features: int | str | None = "auto",
        min_df: float | str = "auto",
        max_df: float | str = "auto",
        ngram_range: tuple[int, int] = (1, 1),
        stop_words: Iterable[str] | None = "auto",
        sublinear_tf: bool | str = "auto",
        min_length: int | str = "auto",
        lemmatizer: Callable[[str], str] | None = None,
        segmented: bool = False,
        threads: int | None = None,
    ) -> None:
        self.preset = preset
        self.max_features = max_features
        self.min_df = min_df
        self.max_df = max_df
        self.ngram_range = ngram_range
        self.stop_words = stop_words
        self.sublinear_tf = sublinear_tf
        self.min_length = min_length
        self.lemmatizer = lemmatizer
        self.segmented = segmented
        self.threads = threads

    def fit(self, raw_documents: Iterable[str], y: object = None, *, progress: Progress | None = None) -> Self:
        """Choose the terms and their weights.

        Parameters
        ----------
        raw_documents : iterable of str
            The texts.
        y : ignored
        progress : callable, optional
            Called with the number of texts read and their total (None if unknown) after each chunk.

        Returns
        -------
        TextVectorizer
            Itself.
        """
        with self._start() as run:
            self._fit(raw_documents, run, progress)
        return self

    def fit_transform(
        self, raw_documents: Iterable[str], y: object = None, *, progress: Progress | None = None
    ) -> csr_matrix:
        """Choose the terms and weigh the same texts: `fit` and `transform` in one, texts read once.

        Parameters
        ----------
        raw_documents : iterable of str
            The texts.
        y : ignored
        progress : callable, optional
            As in `fit`.

        Returns
        -------
        csr_matrix of float32, shape (n_texts, n_terms)
        """
        with self._start() as run:
            return self._matrix(self._weigh(self._fit(raw_documents, run, progress), run))

    def fit_blocks(
        self,
        raw_documents: Iterable[str],
        folder: str | PathLike[str],
        *,
        size: int = 1 << 25,
        progress: Progress | None = None,
    ) -> Iterator[csr_matrix]:
        """Fit to more texts than memory holds, and weigh them block by block: `fit_transform` in pieces.

        The texts are read once, by this call; the ids of their words wait in the folder, in files without a name that
        are gone afterwards. Memory grows with the number of distinct words (about 200 bytes each) and with that of
        distinct n-grams, if there are any, and not with the number of texts.

        Parameters
        ----------
        raw_documents : iterable of str
            The texts.
        folder : path
            Where there is room for up to eight bytes a word.
        size : int, default=32 MB
            Bytes of a block, about.
        progress : callable, optional
            As in `fit`.

        Returns
        -------
        iterator of csr_matrix of float32, shape (texts of the block, n_terms)
            The blocks are made when they are asked for; together they are what `fit_transform` gives.

        Examples
        --------
        >>> import tempfile
        >>> from topicsteer.text import TextVectorizer
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     blocks = TextVectorizer().fit_blocks(["ships carry grain", "grain prices fell"], folder)
        ...     [X.shape for X in blocks]
        [(2, 5)]
        """
        with self._start() as run:
            tokens = self._fit(raw_documents, run, progress, partial(Spill, folder=folder))
        return self._blocks(tokens, size)

    def transform(self, raw_documents: Iterable[str], *, progress: Progress | None = None) -> csr_matrix:
        """Weigh the terms of new texts; a text without any known term gives an empty row.

        Parameters
        ----------
        raw_documents : iterable of str
            The texts.
        progress : callable, optional
            As in `fit`.

        Returns
        -------
        csr_matrix of float32, shape (n_texts, n_terms)
        """
        check_is_fitted(self)
        with self._start() as run:
            tokens = self._read(raw_documents, run, progress)
            return self._matrix(self._weigh(replace(tokens, self._rule(), run), run))

    def grow(
        self, raw_documents: Iterable[str], *, forget_factor: float = 1.0, progress: Progress | None = None
    ) -> csr_matrix:
        """Take in new texts: new terms come behind the old ones, which keep their columns; all weights are renewed.

        A term is new if it is in enough of the new texts, as ``min_df`` and ``max_df`` say; where there are
        ``max_features`` terms already, in as many of them as the rarest old term is in all.

        Parameters
        ----------
        raw_documents : iterable of str
            The new texts.
        forget_factor : float, default=1.0
            What earlier texts count beside a new one.
        progress : callable, optional
            As in `fit`.

        Returns
        -------
        csr_matrix of float32, shape (n_texts, n_terms)
            The new texts.

        Examples
        --------
        >>> from topicsteer.text import TextVectorizer
        >>> vectorizer = TextVectorizer().fit(["ships carry grain", "grain prices fell"])
        >>> vectorizer.grow(["grain, apples", "apples fell"]).shape
        (2, 6)
        >>> list(vectorizer.vocabulary_)
        ['carry', 'fell', 'grain', 'prices', 'ships', 'apples']
        """
        check_is_fitted(self)
        if not self.n_texts_:
            raise ValueError("this vectoriser does not know from how many texts its weights are: fit it again.")
        with self._start() as run:
            tokens = replace(self._read(raw_documents, run, progress), self._rule(), run)
            n_new, before = tokens.n_texts, self.n_texts_ * forget_factor
            found_in = forget_factor * ((1 + self.n_texts_) * np.exp(1 - self.idf_) - 1)
            n_all = before + n_new
            min_df, max_df = (self._option(name, n_all) for name in ("min_df", "max_df"))
            least, most = (float(df) if isinstance(df, Integral) else df * n_all for df in (min_df, max_df))
            limit = self._option("max_features")
            if limit is not None and len(self.vocabulary_) >= limit:
                least = max(least, found_in.min() - 1e-6)
            terms = [] if not tokens.words else choose(tokens, self.ngram_range, (least, most), limit)[0]
            new = [term for term in terms if term not in self.vocabulary_]
            self.vocabulary_ |= {term: column for column, term in enumerate(new, len(self.vocabulary_))}
            found_in = np.pad(found_in, (0, len(new)))
            self.idf_ = np.ones(len(found_in))
            found_in += np.bincount(self._matrix(self._weigh(tokens, run)).indices, minlength=len(found_in))
            self.n_texts_, self.idf_ = n_all, 1.0 + np.log((1 + n_all) / (1 + found_in))
            return self._matrix(self._weigh(tokens, run))

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """Where the terms of a text stand: first character, one after the last, column; terms may overlap.

        Parameters
        ----------
        text : str

        Returns
        -------
        list of (int, int, int)

        Examples
        --------
        >>> from topicsteer.text import TextVectorizer
        >>> TextVectorizer().fit(["ships carry grain", "grain prices fell"]).locate("Grain, and more grain.")
        [(0, 5, 2), (16, 21, 2)]
        """
        check_is_fitted(self)
        rule = self._rule()
        words = [
            (match.start(), match.end(), form) for match in _WORD.finditer(text) for form in rule(match[0].lower())
        ]
        longest = self.ngram_range[1]
        runs = (words[i : i + n] for i in range(len(words)) for n in range(1, longest + 1) if i + n <= len(words))
        named = ((run[0][0], run[-1][1], self.vocabulary_.get(" ".join(form for _, _, form in run))) for run in runs)
        return [(start, end, column) for start, end, column in named if column is not None]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Terms in the order of the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array(list(self.vocabulary_), dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Leave the matrix sparse whatever is asked, so that a pipeline's later steps can give tables.

        Parameters
        ----------
        transform : ignored

        Returns
        -------
        TextVectorizer
            Itself.
        """
        return self

    def get_state(self) -> tuple[dict[str, Any], list[str], NDArray[np.float64]]:
        """Everything `from_state` needs, as plain values: options for JSON, the terms, their weights.

        Returns
        -------
        options : dict
        terms : list of str
        idf : ndarray of float64

        Examples
        --------
        >>> from topicsteer.text import TextVectorizer
        >>> vectorizer = TextVectorizer(max_df=1.0).fit(["ships carry grain", "grain prices fell"])
        >>> again = TextVectorizer.from_state(*vectorizer.get_state())
        >>> abs(again.transform(["more grain"]) - vectorizer.transform(["more grain"])).max()
        np.float32(0.0)
        """
        check_is_fitted(self)
        parameters = {name: value for name, value in self.get_params().items() if name != "lemmatizer"}
        parameters["ngram_range"] = list(self.ngram_range)
        if not isinstance(self.stop_words, str | None):
            parameters["stop_words"] = sorted(self.stop_words)
        options = {
            "parameters": parameters,
            "languages": self.languages_,
            "stop_words": sorted(self.stop_words_),
            "n_texts": self.n_texts_,
        }
        return options, list(self.vocabulary_), self.idf_

    @classmethod
    def from_state(
        cls,
        options: Mapping[str, Any],
        terms: Sequence[str],
        idf: NDArray[np.float64],
        *,
        lemmatizer: Callable[[str], str] | None = None,
    ) -> Self:
        """Rebuild a fitted vectoriser from `get_state`.

        Parameters
        ----------
        options, terms, idf
            As `get_state` gave them.
        lemmatizer : callable, optional
            The same as at the fit; functions are not stored.

        Returns
        -------
        TextVectorizer
        """
        parameters = options["parameters"] | {"ngram_range": tuple(options["parameters"]["ngram_range"])}
        self = cls(**parameters, lemmatizer=lemmatizer)
        self.languages_ = list(options["languages"])
        self.stop_words_ = frozenset(options["stop_words"])
        self.vocabulary_ = {term: column for column, term in enumerate(terms)}
        self.idf_ = np.asarray(idf, np.float64)
        self.n_texts_ = float(options.get("n_texts", 0))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _start(self) -> AbstractContextManager[OrderedMap]:
        """Check the parameters; start the threads."""
        self._validate_params()
        if len(self.ngram_range) != 2 or not 1 <= self.ngram_range[0] <= self.ngram_range[1]:
            raise ValueError(f"ngram_range is {self.ngram_range}; expected two numbers such as (1, 2)")
        return ordered_map(self.threads)

    def _fit(self, texts: Iterable[str], run: OrderedMap, progress: Progress | None, keep: Keep = list) -> Tokens:
        """Choose stop words, terms and weights; give the words of the texts, for `_weigh`."""
        tokens = self._read(texts, run, progress, keep)
        self.languages_, self.stop_words_ = self._find_stop_words(tokens)
        tokens = replace(tokens, self._rule(), run)
        n_texts = tokens.n_texts
        min_df, max_df = (self._option(name, n_texts) for name in ("min_df", "max_df"))
        least, most = (float(df) if isinstance(df, Integral) else df * n_texts for df in (min_df, max_df))
        terms, found_in = choose(tokens, self.ngram_range, (least, most), self._option("max_features"))
        if not tokens.words:
            raise ValueError(
                f"the {n_texts} texts have no words, apart from stop words and those of fewer than"
                f" {self._option('min_length')} letters: check the texts, or change stop_words and min_length."
            )
        if not terms:
            raise ValueError(
                f"no term is in at least {least:g} and at most {most:g} of the {n_texts} texts:"
                f" lower min_df (now {min_df}) or raise max_df (now {max_df})."
            )
        self.vocabulary_ = {term: column for column, term in enumerate(terms)}
        self.idf_ = 1.0 + np.log((1 + n_texts) / (1 + found_in))
        self.n_texts_ = float(n_texts)
        return tokens

    def _option(self, name: str, n_texts: float = np.inf) -> Any:
        """Value of a parameter; that of the preset if it is "auto"."""
        value = getattr(self, name)
        if not (isinstance(value, str) and value == "auto"):
            return value
        return (_PRESETS[self.preset] | (_IF_FEW if n_texts < _FEW_TEXTS else {}))[name]

    def _read(self, texts: Iterable[str], run: OrderedMap, progress: Progress | None, keep: Keep = list) -> Tokens:
        """Words of the texts; letters only in the paper."""
        digits, pairs = self.preset != "paper", not self.segmented
        return read(texts, run, digits=digits, pairs=pairs, progress=progress, keep=keep)

    def _find_stop_words(self, tokens: Tokens) -> tuple[list[str], frozenset[str]]:
        """Languages, if "auto" is to recognise them, and the words to leave out."""
        if self.stop_words is None:
            return [], frozenset()
        if not isinstance(self.stop_words, str):
            return [], frozenset(word.lower() for word in self.stop_words)
        if self.stop_words != "auto":
            return [], stop_words(self.stop_words)
        if self.preset == "paper":
            return ["en"], paper_words()[1]
        occurrences = count(tokens.chunks, len(tokens.words))[1]
        languages = detect_languages(dict(zip(tokens.words, occurrences.tolist(), strict=True)))
        return languages, stop_words(*languages)

    def _rule(self) -> Callable[[str], Iterable[str]]:
        """What becomes of a word: its base forms; nothing if it is a number, short or a stop word."""
        leave_out, shortest = self.stop_words_, self._option("min_length")
        lemmatizer = self.lemmatizer or (paper_words()[0] if self.preset == "paper" else str)

        def rule(word: str) -> Iterable[str]:
            if word.isdecimal() or word in leave_out:
                return ()
            return (form for form in lemmatizer(word).split() if len(form) >= shortest and form not in leave_out)

        return rule

    def _weigh(self, tokens: Tokens, run: OrderedMap) -> Iterator[Rows]:
        """Count the terms of each text and weigh them: (1 + log count) × idf, rows of unit length."""
        finder = Finder(self.vocabulary_, tokens.words, self.ngram_range[1])
        sublinear = self._option("sublinear_tf")
        return run(lambda chunk: kernels.weigh(finder.columns(chunk), chunk[1], self.idf_, sublinear), tokens.chunks)

    def _blocks(self, tokens: Tokens, size: int) -> Iterator[csr_matrix]:
        """Matrices of about so many bytes each."""
        waiting: list[Rows] = []
        with self._start() as run:
            for rows in self._weigh(tokens, run):
                waiting.append(rows)
                if sum(part.nbytes for parts in waiting for part in parts) >= size:
                    yield self._matrix(waiting)
                    waiting = []
        if waiting:
            yield self._matrix(waiting)

    def _matrix(self, rows: Iterable[Rows]) -> csr_matrix:
        sizes, indices, data = map(np.concatenate, zip(*rows, strict=True))
        shape = len(sizes), len(self.vocabulary_)
        X = csr_matrix((data, indices, np.append(0, np.cumsum(sizes))), shape=shape)
        X.has_canonical_format = True
        return X
