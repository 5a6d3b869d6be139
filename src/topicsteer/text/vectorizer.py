"""TextVectorizer: convert texts to a TF-IDF matrix."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from topicsteer.system.threads import OrderedMap, ordered_map
from topicsteer.text.tokens import (
    CHUNK_SIZE,
    Chunk,
    Keep,
    RowArrays,
    Spill,
    TextProgress,
    Tokens,
    choose,
    choose_weak,
    columns_of,
    count,
    drop,
    mark_weak,
    read,
    replace,
    weigh,
)
from topicsteer.text.words import (
    AUTO,
    WEAK_IDF,
    Rule,
    all_stop_words,
    detect_languages,
    few_rows,
    is_weak,
    locate,
    stop_words,
    word_rule,
)

if TYPE_CHECKING:
    from sklearn.utils import Tags


# Texts, and characters in them, that are transformed without the kernels: it takes less time than to load them.
FEW_TEXTS, FEW_CHARACTERS = 100, 1 << 18
# Below this number of texts, document frequencies are not a reason to drop a term.
_TINY = 100
# Short texts have at most this many words on average, stop words included. On banking77 (12 words), logistic regression
# on word vectors with 5 labels per topic has an accuracy of .706 with stop words and .677 without. On news of 10 to 280
# words, the two differ by at most .006.
SHORT_TEXT = 30
# The values of "auto" for few texts.
_IF_FEW = {"min_df": 1, "max_df": 1.0}


class TextVectorizer:
    """Turn texts into a TF-IDF matrix with rows of unit length, on all cores.

    A word is a run of letters and digits with at least one letter, in lower case; apostrophes, hyphens and underscores
    separate words. Chinese and Japanese text, which has no spaces, is split into pairs of neighbouring characters. With
    equal options the matrix equals that of scikit-learn's ``TfidfVectorizer``. Among
    equally frequent terms ``max_features`` keeps the first in alphabetical order. The result does not depend on the
    number of threads.

    Parameters
    ----------
    max_features : int, None or "auto", default="auto"
        Number of terms to keep, the most frequent in the corpus; None keeps all. "auto" is 10,000.
    min_df, max_df : int, float or "auto", default="auto"
        Keep terms found in at least and at most this many texts (int) or this share of them (float). "auto" is 2 and
        0.5, or 1 and 1.0 for fewer than 100 texts.
    stop_words : "auto", str, collection of str or None, default="auto"
        Words to leave out: a language by name or code (see `stop_words`), the words themselves, or none. "auto"
        recognises the languages of the corpus.
    sublinear_tf : bool or "auto", default="auto"
        Replace a count c by 1 + log c. "auto" is True.
    min_length : int or "auto", default="auto"
        Minimum number of letters in a word. "auto" is 2.
    lemmatizer : callable or None, default=None
        Function from a word to its base form, called once per distinct word. An empty result drops the word, and a
        result with spaces stands for several words.
    segmented : bool, default=False
        Whether Chinese and Japanese texts already have spaces between words, so that they need no pairs of characters.
    threads : int or None, default=None
        None uses all cores.
    weak_stop_words : bool, default=False
        Keep the stop words of short texts as terms of weight 0.000001: *how* and *not* distinguish short questions.
        They count like other words in ``X`` divided by ``idf_``. Short texts have at most 30 words on average, stop
        words included. Of the options for terms only ``min_df`` applies to weak stop words. They belong to
        no result of `locate`. A text of stop words only has an empty row.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        Column of each term. Terms are in alphabetical order; weak stop words come after them, then terms added by
        `grow`.
    idf_ : ndarray of shape (n_terms,)
        Weight of each term: 1 + log((1 + n) / (1 + df)), or 0.000001 for weak stop words.
    n_texts_ : float
        Number of texts behind the weights.
    stop_words_ : frozenset of str
        The stop words.
    languages_ : list of str
        Codes of the recognised languages, the most frequent first.

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

    vocabulary_: dict[str, int]
    idf_: NDArray[np.float64]
    n_texts_: float
    stop_words_: frozenset[str]
    languages_: list[str]

    # Characters per task of a thread; a subclass can change it. No result depends on it.
    chunk_size = CHUNK_SIZE

    def __init__(
        self,
        *,
        max_features: int | str | None = "auto",
        min_df: float | str = "auto",
        max_df: float | str = "auto",
        stop_words: Iterable[str] | None = "auto",
        sublinear_tf: bool | str = "auto",
        min_length: int | str = "auto",
        lemmatizer: Callable[[str], str] | None = None,
        segmented: bool = False,
        threads: int | None = None,
        weak_stop_words: bool = False,
    ) -> None:
        self.max_features = max_features
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words
        self.sublinear_tf = sublinear_tf
        self.min_length = min_length
        self.lemmatizer = lemmatizer
        self.segmented = segmented
        self.threads = threads
        self.weak_stop_words = weak_stop_words

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments by name.

        Parameters
        ----------
        deep : ignored
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set arguments for the next fit.

        Parameters
        ----------
        **params
            Values by name.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"TextVectorizer has no parameter {name!r}; it has {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        given = (f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name])
        return f"TextVectorizer({', '.join(given)})"

    def fit(self, raw_documents: Iterable[str], y: object = None, *, progress: TextProgress | None = None) -> Self:
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
        self, raw_documents: Iterable[str], y: object = None, *, progress: TextProgress | None = None
    ) -> csr_matrix:
        """Fit and transform in one step; the texts are read only once.

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
            return self._whole_matrix(self._fit(raw_documents, run, progress), run)

    def fit_blocks(
        self,
        raw_documents: Iterable[str],
        folder: str | PathLike[str],
        *,
        size: int = 1 << 25,
        progress: TextProgress | None = None,
    ) -> Iterator[csr_matrix]:
        """Fit and transform more texts than memory holds, block by block.

        This call reads the texts once and stores their word ids in the folder, in files without a name that disappear
        afterwards. Memory grows with the number of distinct words (about 200 bytes each). It
        does not grow with the number of texts.

        Parameters
        ----------
        raw_documents : iterable of str
            The texts.
        folder : path
            A folder with room for up to eight bytes per word.
        size : int, default=32 MB
            Approximate number of bytes per block.
        progress : callable, optional
            As in `fit`.

        Returns
        -------
        iterator of csr_matrix of float32, shape (texts of the block, n_terms)
            Each block is computed on demand. Together the blocks equal the result of `fit_transform`.

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

    def transform(self, raw_documents: Iterable[str], *, progress: TextProgress | None = None) -> csr_matrix:
        """Convert new texts to TF-IDF rows; a text without a known term gives an empty row.

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
        self._check_fitted()
        if _are_few(raw_documents):
            return few_rows(
                raw_documents,
                self._rule(),
                self.vocabulary_,
                self.idf_,
                sublinear=self._option("sublinear_tf"),
                pairs=not self.segmented,
            )
        with ordered_map(self.threads) as run:
            tokens = self._read(raw_documents, run, progress)
            return self._whole_matrix(self._apply_rule(tokens, run, self._weak_words()), run)

    def grow(self, raw_documents: Iterable[str], *, progress: TextProgress | None = None) -> csr_matrix:
        """Add new texts: old terms keep their columns, new terms come after them, and all weights are updated.

        A new term must be in enough of the new texts, by ``min_df`` and ``max_df``. If there are already
        ``max_features`` terms, it must be in at least as many new texts as the rarest old term in all texts. Weak stop
        words keep their weight, and none are added.

        Parameters
        ----------
        raw_documents : iterable of str
            The new texts.
        progress : callable, optional
            As in `fit`.

        Returns
        -------
        csr_matrix of float32, shape (n_texts, n_terms)
            Rows of the new texts.

        Examples
        --------
        >>> from topicsteer.text import TextVectorizer
        >>> vectorizer = TextVectorizer().fit(["ships carry grain", "grain prices fell"])
        >>> vectorizer.grow(["grain, apples", "apples fell"]).shape
        (2, 6)
        >>> list(vectorizer.vocabulary_)
        ['carry', 'fell', 'grain', 'prices', 'ships', 'apples']
        """
        self._check_fitted()
        if not self.n_texts_:
            raise ValueError("this vectoriser does not know its number of texts: fit it again.")
        with self._start() as run:
            tokens = self._apply_rule(self._read(raw_documents, run, progress), run, self._weak_words())
            weak = is_weak(self.idf_)
            found_in = (1 + self.n_texts_) * np.exp(1 - self.idf_) - 1
            n_all = self.n_texts_ + tokens.n_texts
            least, most = self._bounds(n_all)
            limit = self._option("max_features")
            if limit is not None and np.count_nonzero(~weak) >= limit:
                least = max(least, found_in[~weak].min() - 1e-6)
            terms = [] if tokens.empty else choose(tokens, (least, most), limit)[0]
            new = [term for term in terms if term not in self.vocabulary_]
            self.vocabulary_ |= {term: column for column, term in enumerate(new, len(self.vocabulary_))}
            found_in = np.pad(found_in, (0, len(new)))
            self.idf_ = np.ones(len(found_in))
            columns = self._matrix(self._weigh(tokens, run), tokens.n_words).indices
            found_in += np.bincount(columns, minlength=len(found_in))
            self.n_texts_, self.idf_ = n_all, 1.0 + np.log((1 + n_all) / (1 + found_in))
            self.idf_[np.flatnonzero(weak)] = WEAK_IDF
            return self._whole_matrix(tokens, run)

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """Find the terms of a text: first character, one after the last, column; terms may overlap.

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
        self._check_fitted()
        return locate(text, self._rule(), self.vocabulary_, pairs=not self.segmented)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The terms in the order of the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        self._check_fitted()
        return np.array(list(self.vocabulary_), dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing: the matrix stays sparse, so that later steps of a pipeline can return tables.

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
        """Return the arguments of `from_state` as plain values: options for JSON, the terms, their weights.

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
        self._check_fitted()
        parameters = {name: value for name, value in self.get_params().items() if name != "lemmatizer"}
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
            The result of `get_state`.
        lemmatizer : callable, optional
            The lemmatizer of the fit; functions are not stored.

        Returns
        -------
        TextVectorizer
        """
        self = cls(**options["parameters"], lemmatizer=lemmatizer)
        self.languages_ = list(options["languages"])
        self.stop_words_ = frozenset(options["stop_words"])
        self.vocabulary_ = {term: column for column, term in enumerate(terms)}
        self.idf_ = np.asarray(idf, np.float64)
        self.n_texts_ = float(options.get("n_texts", 0))
        return self

    def __sklearn_tags__(self) -> Tags:
        """Tags for a pipeline of scikit-learn."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        texts = InputTags(string=True, two_d_array=False)
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=texts,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "vocabulary_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this TextVectorizer is not fitted: call fit first.")

    def _start(self) -> AbstractContextManager[OrderedMap]:
        """Check the parameters and start the threads."""
        _check_parameters(self.get_params())
        return ordered_map(self.threads)

    def _fit(self, texts: Iterable[str], run: OrderedMap, progress: TextProgress | None, keep: Keep = list) -> Tokens:
        """Choose stop words, terms and weights; return the tokens of the texts for `_weigh`."""
        tokens = self._read(texts, run, progress, keep)
        self.languages_, self.stop_words_ = self._find_stop_words(tokens)
        with_weak = self.weak_stop_words and tokens.n_words <= SHORT_TEXT * tokens.n_texts
        tokens = self._apply_rule(tokens, run, self.stop_words_ if with_weak else frozenset())
        n_texts = tokens.n_texts
        least, most = self._bounds(n_texts)
        terms, found_in = choose(tokens, (least, most), self._option("max_features"))
        if tokens.empty:
            raise ValueError(
                f"the {n_texts} texts have no words other than stop words and words of fewer than"
                f" {self._option('min_length')} letters: check the texts, or change stop_words and min_length."
            )
        if not terms:
            raise ValueError(
                f"no term is in at least {least:g} and at most {most:g} of the {n_texts} texts:"
                f" lower min_df (now {self._option('min_df', n_texts)}) or raise max_df (now"
                f" {self._option('max_df', n_texts)})."
            )
        weak = choose_weak(tokens, least)
        self.vocabulary_ = {term: column for column, term in enumerate([*terms, *weak])}
        self.idf_ = np.append(1.0 + np.log((1 + n_texts) / (1 + found_in)), np.full(len(weak), WEAK_IDF))
        self.n_texts_ = float(n_texts)
        return tokens

    def _bounds(self, n_texts: float) -> tuple[float, float]:
        """Least and largest number of texts that a term may be in."""
        limits = (self._option(name, n_texts) for name in ("min_df", "max_df"))
        least, most = (float(df) if isinstance(df, Integral) else df * n_texts for df in limits)
        return least, most

    def _option(self, name: str, n_texts: float = np.inf) -> Any:
        """Value of a parameter; "auto" takes a value from `AUTO`."""
        value = getattr(self, name)
        if not (isinstance(value, str) and value == "auto"):
            return value
        return (AUTO | (_IF_FEW if n_texts < _TINY else {}))[name]

    def _read(self, texts: Iterable[str], run: OrderedMap, progress: TextProgress | None, keep: Keep = list) -> Tokens:
        """Split the texts into words."""
        return read(texts, run, pairs=not self.segmented, progress=progress, keep=keep, chunk_size=self.chunk_size)

    def _find_stop_words(self, tokens: Tokens) -> tuple[list[str], frozenset[str]]:
        """Return the recognised languages, if stop words are "auto", and the stop words."""
        if self.stop_words is None:
            return [], frozenset()
        if not isinstance(self.stop_words, str):
            return [], frozenset(word.lower() for word in self.stop_words)
        if self.stop_words != "auto":
            return [], stop_words(self.stop_words)
        occurrences, common = count(tokens.chunks, len(tokens.words))[1], sorted(all_stop_words())
        ids = tokens.words.find(common)
        there = {word: int(occurrences[i]) for word, i in zip(common, ids.tolist(), strict=True) if i >= 0}
        languages = detect_languages(there, total=int(occurrences.sum()))
        return languages, stop_words(*languages)

    def _apply_rule(self, tokens: Tokens, run: OrderedMap, weak: frozenset[str]) -> Tokens:
        """Leave out and replace words; only a lemmatizer needs Python for each distinct word."""
        if self.lemmatizer is not None:
            rule = self._rule()
            tokens = replace(tokens, lambda word: (word,) if word in weak else rule(word), run)
        else:
            tokens = drop(tokens, self.stop_words_, self._option("min_length"))
        return mark_weak(tokens, weak) if weak else tokens

    def _rule(self) -> Rule:
        """Return a function from a word to its base forms; none for numbers, short words and stop words."""
        return word_rule(self.stop_words_, self._option("min_length"), self.lemmatizer)

    def _weak_words(self) -> frozenset[str]:
        """The weak stop words that have a column."""
        terms = list(self.vocabulary_)
        return frozenset(terms[column] for column in np.flatnonzero(is_weak(self.idf_)))

    def _weigh(self, tokens: Tokens, run: OrderedMap) -> Iterator[RowArrays]:
        """Compute TF-IDF rows of unit length."""
        columns = columns_of(self.vocabulary_, tokens.words)
        return run(
            partial(weigh, columns=columns, idf=self.idf_, sublinear=self._option("sublinear_tf")), tokens.chunks
        )

    def _blocks(self, tokens: Tokens, size: int) -> Iterator[csr_matrix]:
        """Matrices of about ``size`` bytes each."""
        waiting: list[RowArrays] = []
        with self._start() as run:
            for rows in self._weigh(tokens, run):
                waiting.append(rows)
                if sum(array.nbytes for arrays in waiting for array in arrays) >= size:
                    yield self._matrix(waiting, sum(len(data) for _, _, data in waiting))
                    waiting = []
        if waiting:
            yield self._matrix(waiting, sum(len(data) for _, _, data in waiting))

    def _whole_matrix(self, tokens: Tokens, run: OrderedMap) -> csr_matrix:
        """The matrix of all texts; their word ids are freed on the way."""
        room, chunks = tokens.n_words, tokens.chunks
        if isinstance(chunks, list):
            tokens = dataclasses.replace(tokens, chunks=_used_up(chunks))
        return self._matrix(self._weigh(tokens, run), room)

    def _matrix(self, rows: Iterable[RowArrays], room: int) -> csr_matrix:
        """The matrix of some rows with at most ``room`` entries, each row written into place."""
        indices, data, sizes, end = np.empty(room, np.int32), np.empty(room, np.float32), [], 0
        for own_sizes, own_indices, own_data in rows:
            begin, end = end, end + len(own_data)
            indices[begin:end], data[begin:end] = own_indices, own_data
            sizes.append(own_sizes)
        for array in (indices, data):
            array.resize(end, refcheck=False)  # in place
        starts = np.append(0, np.cumsum(np.concatenate(sizes)))
        X = csr_matrix((data, indices, starts), shape=(len(starts) - 1, len(self.vocabulary_)))
        X.has_canonical_format = True
        return X


def _used_up(chunks: list[Chunk]) -> Iterator[Chunk]:
    """The chunks of a list, which is empty in the end."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


def _are_few(texts: object) -> TypeGuard[list[str]]:
    """Whether these are a few short texts."""
    if not isinstance(texts, list) or len(texts) > FEW_TEXTS or not all(isinstance(text, str) for text in texts):
        return False
    return sum(map(len, texts)) <= FEW_CHARACTERS


def _check_parameters(given: Mapping[str, Any]) -> None:
    """Raise an error that names a parameter with a wrong value."""
    from numbers import Real

    from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

    count = Interval(Integral, 1, None, closed="left")
    share = Interval(Real, 0, 1, closed="both")
    auto = StrOptions({"auto"})
    constraints = {
        "max_features": [count, None, auto],
        "min_df": [count, share, auto],
        "max_df": [count, share, auto],
        "stop_words": [str, "array-like", set, frozenset, None],
        "sublinear_tf": ["boolean", auto],
        "min_length": [count, auto],
        "lemmatizer": [callable, None],
        "segmented": ["boolean"],
        "threads": [count, None],
        "weak_stop_words": ["boolean"],
    }
    validate_parameter_constraints(constraints, given, caller_name="TextVectorizer")
