"""Edits of a fitted model: rename, merge, move, adopt and split topics, and show another number of free topics."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Self

from topicsteer.corpora import Documents
from topicsteer.guidance import open_world
from topicsteer.guidance.guide import Guide
from topicsteer.model import edit, pipeline
from topicsteer.model.fitted_model import FittedModel
from topicsteer.model.settings import Settings
from topicsteer.model.split import split
from topicsteer.system.files import Scratch
from topicsteer.system.lock import one_at_a_time


class ModelEdits(FittedModel):
    """Edits of a fitted `TopicModel`, which inherits them."""

    _settings: Callable[[], Settings]
    _work: Scratch

    @one_at_a_time
    def rename(self, old: Hashable, new: str) -> Self:
        """Rename a known or free topic."""
        k = self._number(old)
        names = list(self.result_.names)
        if new in names[:k] + names[k + 1 :]:
            raise ValueError(f"the name {new!r} belongs to another topic; use merge to combine the two.")
        return self.rename_topics(edit.with_paths(self.state_, k, new))

    @one_at_a_time
    def rename_topics(self, names: Sequence[str]) -> Self:
        """Rename all topics at once: known ones first, then free ones."""
        self.state_ = edit.rename(self.state_, names)
        return self

    @one_at_a_time
    def move(self, topic: Hashable, under: Hashable | None = None) -> Self:
        """Put a known topic, and all topics below it, under another known topic, or at the top.

        Labels stay, and the topics that they permit follow the new tree. Fit again to learn from it.

        Parameters
        ----------
        topic : topic
            Name or number.
        under : topic, optional
            The new parent; None = at the top.
        """
        k, parent = self._number(topic), None if under is None else self._number(under)
        for number in (k, parent):
            if number is not None and number >= len(self.codebook):
                raise ValueError(f"{self.result_.names[number]!r} is a free topic: adopt it first.")
        self.state_ = edit.move(self.state_, k, parent)
        return self

    @one_at_a_time
    def with_keys(self, keys: Sequence[int]) -> Self:
        """Set the keys of the known topics, for a model of a version without keys."""
        self.state_ = edit.with_keys(self.state_, keys)
        return self

    @one_at_a_time
    def merge(self, topics: Sequence[Hashable], name: str | None = None) -> Self:
        """Merge topics; their weights and labels are added up.

        Parameters
        ----------
        topics : sequence of topics
            Names or numbers. The merged topic takes the position of the first; it is known if one of them is.
        name : str, optional
            Default: the name of the first topic.
        """
        group = sorted({self._number(topic) for topic in topics})
        if len(group) < 2:
            raise ValueError("merge needs two topics or more.")
        self.state_ = edit.merge(self.state_, group, name)
        return self

    @one_at_a_time
    def adopt(self, topic: Hashable, name: str, n: int = 10) -> Any:
        """Make a free topic known, and propose documents to label with it.

        Parameters
        ----------
        topic : topic
            Name or number of a free topic; "free 3" is the third.
        name : str
            Its name from now on.
        n : int, default=10
            Number of proposals.

        Returns
        -------
        table
            Documents that most surely have the topic, to be confirmed: id, membership, start of the text. None of them
            is labelled by this method.
        """
        self.state_ = edit.adopt(self.state_, self._number(topic), name)
        return self.surest(name, n)

    @one_at_a_time
    def cut(self, free_topics: int) -> Self:
        """Show another number of free topics. Groups of documents, known topics and their memberships stay.

        Parameters
        ----------
        free_topics : int
            Largest number of free topics.
        """
        guide, adopted = self._guide_with_groups(), edit.adopted_groups(self.state_)
        return self._regroup(open_world.free_topics(guide, free_topics, len(self.state_.ids), adopted))

    @one_at_a_time
    def split(self, topic: Hashable, n: int | str = 2) -> Self:
        """Split a topic. No other topic changes.

        A known topic gets free topics inside it: groups of the documents that have the topic, and none of the named
        topics below it. The topic itself stays, and so do its memberships. :meth:`adopt` gives one of them a name. A
        free topic at the top is replaced by its most different parts.

        Parameters
        ----------
        topic : topic
            Name or number.
        n : int or "auto", default=2
            Number of parts, at most. "auto": parts of about the size of the other topics.
        """
        number, known = self._number(topic), len(self.codebook)
        if n != "auto" and not (isinstance(n, int) and n >= 2):
            raise ValueError(f'a split needs 2 parts or more, or "auto"; got {n!r}.')
        if number < known:
            guide = self.guide_
            if guide is None:
                raise ValueError("a split needs guidance, and labels or words about topics.")
            E = self._training_embeddings()
            self.state_ = split(self.state_, self._settings(), self.training_rows, guide, number, n, E)
            return self
        guide, groups = self._guide_with_groups(), list(self.state_.free_groups)
        parts = 2 if isinstance(n, str) else n
        if not number - known < len(groups) or len(groups[number - known]) < 2 or guide.tree is None:
            raise ValueError(f"the topic {self.result_.names[number]!r} has no parts: it is a single group.")
        groups[number - known : number - known + 1] = guide.tree.parts(groups[number - known], parts)
        return self._regroup(tuple(groups))

    def _guide_with_groups(self) -> Guide:
        guide: Guide | None = self.guide_
        if guide is None or not guide.n_groups:
            raise ValueError("this model has no groups of documents without a known topic: fit it in an open world.")
        return guide

    def _regroup(self, free_groups: tuple[tuple[int, ...], ...]) -> Self:
        """Factorise again with other free topics, and the guide as it is."""
        documents = Documents(self.state_.ids, self._texts())
        corpus = pipeline.Corpus(documents, self.training_rows, self.supervision_, self.codebook, self.vectorizer_)
        work, E = Scratch(), self._training_embeddings()
        self.state_ = pipeline.regroup(
            self._settings(), self.state_, corpus, self._guide_with_groups(), free_groups, E, work.path
        )
        self._rows, self._work = corpus.rows, work  # the folder lives as long as the model
        return self
