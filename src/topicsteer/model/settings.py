"""Settings of a fit, and the vectoriser, estimator and codebook that follow from them."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from sklearn.base import clone

from topicsteer.estimator import TSNMF
from topicsteer.guidance.guide import Guide
from topicsteer.guidance.keywords import check_keywords
from topicsteer.guidance.open_world import WORLDS
from topicsteer.labels.codebook import Codebook
from topicsteer.labels.lineage import Lineage
from topicsteer.nmf.protocols import Rows
from topicsteer.nmf.start import count_free
from topicsteer.system.types import Array
from topicsteer.text import TextVectorizer

# Number of free topics if the user does not choose one.
DEFAULT_FREE = 10
# A number of free topics or "auto"; or numbers by the topic that they are inside, with None for the top.
FreeTopics = int | str | None | Mapping[Hashable, int | str | None]


@dataclass(frozen=True)
class Settings:
    """Settings of a fit: the arguments of `TopicModel`."""

    free_topics: FreeTopics
    world: str | None
    topics: Sequence[str] | Codebook | None
    parents: Mapping[str, str] | None
    path_separator: str | None
    complete: bool
    guidance: str | None
    keywords: Mapping[str, Sequence[str]] | None
    banned: Mapping[str, Sequence[str]] | None
    descriptions: Mapping[str, str] | None
    vectorizer: TextVectorizer | None
    estimator: TSNMF | None
    random_state: int
    threads: int | None

    @property
    def free_at_top(self) -> int | str | None:
        """The choice of free topics that are inside no other."""
        return self.free_topics.get(None) if isinstance(self.free_topics, Mapping) else self.free_topics

    @property
    def free_inside(self) -> dict[str, int | str]:
        """The number of free topics inside topics, by their names as text."""
        given = self.free_topics if isinstance(self.free_topics, Mapping) else {}
        return {str(name): number for name, number in given.items() if name is not None and number is not None}

    @property
    def wants_free(self) -> bool:
        """Whether the user chose a number of free topics, which shows a wish for them."""
        return isinstance(self.free_at_top, int) and self.free_at_top > 0

    @property
    def wanted_free(self) -> int | str:
        """The number of free topics at the top, or "auto"."""
        return DEFAULT_FREE if self.free_at_top is None else self.free_at_top

    def new_vectorizer(self) -> TextVectorizer:
        """An unfitted vectoriser."""
        return TextVectorizer(threads=self.threads) if self.vectorizer is None else clone(self.vectorizer)

    def check(self) -> None:
        """Check the settings of the world and of free topics."""
        for name, free in {"": self.wanted_free, **self.free_inside}.items():
            if not (free == "auto" or (isinstance(free, int) and free >= 0)):
                inside = f" inside {name!r}" if name else ""
                raise ValueError(f'free_topics{inside} must be a number from 0 up, or "auto"; got {free!r}.')
        if self.free_inside and self.guidance is None:
            raise ValueError('free topics inside others need guidance="auto".')
        if self.path_separator is not None and not str(self.path_separator).strip():
            raise ValueError('path_separator must have a character that is not a space, such as "/"; None = no paths.')
        if self.world not in WORLDS:
            raise ValueError(f'world must be "open", "closed" or None; got {self.world!r}.')

    def new_estimator(self, X: Rows, profiles: Array, *, guide: Guide | None, free: int | None = None) -> TSNMF:
        """An unfitted estimator with one component per known and per free topic; ``free`` if the guide has some."""
        known, guided = len(profiles), guide is not None
        if free is None and isinstance(self.wanted_free, str):
            closed = guide is not None and not guide.open
            free = 0 if closed else count_free(X, profiles, self.random_state)
        elif free is None:
            free = int(self.wanted_free)
        if known + free == 0:
            raise ValueError("There are no labels and no free topics: label some documents, or allow free topics.")
        weight = None if guided else "balanced"
        own = TSNMF(
            free_in_labelled=False,
            label_weight=weight,
            tol=1e-4,  # memberships come from the guide, so the factorisation may go to its minimum
            random_state=self.random_state,
            threads=self.threads,
        )
        estimator: TSNMF = own if self.estimator is None else clone(self.estimator)
        return estimator.set_params(n_components=known + free)  # type: ignore[no-any-return]

    def lineage(self, before: Codebook | None = None) -> Lineage:
        """The parents of topics by name; topics of an earlier codebook keep theirs."""
        book = self.topics if before is None and isinstance(self.topics, Codebook) else before
        return Lineage.of(book, self.parents, self.path_separator)

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
