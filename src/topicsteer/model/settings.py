"""Settings of a fit, the vectoriser, estimator and codebook that follow from them, and topics files."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topicsteer.corpora import ReadError, ReadOptions
from topicsteer.corpora.readers import TableFile, open_table, read_delimited
from topicsteer.guidance.guide import Guide
from topicsteer.labels.codebook import Codebook, Lineage, topic_columns
from topicsteer.labels.codebook_files import LARGEST, TopicsFile, parse_codebook, parse_topics
from topicsteer.nmf.protocols import Parameters, Rows
from topicsteer.report.table_files import write_table
from topicsteer.system.types import Array
from topicsteer.text.vectorizer import TextVectorizer

if TYPE_CHECKING:
    from topicsteer.model.topic_model import TopicModel

# Number of free topics if the user does not choose one.
DEFAULT_FREE = 10
# Name of the word vectors that come with the package.
WORDS = "words"
# The argument ``embeddings`` of a `TopicModel`, by its name on the command line; other names are for its fit.
BUILT_IN: Mapping[str | None, str | None] = {None: WORDS, WORDS: WORDS, "none": None}


@dataclass(frozen=True)
class Settings:
    """Settings of a fit: the arguments of `TopicModel`."""

    free_topics: int | str | None
    world: str | None
    topics: Sequence[str] | Codebook | None
    parents: Mapping[str, str] | None
    path_separator: str | None
    complete: bool
    keywords: Mapping[str, Sequence[str]] | None
    banned: Mapping[str, Sequence[str]] | None
    descriptions: Mapping[str, str] | None
    vectorizer: TextVectorizer | None
    embeddings: str | None
    random_state: int
    threads: int | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """Checked settings, from the arguments of a `TopicModel`."""
        settings = cls(**given)
        free = settings.wanted_free
        if not (free == "auto" or (isinstance(free, int) and free >= 0)):
            raise ValueError(f'free_topics must be a number from 0 up, or "auto"; got {free!r}.')
        if settings.path_separator is not None and not str(settings.path_separator).strip():
            raise ValueError('path_separator must have a character that is not a space, such as "/"; None = no paths.')
        if settings.world not in (None, "open", "closed"):
            raise ValueError(f'world must be "open", "closed" or None; got {settings.world!r}.')
        if settings.embeddings not in (None, WORDS):
            raise ValueError(f'embeddings must be "{WORDS}" or None here; pass {settings.embeddings!r} to fit.')
        return settings

    @property
    def wants_free(self) -> bool:
        """Whether the user chose a number of free topics, which shows a wish for them."""
        return isinstance(self.free_topics, int) and self.free_topics > 0

    @property
    def wanted_free(self) -> int | str:
        """The number of free topics, or "auto"."""
        return DEFAULT_FREE if self.free_topics is None else self.free_topics

    def new_vectorizer(self) -> TextVectorizer:
        """An unfitted vectoriser with the options of the given one, or with the defaults."""
        if self.vectorizer is None:
            return TextVectorizer(threads=self.threads, weak_stop_words=self.embeddings == WORDS)
        return TextVectorizer(**self.vectorizer.get_params())

    def new_parameters(self, X: Rows, profiles: Array, *, guide: Guide | None, free: int | None = None) -> Parameters:
        """Parameters of the factorisation, with one component per known and per free topic.

        ``free`` is the number of free topics, if the guide has some.
        """
        from topicsteer.nmf.factorisation import count_free

        if free is None and not isinstance(self.wanted_free, str):
            free = int(self.wanted_free)
        elif free is None:
            closed = guide is not None and not guide.open
            free = 0 if closed else count_free(X, profiles, self.random_state)
        number = len(profiles) + free
        if number == 0:
            raise ValueError("There are no labels and no free topics: label some documents, or allow free topics.")
        return Parameters(
            number,
            free_in_labelled=False,
            label_weight="balanced" if guide is None else None,
            tol=1e-4,  # memberships come from the guide, so the factorisation may go to its minimum
            random_state=self.random_state,
            threads=self.threads,
        )

    def lineage(self, before: Codebook | None = None) -> Lineage:
        """The parents and spellings of topics by name; topics of an earlier codebook keep theirs."""
        book = self.topics if before is None and isinstance(self.topics, Codebook) else before
        own = () if isinstance(self.topics, Codebook) else self.topics or ()
        words = (self.keywords, self.banned, self.descriptions)
        names = (*own, *(name for given in words for name in given or ()))
        return Lineage.of(book, self.parents, self.path_separator, names)

    def codebook(self, names: Sequence[Hashable], before: Codebook | None = None) -> Codebook:
        """The known topics with parents, descriptions and keywords; topics of an earlier codebook keep their keys."""
        if isinstance(self.topics, Codebook):
            given = {str(topic.name): topic for topic in self.topics}
            later = Codebook.of_names(names, before=self.topics)  # paths have topics above them
            every = Codebook(tuple(given.get(str(topic.name), topic) for topic in later))
            return every.with_parents(self.parents or {}).with_parents(self.lineage().parent_names(names))
        check_keywords("keywords", self.keywords, names)
        check_keywords("banned", self.banned, names)
        return self.name_topics(names, before)

    def name_topics(self, names: Sequence[Hashable], before: Codebook | None) -> Codebook:
        """Topics by name, with their descriptions and keywords."""
        return Codebook.of_names(
            names,
            before=before,
            parents=self.lineage(before).parent_names(names),
            descriptions=self.descriptions,
            keywords=self.keywords,
            banned=self.banned,
        )


# --- topics files ---


def check_keywords(kind: str, given: Mapping[str, Sequence[str]] | None, topics: Sequence[Hashable]) -> None:
    """Raise an error for words of an unknown topic, and for a text instead of a list of words."""
    names = [str(name) for name in topics]
    for topic, words in (given or {}).items():
        if str(topic) not in names:
            raise ValueError(f"{kind} names the topic {topic!r}, which is not one of {', '.join(names)}.")
        if isinstance(words, str):
            raise ValueError(f"{kind}[{topic!r}] is a text, {words!r}; expected a list of words.")


def read_topics(path: str | Path, *, encoding: str | None = None, delimiter: str | None = None) -> TopicsFile:
    r"""Read a topics file: a table with the columns topic, parent, description and keywords.

    Parameters
    ----------
    path : path
        A .csv, .tsv, .jsonl, .json or .parquet file. See `topicsteer.labels.codebook_files` for its columns.
        A .qdc file is a codebook of NVivo, QualCoder, Taguette or another program that writes REFI-QDA.
    encoding, delimiter : str, optional
        Default: guessed.

    Returns
    -------
    TopicsFile
        ``codebook`` is an argument of ``TopicModel(topics=...)``; ``notes`` lists probable mistakes.

    Raises
    ------
    ReadError
        If the file cannot be read, or has no topic.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "themes.csv"
    ...     _ = path.write_text("topic,keywords\nprice,cheap; cost\ndelivery,late; courier\n")
    ...     found = read_topics(path)
    >>> found.codebook.names
    ('price', 'delivery')
    """
    if Path(path).suffix.lower() == ".qdc":
        try:
            with open(path, "rb") as codebook:
                return parse_codebook(codebook.read(LARGEST + 1))
        except ValueError as error:
            raise ReadError(f"{path}: {error}.") from None
    file = TableFile(str(path), encoding, delimiter)
    ragged: list[str] = []
    if file.kind in (".csv", ".tsv", ".tab"):  # people write these by hand
        table = next(read_delimited(file, math.inf, ragged))
    else:
        table = next(open_table(path, ReadOptions(encoding=encoding, delimiter=delimiter))(math.inf))
    if not table.columns:
        raise ReadError(f"{path}: the file is empty. Expected a header with a column 'topic', and one row per topic.")
    broken = [f"{table.unit} {place}: {problem}. It is not used." for place, problem in sorted(table.problems.items())]
    try:
        found = parse_topics(table.columns, [f"{table.unit} {place}" for place in table.places])
    except ValueError as error:
        raise ReadError(" ".join([f"{path}: {error}", *broken])) from None
    guessed = [f"The {guess}." for guess in table.guesses]
    return TopicsFile(found.codebook, (*guessed, *ragged, *broken, *found.notes))


def write_topics(model: TopicModel, path: Path) -> None:
    """Write the known topics of a model as a topics file: .csv, .jsonl or .parquet."""
    import polars as pl

    write_table(pl.DataFrame(topic_columns(model.codebook)), path)
